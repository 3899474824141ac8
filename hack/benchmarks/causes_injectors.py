"""Bottlenecks made on purpose: commands whose cause is known, with the object to be named.

disk, quota, memory, network and device need root: control groups (version 1), network namespaces, a
mount.
"""

import ctypes
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hack.benchmarks import causes_programs as programs
from hack.benchmarks.causes_programs import measured, python
from scaletest.model import State
from scaletest.model.activity import TOKENS

CGROUPS = Path("/sys/fs/cgroup")
GAP = "gap"
NONE = ""


@dataclass(frozen=True, slots=True)
class Injected:
    """A command, and the truth about it.

    state: where the added time is spent; GAP for idle workers, NONE when no time is added. object:
    what must be named.
    join: the control group's file that a worker must write its process id to before it runs the
    command.
    options: of the validation. client: words before those of the validation, instead of the usual
    program.
    slow: the device that alone is slow. tells_cpu: whether the command tells how long it ran on a
    CPU, so that the rest of its run time was the injected wait; else it tells how long that was.
    service: the address of one to be loaded until it is saturated, in the place of a command.
    step_s: how long each step is measured, longer where looks at few requests tell states that
    follow each other apart less well.
    """

    command: tuple[str, ...]
    state: str
    object: str = ""
    join: str = ""
    options: tuple[str, ...] = ()
    client: tuple[str, ...] = (sys.executable, "-m", "scaletest")
    slow: str = ""
    tells_cpu: bool = False
    service: str = ""
    step_s: float = 4.0


class Unsuitable(Exception):
    """Told where a machine cannot inject a bottleneck."""


Injector = Callable[[Path, float], AbstractContextManager[Injected]]


@contextmanager
def cpu(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Compute; with more workers than cores they wait for one."""
    command = measured(programs.COMPUTE, int(8_000_000 * scale), seconds=programs.COMPUTED)
    yield Injected(command, State.CPU_WAIT, tells_cpu=True)


@contextmanager
def flock(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Half of its time it holds a file lock."""
    path = folder / "shared.lock"
    command = measured(programs.FLOCK, path, 0.15 * scale)
    yield Injected(command, State.FILE_LOCK, str(path), step_s=8.0)


@contextmanager
def forking(injector: Injector, folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Do what an injector's command does as one of several commands of a shell script."""
    with injector(folder, scale) as injected:
        yield replace(injected, command=programs.scripted(injected.command))


@contextmanager
def pinned(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Compute on one core, whatever the machine has."""
    command = measured(programs.COMPUTE, int(4_000_000 * scale), seconds=programs.COMPUTED)
    yield Injected(("taskset", "-c", "0", *command), State.CPU_WAIT, tells_cpu=True)


@contextmanager
def flock_script(folder: Path, scale: float = 1.0, *, between: str = "") -> Iterator[Injected]:
    """Half of its time this shell script holds a file lock."""
    path = folder / "shared.lock"
    code = f"{programs.SCRIPT_BEGIN}{between}{programs.SCRIPT_END}"
    command = programs.script(code, path, 0.1 * scale)
    yield Injected(command, State.FILE_LOCK, str(path))


def forks(folder: Path, scale: float = 1.0) -> AbstractContextManager[Injected]:
    """Do the same, with many short commands while it holds the lock."""
    return flock_script(folder, scale, between=programs.FORKS)


@contextmanager
def sqlite(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Write to a database half of its time; who waits for that tries again and again."""
    path = folder / "shared.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("create table written (number)")
    connection.close()
    yield Injected(
        measured(programs.SQLITE, path, 0.15 * scale), State.SLEEP, str(path), step_s=12.0
    )


@contextmanager
def lock_file(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Half of its time it has a file that nobody else may create meanwhile, who tries again."""
    yield Injected(
        measured(programs.LOCK_FILE, folder / "lock", 0.15 * scale), State.SLEEP, step_s=8.0
    )


@contextmanager
def fifo(folder: Path, scale: float = 1.0, *, tokens: int = 1) -> Iterator[Injected]:
    """Take the only token out of a pipe for half of its time."""
    path = folder / "tokens"
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR)
    os.write(pipe, tokens * b"x")
    try:
        command = programs.script(programs.TOKEN_SCRIPT, path, 0.1 * scale)
        yield Injected(command, State.PIPE, f"{path}{TOKENS}")
    finally:
        os.close(pipe)


@contextmanager
def system_v(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Half of its time it holds a semaphore of System V."""
    libc = ctypes.CDLL(None)
    number = libc.semget(0, 1, 0o600)
    set_value, remove = 16, 0
    libc.semctl(number, 0, set_value, 1)
    try:
        command = measured(programs.SYSTEM_V, number, 0.15 * scale)
        yield Injected(command, State.LOCK, f"System V semaphores {number}", step_s=8.0)
    finally:
        libc.semctl(number, 0, remove)


@contextmanager
def udp(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Asks a service that serves two datagrams at a time."""
    with _printing(python(programs.DATAGRAM_SERVER, "127.0.0.1", 2, 0.2 * scale)) as address:
        yield Injected(measured(programs.DATAGRAM, address), State.NETWORK, address)


@contextmanager
def udp_unconnected(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Asks it by a socket without a peer, of which nothing tells whom it waits for."""
    with udp(folder, scale) as asking:
        address = asking.object
        yield Injected(measured(programs.SENT_DATAGRAM, address), State.NETWORK)


@contextmanager
def pool(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Serve two requests at a time: the others wait inside, where nobody waits for a client."""
    with _printing(python(programs.POOL, 2, 0.1 * scale)) as address:
        yield Injected((), State.LOCK, service=address)


@contextmanager
def lock_and_tcp(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Wait for a lock, then for a service: two causes, of which the lock is the larger."""
    path = folder / "shared.lock"
    with _printing(python(programs.SERVER, "127.0.0.1", 2, 0.1 * scale, 1)) as address:
        command = measured(programs.LOCK_AND_CLIENT, path, address, 0.2 * scale)
        yield Injected(command, State.FILE_LOCK, str(path), step_s=8.0)


@contextmanager
def lock_or_tcp(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Wait for a lock or for a service, by chance."""
    path = folder / "shared.lock"
    with _printing(python(programs.SERVER, "127.0.0.1", 1, 0.1 * scale, 1)) as address:
        # without a pause behind it, so that two workers wait for each other
        lock = programs.FLOCK.rpartition("time.sleep")[0].replace("sys.argv[2]", "sys.argv[3]")
        client = programs.CLIENT.replace("with Kept():", "if True:")
        command = measured(
            programs.LOCK_OR_CLIENT,
            path,
            address,
            0.2 * scale,
            lock,
            client.replace("sys.argv[1]", "sys.argv[2]"),
        )
        yield Injected(command, State.FILE_LOCK, str(path), step_s=8.0)


@contextmanager
def fcntl_lock(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Half of its time it holds a record lock of a file."""
    path = folder / "records.lock"
    command = measured(programs.FCNTL, path, 0.15 * scale)
    yield Injected(command, State.FILE_LOCK, str(path), step_s=8.0)


@contextmanager
def semaphore(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Half of its time it holds a POSIX semaphore in shared memory."""
    name = f"scaletest-{os.getpid()}-{time.monotonic_ns()}"
    path = Path("/dev/shm") / f"sem.{name}"
    command = measured(programs.SEMAPHORE, f"/{name}", 0.15 * scale)
    try:
        yield Injected(command, State.LOCK, str(path), step_s=8.0)
    finally:
        path.unlink(missing_ok=True)


def tcp(folder: Path, scale: float = 1.0, *, slots: int = 2) -> AbstractContextManager[Injected]:
    """Asks a service that serves a few at a time."""
    return _asking("127.0.0.1", slots, 0.2 * scale)


def unix(folder: Path, scale: float = 1.0, *, slots: int = 2) -> AbstractContextManager[Injected]:
    """Asks such a service over a unix socket."""
    return _asking(str(folder / "service.sock"), slots, 0.2 * scale)


@contextmanager
def _asking(address: str, slots: int, seconds: float) -> Iterator[Injected]:
    """Provide a service at an address, where a port is chosen for a host.

    seconds: how long it serves.
    """
    with _printing(python(programs.SERVER, address, slots, seconds, 1)) as chosen:
        yield Injected(measured(programs.CLIENT, chosen), State.NETWORK, chosen)


@contextmanager
def network(
    folder: Path, scale: float = 1.0, *, bytes_per_s: int = 6_000_000
) -> Iterator[Injected]:
    """Download over a link that is full when two do.

    A token bucket is on the server's side of a pair of interfaces.
    """
    with _link(bytes_per_s) as (namespace, host):
        server = python(programs.SERVER, host, 64, 0.0, int(0.15 * scale * bytes_per_s))
        with _printing(("ip", "netns", "exec", namespace, *server)) as address:
            yield Injected(measured(programs.CLIENT, address), State.NETWORK, address)


@contextmanager
def disk(folder: Path, scale: float = 1.0, *, bytes_per_s: int = 20 << 20) -> Iterator[Injected]:
    """Write past the page cache to a disk that its control group makes slow."""
    path = folder / "written"
    writes = {"blkio.throttle.write_bps_device": f"{_disk(folder)} {int(bytes_per_s / scale)}"}
    with _group("blkio", writes) as join:
        yield Injected(measured(programs.WRITE, path, 2), State.DISK, str(path), join)


@contextmanager
def quota(folder: Path, scale: float = 1.0, *, cores: float = 0.3) -> Iterator[Injected]:
    """Compute under a CPU limit that all workers share."""
    command = measured(programs.COMPUTE, int(4_000_000 * scale), seconds=programs.COMPUTED)
    with _group(
        "cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(int(cores * 100_000))}
    ) as join:
        yield Injected(command, State.THROTTLED, join=join, tells_cpu=True)


@contextmanager
def memory(folder: Path, scale: float = 1.0, *, limit_bytes: int = 8 << 20) -> Iterator[Injected]:
    """Touch all pages of a mapped file of the worker's, beside others in a control group.

    The group has room for the files of two.

    With more workers each page is reclaimed before it is touched again, and its fault waits until
    it is read: a wait for memory, although a disk, which is slow here, ends it.
    """
    size = int(3 * scale * 256) << 12
    reads = {"blkio.throttle.read_iops_device": f"{_disk(folder)} 6000"}
    with (
        _group("memory", {"memory.limit_in_bytes": str(limit_bytes)}) as join,
        _group("blkio", reads) as slow,
    ):
        command = measured(programs.TOUCH, folder, size, 0.2, join, slow)
        yield Injected(command, State.MEMORY, step_s=12.0)


@contextmanager
def device(folder: Path, scale: float = 1.0, *, slots: int = 2) -> Iterator[Injected]:
    """Read from a device that serves a few at a time: a file of a FUSE file system of our own."""
    mount = folder / "devices"
    mount.mkdir()
    path = str(mount / "gpu0")
    server = (
        sys.executable,
        "-m",
        "hack.benchmarks.fuse",
        str(mount),
        "gpu0",
        str(slots),
        str(0.2 * scale),
    )
    with _printing(server):
        yield Injected(
            measured(programs.READ_DEVICE), State.DEVICE, path, options=("--device-glob", path)
        )


@contextmanager
def slow_worker(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Sleeps, one worker of four far longer: the one whose device says so."""
    for number, seconds in enumerate((0.2, 0.2, 0.2, 0.9)):
        (folder / f"device{number}").write_text(str(seconds * scale), encoding="ascii")
    options = ("--device-glob", f"{folder}/device*")
    command = measured(programs.SLEEP_BY_DEVICE)
    yield Injected(command, State.SLEEP, options=options, slow=f"{folder}/device3")


@contextmanager
def slow_client(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Sleeps, and the client cannot send requests as fast as the workers do them."""
    client = python(programs.SLOW_CLIENT, 0.08 * scale)
    client = (client[0], *client[2:])  # with the packages of this environment
    yield Injected(measured(programs.SLEEP, 0.1), GAP, client=client)


@contextmanager
def linear(folder: Path, scale: float = 1.0) -> Iterator[Injected]:
    """Sleeps: nothing is shared."""
    yield Injected(("/bin/sleep", str(0.3 * scale)), NONE)


INJECTORS: Mapping[str, Injector] = {
    "cpu": cpu,
    "quota": quota,
    "flock": flock,
    "fcntl": fcntl_lock,
    "script": flock_script,
    "forks": forks,
    "sqlite": sqlite,
    "lock-file": lock_file,
    "fifo": fifo,
    "system-v": system_v,
    "udp": udp,
    "udp-unconnected": udp_unconnected,
    "pool": pool,
    "cpu-forking": partial(forking, cpu),
    "fcntl-forking": partial(forking, fcntl_lock),
    "sqlite-forking": partial(forking, sqlite),
    "tcp-forking": partial(forking, tcp),
    "disk-forking": partial(forking, disk),
    "lock-and-tcp": lock_and_tcp,
    "lock-or-tcp": lock_or_tcp,
    "pinned": pinned,
    "semaphore": semaphore,
    "disk": disk,
    "network": network,
    "tcp": tcp,
    "unix": unix,
    "memory": memory,
    "device": device,
    "slow-worker": slow_worker,
    "slow-client": slow_client,
    "linear": linear,
}


@contextmanager
def _printing(command: Sequence[str]) -> Iterator[str]:
    """Provide a server, and the line that it prints when it is ready.

    Raises Unsuitable when it ends instead.
    """
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdin is not None and server.stdout is not None
            line = server.stdout.readline().strip()
            if not line:
                raise Unsuitable(f"{command[0]} ended with {server.wait()}")
            yield line
            server.stdin.close()
            # who serves until the end of its input cleans up behind itself
            server.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            pass
        finally:
            server.kill()


@contextmanager
def _link(bytes_per_s: int) -> Iterator[tuple[str, str]]:
    """Provide a network namespace behind a slow link, and the address in there.

    Raises Unsuitable.
    """
    name = f"scaletest-{os.getpid()}"
    near, far = f"st{os.getpid()}", f"sf{os.getpid()}"
    # addresses of the range for benchmarks of networks
    near_address, far_address = "198.18.77.1", "198.18.77.2"
    with ExitStack() as stack:
        _ip("netns", "add", name)
        stack.callback(_ip, "netns", "del", name)
        _ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
        _ip("addr", "add", f"{near_address}/30", "dev", near)
        _ip("link", "set", near, "up")
        _ip("-n", name, "addr", "add", f"{far_address}/30", "dev", far)
        _ip("-n", name, "link", "set", far, "up")
        bucket = ("tbf", "rate", f"{8 * bytes_per_s}bit", "burst", "64kb", "latency", "100ms")
        _run_as_root("tc", "-n", name, "qdisc", "add", "dev", far, "root", *bucket)
        yield name, far_address


def _ip(*arguments: str) -> None:
    _run_as_root("ip", *arguments)


def _run_as_root(*command: str) -> None:
    """Run a command that needs the right to. Raises Unsuitable."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Unsuitable(f"there is no {command[0]}") from error
    if ended.returncode:
        raise Unsuitable(f"{' '.join(command)}: {ended.stderr.strip()}")


def _disk(folder: Path) -> str:
    """Return the numbers of the disk that a folder is on."""
    device = os.stat(folder).st_dev  # noqa: PTH116
    return f"{os.major(device)}:{os.minor(device)}"


@contextmanager
def _group(controller: str, limits: Mapping[str, str]) -> Iterator[str]:
    """Provide a control group of version 1; the file to join it by. Raises Unsuitable.

    limits: contents by file name.
    """
    base = CGROUPS / controller
    group = base / f"scaletest-{os.getpid()}-{time.monotonic_ns()}"
    try:
        group.mkdir()
    except OSError as error:
        raise Unsuitable(f"no control group of {controller} can be made: {error}") from error
    try:
        for file_name, limit in limits.items():
            (group / file_name).write_text(limit, encoding="ascii")
        yield str(group / "cgroup.procs")
    except PermissionError as error:
        raise Unsuitable(f"the limit of {controller} cannot be set: {error}") from error
    finally:
        _remove(base, group)


def _remove(base: Path, group: Path) -> None:
    """Move what still runs in a group to the base, and remove the group."""
    for pid in (group / "cgroup.procs").read_text(encoding="ascii").split():
        try:
            (base / "cgroup.procs").write_text(pid, encoding="ascii")
        except OSError:  # it has just ended
            continue
    group.rmdir()
