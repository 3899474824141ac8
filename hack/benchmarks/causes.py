"""Bottlenecks made on purpose: a command whose cause of lost scaling is known, with the object that must be named.

python -m hack.benchmarks.causes NAME ... [--workers 4] [--seconds 5]

runs each command with one worker and with several, and prints the mean seconds of a request by state: what grew must be
the injected state. Tests use the same injectors. `disk` and `quota` need the right to make control groups.

python -m hack.benchmarks.causes --cost [--workers 8] [--seconds 10] [--pairs 5]

measures what sampling costs: CPU seconds of the workers themselves, with and without it in alternation.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from scaletest.model.activity import Activity, State
from scaletest.system.waiting import Wake

CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Injected:
    """A command, and the truth about it. object: what must be named, "" for nothing.

    join: the control group's file that a worker must write its process id to before it runs the command.
    """

    command: tuple[str, ...]
    state: State
    object: str = ""
    join: str = ""


class Unsuitable(Exception):
    """This machine cannot inject that."""


Injector = Callable[[Path], AbstractContextManager[Injected]]


def python(code: str, *arguments: object) -> tuple[str, ...]:
    """A command that runs Python code without the packages of this environment."""
    return (sys.executable, "-S", "-c", code, *map(str, arguments))


@contextmanager
def cpu(folder: Path) -> Iterator[Injected]:
    """Computes; with more workers than cores they wait for one."""
    yield Injected(python("sum(range(8_000_000))"), State.CPU_WAIT)


_FLOCK = """
import fcntl, sys, time
with open(sys.argv[1], "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    time.sleep(float(sys.argv[2]))
    fcntl.flock(file, fcntl.LOCK_UN)
time.sleep(float(sys.argv[2]))
"""
_FCNTL = _FLOCK.replace("fcntl.flock", "fcntl.lockf")


@contextmanager
def flock(folder: Path, hold_s: float = 0.15) -> Iterator[Injected]:
    """Half of its time it holds a file lock."""
    path = folder / "shared.lock"
    yield Injected(python(_FLOCK, path, hold_s), State.FILE_LOCK, str(path))


@contextmanager
def fcntl_lock(folder: Path, hold_s: float = 0.15) -> Iterator[Injected]:
    """The same with a record lock."""
    path = folder / "records.lock"
    yield Injected(python(_FCNTL, path, hold_s), State.FILE_LOCK, str(path))


_SEMAPHORE = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
libc.sem_open.restype = ctypes.c_void_p
semaphore = ctypes.c_void_p(libc.sem_open(sys.argv[1].encode(), os.O_CREAT, 0o600, 1))
libc.sem_wait(semaphore)
time.sleep(float(sys.argv[2]))
libc.sem_post(semaphore)
time.sleep(float(sys.argv[2]))
"""


@contextmanager
def semaphore(folder: Path, hold_s: float = 0.15) -> Iterator[Injected]:
    """Half of its time it holds a POSIX semaphore in shared memory."""
    name = f"scaletest-{os.getpid()}-{time.monotonic_ns()}"
    path = Path("/dev/shm") / f"sem.{name}"
    try:
        yield Injected(python(_SEMAPHORE, f"/{name}", hold_s), State.LOCK, str(path))
    finally:
        path.unlink(missing_ok=True)


_SERVICE = """
import socket, sys, threading, time
unix = "/" in sys.argv[1]
server = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
server.bind(sys.argv[1] if unix else (sys.argv[1], 0))
server.listen(128)
slots = threading.Semaphore(int(sys.argv[2]))
def serve(connection):
    with connection:
        connection.recv(1)
        with slots:
            time.sleep(float(sys.argv[3]))
        connection.sendall(b"x")
print(sys.argv[1] if unix else "%s:%d" % server.getsockname(), flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""
_CLIENT = """
import socket, sys
host, _, port = sys.argv[1].rpartition(":")
connection = socket.socket(socket.AF_INET if port.isdigit() else socket.AF_UNIX)
connection.connect((host, int(port)) if port.isdigit() else sys.argv[1])
connection.sendall(b"x")
connection.recv(1)
"""


@contextmanager
def _service(where: str, slots: int, seconds: float) -> Iterator[Injected]:
    with subprocess.Popen(python(_SERVICE, where, slots, seconds), stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            yield Injected(python(_CLIENT, address), State.NETWORK, address)
        finally:
            server.kill()


def tcp(folder: Path, slots: int = 2, seconds: float = 0.2) -> AbstractContextManager[Injected]:
    """Asks a service that serves a few at a time."""
    return _service("127.0.0.1", slots, seconds)


def unix(folder: Path, slots: int = 2, seconds: float = 0.2) -> AbstractContextManager[Injected]:
    """The same over a unix socket."""
    return _service(str(folder / "service.sock"), slots, seconds)


_WRITE = """
import mmap, os, sys
data = mmap.mmap(-1, 1 << 20)
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
for _ in range(int(sys.argv[2])):
    os.pwrite(file, data, 0)
    os.fsync(file)
"""


@contextmanager
def disk(folder: Path, bytes_per_s: int = 20 << 20, megabytes: int = 2) -> Iterator[Injected]:
    """Writes past the page cache to a disk that its control group makes slow."""
    device = os.stat(folder).st_dev  # noqa: PTH116
    numbers = f"{os.major(device)}:{os.minor(device)}"
    path = folder / "written"
    with _group("blkio", {"blkio.throttle.write_bps_device": f"{numbers} {bytes_per_s}"}) as join:
        yield Injected(python(_WRITE, path, megabytes), State.DISK, str(path), join)


@contextmanager
def quota(folder: Path, cores: float = 0.2) -> Iterator[Injected]:
    """Computes under a CPU limit that all workers share."""
    with _group("cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(int(cores * 100_000))}) as join:
        yield Injected(python("sum(range(8_000_000))"), State.THROTTLED, join=join)


@contextmanager
def _group(controller: str, values: Mapping[str, str]) -> Iterator[str]:
    """A control group of version 1; the file to join it by. Raises Unsuitable."""
    base = CGROUPS / controller
    group = base / f"scaletest-{os.getpid()}-{time.monotonic_ns()}"
    try:
        group.mkdir()
    except OSError as error:
        raise Unsuitable(f"no control group of {controller} can be made: {error}") from error
    try:
        for name, value in values.items():
            (group / name).write_text(value, encoding="ascii")
        yield str(group / "cgroup.procs")
    except PermissionError as error:
        raise Unsuitable(f"the limit of {controller} cannot be set: {error}") from error
    finally:
        _leave(base, group)


def _leave(base: Path, group: Path) -> None:
    for pid in (group / "cgroup.procs").read_text(encoding="ascii").split():
        try:
            (base / "cgroup.procs").write_text(pid, encoding="ascii")
        except OSError:  # it has just ended
            continue
    group.rmdir()


INJECTORS: Mapping[str, Injector] = {
    "cpu": cpu,
    "flock": flock,
    "fcntl": fcntl_lock,
    "semaphore": semaphore,
    "tcp": tcp,
    "unix": unix,
    "disk": disk,
    "quota": quota,
}


def measure(injected: Injected, workers: int, seconds: float, *, sampled: bool = True) -> list[Activity | None]:
    """What workers that run the command over and over say of each run. Every worker is a process of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers) as pool:
        rows = pool.starmap(_work, [(injected, seconds, sampled)] * workers, chunksize=1)
    return [activity for row in rows for activity in row]


def _work(injected: Injected, seconds: float, sampled: bool) -> list[Activity | None]:
    from workers.runtime import Runtime, Settings

    if injected.join:
        Path(injected.join).write_text(str(os.getpid()), encoding="ascii")
    runtime = Runtime(Settings(command=injected.command, no_causes=not sampled), Wake())
    activities, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        result, _ = runtime.run((), 0.0)
        activities.append(result.activity)
    runtime.close()
    return activities


def own_cpu_s(command: tuple[str, ...], workers: int, seconds: float, *, sampled: bool) -> float:
    """CPU seconds a second that the workers themselves take, all together, without what they run."""
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        return sum(pool.starmap(_own_cpu_s, [(command, seconds, sampled)] * workers, chunksize=1)) / seconds


def _own_cpu_s(command: tuple[str, ...], seconds: float, sampled: bool) -> float:
    _work(Injected(("/bin/true",), State.IDLE), 0.5, sampled)
    began = time.process_time()
    _work(Injected(command, State.SLEEP), seconds, sampled)
    return time.process_time() - began


def means(activities: Sequence[Activity | None]) -> dict[State, float]:
    """Mean seconds of a request by state."""
    known = [activity for activity in activities if activity is not None]
    sums: dict[State, float] = defaultdict(float)
    for activity in known:
        for state, seconds in activity.seconds.items():
            sums[state] += seconds
    return {state: sums[state] / len(known) for state in State if sums[state]}


def objects(activities: Sequence[Activity | None], state: State) -> dict[str, float]:
    """Seconds by object of one state, the longest first."""
    sums: dict[str, float] = defaultdict(float)
    for activity in activities:
        for wait in activity.waits if activity else ():
            if wait.state is state:
                sums[wait.object] += wait.seconds
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _show(name: str, workers: int, seconds: float) -> None:
    folder = Path(tempfile.mkdtemp(prefix="scaletest-causes-"))
    try:
        with INJECTORS[name](folder) as injected:
            few, many = (measure(injected, count, seconds) for count in (1, workers))
    except Unsuitable as error:
        print(json.dumps({"cause": name, "unsuitable": str(error)}), flush=True)
        return
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    before, after = means(few), means(many)
    grown = {state: round(after.get(state, 0.0) - before.get(state, 0.0), 4) for state in State}
    row = {
        "cause": name,
        "workers": workers,
        "runs": [len(few), len(many)],
        "seconds": [round(sum(before.values()), 4), round(sum(after.values()), 4)],
        "grown": {state.value: value for state, value in grown.items() if abs(value) >= 0.001},
        "first": max(grown, key=lambda state: grown[state]).value,
        "injected": injected.state.value,
        "object": next(iter(objects(many, injected.state)), ""),
        "injected_object": injected.object,
    }
    print(json.dumps(row), flush=True)


def _show_cost(command: tuple[str, ...], workers: int, seconds: float, pairs: int) -> None:
    rows = []
    for _ in range(pairs):
        with_, without = (own_cpu_s(command, workers, seconds, sampled=sampled) for sampled in (True, False))
        rows.append(with_ - without)
        print(json.dumps({"with": round(with_, 5), "without": round(without, 5)}), flush=True)
    mean, deviation = statistics.mean(rows), statistics.stdev(rows) if len(rows) > 1 else 0.0
    print(json.dumps({"workers": workers, "cores": round(mean, 5), "deviation": round(deviation, 5)}), flush=True)


def main() -> int:
    """Run the named injectors, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*INJECTORS, []], metavar="NAME", help=", ".join(INJECTORS))
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--command", default="/bin/sleep 0.5", help="of --cost")
    arguments = parser.parse_args()
    if arguments.cost:
        _show_cost(tuple(arguments.command.split()), arguments.workers, arguments.seconds, arguments.pairs)
        return 0
    for name in arguments.names or INJECTORS:
        _show(name, arguments.workers, arguments.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
