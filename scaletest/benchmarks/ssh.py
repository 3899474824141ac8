"""How mpirun reaches the pods of a benchmark: by OpenSSH, with a key that is made for this benchmark alone.

The operator makes one key pair and puts it into a Secret that goes with the benchmark. It proves the workers to the
master and the master to the workers, so neither trusts anything that it has not been given. Servers run as the pod's
own user, listen only on the address that is measured, and run commands for this one key; nothing else is allowed.
The operator can make and delete Secrets, never read them: a Secret's name holds the benchmark's uid.
"""

from __future__ import annotations

import base64
import os
import pwd
import shlex
import shutil
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.common import MpiSpec
from scaletest.kinds.kind import BenchmarkFailed, ExecutionSite, Failure, Kind, Task
from scaletest.model.errors import UsageError

MOUNT, KEY, PUBLIC = "/ssh", "key", "key.pub"
_TYPE = b"ssh-ed25519"
# Copies to workers that run at the same time.
AT_ONCE = 16
_SERVER = """\
Port {port}
ListenAddress {address}
HostKey {folder}/key
AuthorizedKeysFile {folder}/authorized_keys
AuthenticationMethods publickey
PermitRootLogin prohibit-password
UsePAM no
# the home of the pod's user is /tmp, which is everybody's; the files named here are not below it by chance
StrictModes no
DisableForwarding yes
PermitTTY no
PermitUserRC no
PrintMotd no
MaxStartups 256
PidFile none
LogLevel ERROR
"""
_CLIENT = """\
Host *
  Port {port}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
  UpdateHostKeys no
  BatchMode yes
  ConnectTimeout 30
  LogLevel ERROR
"""


def wanted(kind: Kind) -> bool:
    """Whether its parts start processes on each other."""
    return issubclass(kind.spec, MpiSpec)


# -- in the operator ------------------------------------------------------------------------------------------------


def secret_name(name: str, uid: str) -> str:
    """Of the Secret of that very benchmark."""
    return f"{name}-ssh-{uid[:8]}"


def pair() -> dict[str, str]:
    """A new key pair as the data of a Secret. Raises UsageError where the library is not installed."""
    try:
        from nacl.signing import SigningKey
    except ImportError as error:
        raise UsageError("PyNaCl is not installed", hint="pip install 'scaletest[operator]'") from error
    key = SigningKey.generate()
    private, public = written(bytes(key), bytes(key.verify_key))
    return {KEY: base64.b64encode(private).decode(), PUBLIC: base64.b64encode(public).decode()}


def written(seed: bytes, public: bytes) -> tuple[bytes, bytes]:
    """An Ed25519 key pair, not encrypted, as OpenSSH writes it: the files PROTOCOL.key of OpenSSH and RFC 8709."""
    blob = _strings(_TYPE, public)
    # twice the same number tells a reader that a passphrase was right, and there is none
    secret = bytes(8) + blob + _strings(seed + public, b"")
    secret += bytes(range(1, -len(secret) % 8 + 1))
    whole = b"openssh-key-v1\0" + _strings(b"none", b"none", b"") + struct.pack(">I", 1) + _strings(blob, secret)
    text = base64.b64encode(whole).decode()
    lines = [text[at : at + 70] for at in range(0, len(text), 70)]
    private = ["-----BEGIN OPENSSH PRIVATE KEY-----", *lines, "-----END OPENSSH PRIVATE KEY-----", ""]
    return "\n".join(private).encode(), _TYPE + b" " + base64.b64encode(blob) + b"\n"


def _strings(*given: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(one)) + one for one in given)


def mounted(pod: Mapping[str, Any], secret: str) -> None:
    """Give the pod's container the key. Root owns it: each part makes a copy that ssh accepts as its own."""
    pod["volumes"].append({"name": "ssh", "secret": {"secretName": secret, "defaultMode": 0o444}})
    pod["containers"][0]["volumeMounts"].append({"name": "ssh", "mountPath": MOUNT, "readOnly": True})


# -- in a pod -------------------------------------------------------------------------------------------------------


def server(benchmark: Benchmark, site: ExecutionSite, index: int, keys: Path, folder: Path) -> Task:
    """The SSH server of a worker, its files written into the folder. Raises Failed."""
    program = shutil.which("sshd")
    if program is None:
        raise BenchmarkFailed(
            Failure.NO_BINARY, "sshd not found", remedy="install it, as in: apt install openssh-server"
        )
    _can_log_in()
    spec = benchmark.spec
    assert isinstance(spec, MpiSpec)
    public = _copied(keys, folder)
    text = _SERVER.format(port=spec.ssh_port, address=site.address("worker", index), folder=folder)
    # a session knows nothing of the container's environment, which says where programs of other images are
    known = [f'"{name}={os.environ[name]}"' for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ]
    _write(folder / "sshd_config", text + (f"SetEnv {' '.join(known)}\n" if known else ""))
    _write(folder / "authorized_keys", f"restrict {public}\n")
    return Task("worker", index, (program, "-D", "-e", "-f", str(folder / "sshd_config")), port=spec.ssh_port)


def client(benchmark: Benchmark, keys: Path, folder: Path) -> str:
    """The path of a configuration of ssh with which the workers are reached. Raises Failed."""
    _can_log_in()
    spec = benchmark.spec
    assert isinstance(spec, MpiSpec)
    _write(folder / "known_hosts", f"* {_copied(keys, folder)}\n")
    return _write(folder / "ssh_config", _CLIENT.format(port=spec.ssh_port, folder=folder))


def copies(site: ExecutionSite, folder: Path) -> Sequence[tuple[str, ...]]:
    """Commands that copy a folder to each worker's host, to the same place there."""
    place = shlex.quote(str(folder))
    there = shlex.quote(f"mkdir -p {place} && tar -C {place} -xf -")
    ssh = f"ssh -F {shlex.quote(site.ssh)}"
    hosts = dict.fromkeys(peer.host for peer in site.peers["worker"])
    return [
        ("bash", "-o", "pipefail", "-c", f"tar -C {place} -cf - . | {ssh} {shlex.quote(host)} {there}")
        for host in hosts
    ]


def _copied(keys: Path, folder: Path) -> str:
    """The public key; the private one is in the folder then, readable for its owner alone."""
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        _write(folder / KEY, (keys / KEY).read_text("utf-8"))
        return (keys / PUBLIC).read_text("utf-8").strip()
    except OSError as error:
        raise BenchmarkFailed(Failure.REFUSED, f"the key of this benchmark cannot be read: {error}") from error


def _write(path: Path, text: str) -> str:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return str(path)


def _can_log_in() -> None:
    """ssh wants a name and a shell of whoever runs it. Raises Failed."""
    try:
        user = pwd.getpwuid(os.getuid())
    except KeyError as error:
        raise BenchmarkFailed(
            Failure.REFUSED,
            f"user {os.getuid()} has no name, which ssh needs",
            remedy="add it to the image's /etc/passwd, or let pods run as the image's own user",
        ) from error
    if user.pw_shell.endswith(("nologin", "false")):
        raise BenchmarkFailed(
            Failure.REFUSED,
            f"user {user.pw_name} has the shell {user.pw_shell}, so nothing can be started by ssh",
            remedy="give it /bin/sh in the image's /etc/passwd",
        )
