"""Lets mpirun reach the pods of a benchmark by OpenSSH, with a key for this benchmark alone.

The operator creates one key pair and stores it in a Secret that is deleted with the benchmark. The
same key identifies the workers to the master and the master to the workers; neither trusts any
other key. Servers run as the pod's own user, listen only on the address that is measured, and run
commands for this key; nothing else is allowed. The operator may create and delete Secrets, but not
read them, so it cannot check whose a Secret is: the Secret's name holds the benchmark's uid.
"""

import base64
import os
import shlex
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

from scaletest.benchmarks.documents import Benchmark
from scaletest.benchmarks.kinds import (
    BenchmarkFailed,
    ExecutionSite,
    Failure,
    Kind,
    MpiSpec,
    Task,
)
from scaletest.model.errors import UsageError

MOUNT, KEY, PUBLIC = "/ssh", "key", "key.pub"
_TYPE = b"ssh-ed25519"
COPIES_AT_ONCE = 16
_SERVER = """\
Port {port}
ListenAddress {address}
HostKey {folder}/key
AuthorizedKeysFile {folder}/authorized_keys
AuthenticationMethods publickey
PermitRootLogin prohibit-password
UsePAM no
# the home of the pod's user is /tmp, which others may write; the files named above are private
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


def is_needed(kind: Kind) -> bool:
    """Check whether parts of this kind start processes on each other."""
    return issubclass(kind.spec, MpiSpec)


def secret_name(name: str, uid: str) -> str:
    """Return the name of the benchmark's Secret."""
    return f"{name}-ssh-{uid[:8]}"


def make_key_pair() -> dict[str, str]:
    """Create an Ed25519 key pair as the data of a Secret.

    It is encoded as OpenSSH does, without encryption (PROTOCOL.key, RFC 8709). Raises UsageError
    where PyNaCl is not installed.
    """
    try:
        from nacl.signing import SigningKey
    except ImportError as error:
        raise UsageError(
            "PyNaCl is not installed", hint="pip install 'scaletest[operator]'"
        ) from error
    key = SigningKey.generate()
    seed, public = bytes(key), bytes(key.verify_key)
    blob = _encode_strings(_TYPE, public)
    # the same number twice: a reader sees by it that decryption was right. Here both are zero,
    # since nothing is encrypted
    secret = bytes(8) + blob + _encode_strings(seed + public, b"")
    # padded with 1, 2, 3, ... to a whole number of blocks
    secret += bytes(range(1, -len(secret) % 8 + 1))
    encoded = (
        b"openssh-key-v1\0"
        + _encode_strings(b"none", b"none", b"")  # cipher, key derivation and its options
        + struct.pack(">I", 1)  # number of keys
        + _encode_strings(blob, secret)
    )
    text = base64.b64encode(encoded).decode()
    private = [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        *(text[start : start + 70] for start in range(0, len(text), 70)),
        "-----END OPENSSH PRIVATE KEY-----",
        "",
    ]
    files = {
        KEY: "\n".join(private).encode(),
        PUBLIC: _TYPE + b" " + base64.b64encode(blob) + b"\n",
    }
    return {name: base64.b64encode(data).decode() for name, data in files.items()}


def _encode_strings(*strings: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(string)) + string for string in strings)


def server_task(
    benchmark: Benchmark, site: ExecutionSite, index: int, keys: Path, folder: Path
) -> Task:
    """Build the task that runs a worker's SSH server, and write its files into the folder.

    Raises BenchmarkFailed.
    """
    program = shutil.which("sshd")
    if program is None:
        raise BenchmarkFailed(
            Failure.NO_BINARY,
            "sshd not found",
            remedy="install it: apt install openssh-server",
        )
    port = _port(benchmark)
    public = _copy_key(keys, folder)
    text = _SERVER.format(port=port, address=site.address("worker", index), folder=folder)
    # a session does not inherit the container's environment, by which images say where programs are
    inherited = [
        f'"{name}={os.environ[name]}"' for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ
    ]
    if inherited:
        text += f"SetEnv {' '.join(inherited)}\n"
    config = _write(folder / "sshd_config", text)
    _write(folder / "authorized_keys", f"restrict {public}\n")
    return Task("worker", index, (program, "-D", "-e", "-f", config), port=port)


def write_client_config(benchmark: Benchmark, keys: Path, folder: Path) -> str:
    """Write ssh's configuration for the workers, and return its path."""
    _write(folder / "known_hosts", f"* {_copy_key(keys, folder)}\n")
    return _write(folder / "ssh_config", _CLIENT.format(port=_port(benchmark), folder=folder))


def copy_commands(site: ExecutionSite, folder: Path) -> Sequence[tuple[str, ...]]:
    """Build the commands that copy a folder to the same path on each worker's host."""
    path = shlex.quote(str(folder))
    pack = f"tar -C {path} -cf - . | ssh -F {shlex.quote(site.ssh)}"
    unpack = shlex.quote(f"mkdir -p {path} && tar -C {path} -xf -")
    return [
        ("bash", "-o", "pipefail", "-c", f"{pack} {shlex.quote(host)} {unpack}")
        for host in dict.fromkeys(peer.host for peer in site.peers["worker"])
    ]


def _port(benchmark: Benchmark) -> int:
    assert isinstance(benchmark.spec, MpiSpec)
    return benchmark.spec.ssh_port


def _copy_key(keys: Path, folder: Path) -> str:
    """Copy the private key into the folder, for its owner alone, and return the public key."""
    folder.mkdir(mode=0o700, exist_ok=True)
    _write(folder / KEY, (keys / KEY).read_text("utf-8"))
    return (keys / PUBLIC).read_text("utf-8").strip()


def _write(path: Path, text: str) -> str:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return str(path)
