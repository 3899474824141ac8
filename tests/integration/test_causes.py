"""Where requests spend their time, with real processes. What dominates or is named is asserted,
never exact shares.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hack.benchmarks import causes_injectors as injectors
from hack.benchmarks.causes_injectors import Unsuitable
from hack.benchmarks.causes_programs import python
from hack.benchmarks.causes_workers import measure
from scaletest.model import Activity, Outcome, Record, State
from scaletest.system import proc
from scaletest.system.blocking import Blocking, Doing
from scaletest.system.devices.clients import Clients
from scaletest.system.sampler import SHORT_S, RequestSampler
from scaletest.system.socket_diagnosis import tcp_peers
from scaletest.system.sockets import CLIENTS, Sockets
from scaletest.system.tree import Tree
from scaletest.system.waiting import Wake
from tests.conftest import call, eventually
from workers.runtime import Runtime, Settings
from workers.workloads.base import Result
from workers.workloads.program import Program, ProgramOptions

NOBODY = 65534


@pytest.fixture
def wake() -> Iterator[Wake]:
    wake = Wake()
    yield wake
    wake.close()


@contextmanager
def programs(wake: Wake) -> Iterator[Program]:
    program = Program(ProgramOptions(), wake, RequestSampler(sampled_part=1.0))
    try:
        yield program
    finally:
        program.close()


def sampled(wake: Wake, *command: str) -> Activity:
    """The activity of a command that succeeds, which has all states and sums that hold for any
    command.
    """
    with programs(wake) as program:
        return activity_of(program.run(command, 0.0, {}).result)


def activity_of(result: Result) -> Activity:
    assert result.outcome is Outcome.SUCCEEDED, result.error
    assert result.activity is not None
    return result.activity


def longest(activity: Activity) -> State:
    """The state with most seconds, but for waiting for a CPU: how much of that there is the
    machine's others decide.
    """
    waiting = {State.CPU_WAIT, State.THROTTLED}
    return max(set(activity.seconds) - waiting, key=lambda state: activity.seconds[state])


def objects(activity: Activity, state: State) -> set[str]:
    return {wait.object for wait in activity.waits if wait.state is state}


@contextmanager
def lock_held(path: Path) -> Iterator[None]:
    """A lock of ours that is given back after a second or so by a process of its own."""
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with subprocess.Popen(["sleep", str(LONG_S)], pass_fds=[file.fileno()]):
            # only the child holds it from here on
            file.close()
            yield


def test_a_file_lock_is_named_by_its_path(wake: Wake, tmp_path: Path) -> None:
    path = tmp_path / "shared lock"
    with lock_held(path):
        activity = sampled(wake, "flock", str(path), "true")
    assert longest(activity) is State.FILE_LOCK
    assert objects(activity, State.FILE_LOCK) == {str(path)}


def test_a_record_lock_is_named_by_its_path(wake: Wake, tmp_path: Path) -> None:
    path = tmp_path / "records"
    holder = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX)"
    with subprocess.Popen(
        python(f"{holder}; print(1, flush=True); time.sleep({LONG_S})", path), stdout=-1
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        activity = sampled(wake, *python(holder, path))
    assert longest(activity) is State.FILE_LOCK
    assert objects(activity, State.FILE_LOCK) == {str(path)}


@pytest.mark.parametrize("service", [injectors.tcp, injectors.unix])
def test_a_service_is_named_by_its_address(
    wake: Wake, tmp_path: Path, service: injectors.Injector
) -> None:
    with service(tmp_path, 7.5) as injected:
        activity = sampled(wake, *injected.command)
    assert longest(activity) is State.NETWORK
    assert objects(activity, State.NETWORK) == {injected.object}


# What is waited for lasts so long: on a busy machine a program needs a second to begin, and a look
# comes late.
LONG_S = 4.0
POLLS = {
    "select": "select.select([c], [], [])",
    "poll": "p = select.poll(); p.register(c, select.POLLIN); p.poll()",
    "epoll": "p = select.epoll(); p.register(c, select.POLLIN); p.poll()",
}


@pytest.mark.parametrize("name", POLLS)
def test_a_poll_is_a_wait_for_the_peer_of_the_socket_that_is_polled(wake: Wake, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"import select, socket; c = socket.create_connection(('127.0.0.1', {port}))"
        # nobody answers: the limit ends it
        with programs(wake) as program:
            activity = program.run(python(f"{connect}; {POLLS[name]}"), LONG_S, {}).result.activity
    assert activity is not None
    assert objects(activity, State.NETWORK) == {f"127.0.0.1:{port}"}


def test_a_server_that_waits_for_clients_is_idle(wake: Wake) -> None:
    code = (
        "import select, socket; s = socket.create_server(('127.0.0.1', 0)); select.select([s], [],"
        " [], 1)"
    )
    assert longest(sampled(wake, *python(code))) is State.IDLE


def test_a_semaphore_in_shared_memory_is_named(wake: Wake, tmp_path: Path) -> None:
    with injectors.semaphore(tmp_path) as injected, programs(wake) as program:
        name = "/" + injected.object.partition(".")[2]
        # it is taken, and nobody gives it back: the limit ends the wait
        libc = ctypes.CDLL(None)
        libc.sem_open(name.encode(), os.O_CREAT, 0o600, 0)
        result = program.run(injected.command, LONG_S, {}).result
    assert result.activity is not None
    assert longest(result.activity) is State.LOCK
    assert objects(result.activity, State.LOCK) == {injected.object}


def test_a_sleeping_command_is_seen_as_sleep(wake: Wake) -> None:
    assert longest(sampled(wake, "sleep", "1")) is State.SLEEP


def test_a_command_beside_others_waits_for_a_cpu(wake: Wake) -> None:
    spin = python("while True: pass")
    others = [
        subprocess.Popen(spin, start_new_session=True)
        for _ in range(4 * len(os.sched_getaffinity(0)))
    ]
    try:
        activity = sampled(wake, *python("sum(range(10_000_000))"))
    finally:
        for other in others:
            other.kill()
            other.wait()
    seconds = activity.seconds
    assert seconds[State.CPU_WAIT] == max(seconds.values())
    assert seconds[State.ON_CPU] > 0.5 * activity.cpu_s > 0
    assert activity.involuntary_switches > 0


def test_the_time_of_short_lived_children_is_not_observed(wake: Wake) -> None:
    # none of them lives through the time between two looks
    loop = "for i in $(seq 60); do sleep 0.02; done"
    activity = sampled(wake, "sh", "-c", loop)
    assert longest(activity) is State.NOT_OBSERVED
    assert activity.switches > 60


def test_a_child_of_a_child_is_seen(wake: Wake, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock_held(path):
        activity = sampled(wake, "sh", "-c", f"sh -c 'flock {path} true; true'; true")
    assert longest(activity) is State.FILE_LOCK
    assert objects(activity, State.FILE_LOCK) == {str(path)}


def test_the_seconds_sum_to_the_run_time(wake: Wake) -> None:
    for tenths in "0147":
        runtime = Runtime(Settings(command=("sh", "-c", "sleep 0.$0; seq 20000 | tail -1")), wake)
        try:
            result, run_s = runtime.run((tenths,), 0.0)
        finally:
            runtime.close()
        activity = activity_of(result)
        total_s = sum(activity.seconds.values())
        # what the runtime does around the program counts for the request only; a busy machine
        # stretches it
        assert 0 <= run_s - total_s <= 0.5 * run_s
        assert total_s >= int(tenths) / 10
        assert all(seconds > 0 for seconds in activity.seconds.values())


def test_of_short_requests_a_part_is_sampled_and_of_long_ones_and_those_with_a_device_all() -> None:
    sampler = RequestSampler()
    assert sampler.draw() is not None  # nothing is known of the first one
    sampler.ended(0.1)
    drawn = [sampler.draw() is not None for _ in range(1000)]
    assert 400 < sum(drawn) < 600
    assert all(sampler.draw("/dev/null") for _ in range(50))
    for _ in range(50):
        sampler.ended(SHORT_S + 0.5)
    assert all(sampler.draw() for _ in range(50))


def test_a_second_command_has_no_waits_of_the_first(wake: Wake, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with programs(wake) as program:
        with lock_held(path):
            first = activity_of(program.run(["flock", str(path), "true"], 0.0, {}).result)
        second = activity_of(program.run(["sleep", "0.5"], 0.0, {}).result)
    assert State.FILE_LOCK in first.seconds and State.FILE_LOCK not in second.seconds
    assert not second.waits


def test_a_program_that_ends_at_once_has_its_sums(wake: Wake) -> None:
    activity = sampled(wake, "true")
    assert activity.cpu_s > 0 and activity.memory_bytes > 0
    assert activity.seconds[State.ON_CPU] > 0


def test_programs_leave_no_file_open(wake: Wake) -> None:
    with programs(wake) as program:
        counts = []
        for _ in range(4):
            program.run(["sh", "-c", "sleep 0.3 & sleep 0.3"], 0.0, {})
            counts.append(len(os.listdir("/proc/self/fd")))  # noqa: PTH208
    assert len(set(counts)) == 1


def test_a_program_that_is_ended_at_its_limit_has_an_activity(wake: Wake) -> None:
    with programs(wake) as program:
        result = program.run(["sleep", "60"], LONG_S, {}).result
    assert result.outcome is Outcome.TIMED_OUT and result.activity is not None
    assert longest(result.activity) is State.SLEEP


def test_a_device_is_named_by_its_path(wake: Wake, tmp_path: Path) -> None:
    fifo = tmp_path / "device"
    os.mkfifo(fifo)
    code = "import os, sys; os.read(os.open(sys.argv[1], os.O_RDWR), 1)"
    with programs(wake) as program:
        result = program.run(python(code, fifo), LONG_S, {"SCALETEST_DEVICE": str(fifo)}).result
        plain = program.run(python(code, fifo), LONG_S, {}).result
    assert result.activity is not None and plain.activity is not None
    assert objects(result.activity, State.DEVICE) == {str(fifo)}
    assert objects(plain.activity, State.PIPE) == {str(fifo)}


def test_a_character_device_of_no_known_kind_is_a_device(wake: Wake) -> None:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse may not be opened")
    main, other = os.openpty()
    # neither a disk nor a terminal
    assert Blocking()._target(os.getpid(), main).state is State.IDLE
    fuse = os.open("/dev/fuse", os.O_RDWR)
    try:
        assert Blocking()._target(os.getpid(), fuse) == Doing(State.DEVICE, "/dev/fuse")
    finally:
        for descriptor in (main, other, fuse):
            os.close(descriptor)


def test_a_slow_disk_is_named_by_the_file(tmp_path: Path) -> None:
    try:
        with injectors.disk(tmp_path, bytes_per_s=2 << 20) as injected:
            (activity,) = measure(injected, 1, 0.01)
    except Unsuitable as error:
        pytest.skip(str(error))
    assert activity is not None
    assert objects(activity, State.DISK) == {injected.object}


def test_a_cpu_limit_is_told_from_too_few_cores(tmp_path: Path) -> None:
    try:
        with injectors.quota(tmp_path, cores=0.05) as injected:
            (activity,) = measure(injected, 1, 0.01)
    except Unsuitable as error:
        pytest.skip(str(error))
    assert activity is not None
    assert activity.throttled_s > 0 and activity.seconds[State.THROTTLED] > 0


def test_with_no_causes_a_result_has_no_activity(wake: Wake) -> None:
    runtime = Runtime(Settings(command=("/bin/sleep", "0.3"), no_causes=True), wake)
    try:
        result, run_s = runtime.run((), 0.0)
        assert result.activity is None
        assert "activity" not in json.loads(runtime.reply_json("a", "w", result, run_s, 0, 0, 1)[0])
    finally:
        runtime.close()


def test_the_reply_carries_the_activity(wake: Wake) -> None:
    runtime = Runtime(Settings(command=("/bin/sleep", "0.5")), wake)
    try:
        result, run_s = runtime.run((), 0.0)
        reply = json.loads(runtime.reply_json("a", "w", result, run_s, 0, 0, 1)[0])
    finally:
        runtime.close()
    assert Activity.from_dict(reply["activity"]).to_dict() == activity_of(result).to_dict()


# -- what /proc does not tell
# --------------------------------------------------------------------------------------------------


def test_denied_system_calls_leave_the_state_and_the_lock_file(
    wake: Wake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # as Yama does it: nothing that needs the right to trace
    def denied(handle: int, size: int, offset: int, pread=os.pread) -> bytes:  # type: ignore[no-untyped-def]
        if proc.link(f"/proc/self/fd/{handle}").endswith(("/syscall", "/mem")):
            raise PermissionError(1, "Operation not permitted")
        return bytes(pread(handle, size, offset))

    monkeypatch.setattr("scaletest.system.blocking.os.pread", denied)
    path = tmp_path / "lock"
    with lock_held(path), programs(wake) as program:
        locked = activity_of(program.run(["flock", str(path), "true"], 0.0, {}).result)
        slept = activity_of(program.run(["sleep", "1"], 0.0, {}).result)
    assert longest(locked) is State.FILE_LOCK and longest(slept) is State.SLEEP
    if _tells_inodes():
        assert objects(locked, State.FILE_LOCK) == {str(path)}
    assert caplog.text.count("system calls of some programs cannot be read") == 1


def _tells_inodes() -> bool:
    with open("/proc/self/fdinfo/0", encoding="utf-8") as file:  # noqa: PTH123
        return proc.inode_of(file.read()) is not None


def test_hidden_functions_beside_denied_calls_are_not_observed(
    wake: Wake, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = proc.read

    def hidden(path: str, limit: int = 4096) -> bytes:
        return b"0" if path.endswith("/wchan") else read(path, limit)

    monkeypatch.setattr("scaletest.system.proc.read", hidden)
    monkeypatch.setattr("scaletest.system.blocking.calls", dict)
    assert longest(sampled(wake, "sleep", "1")) is State.NOT_OBSERVED


def test_a_mistake_in_a_look_does_not_fail_the_request(
    wake: Wake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr("scaletest.system.tree.Tree.look", broken)
    with programs(wake) as program:
        for _ in range(2):
            assert (
                longest(activity_of(program.run(["sleep", "0.5"], 0.0, {}).result))
                is State.NOT_OBSERVED
            )
    assert caplog.text.count("sampling ended early: ZeroDivisionError: a mistake") == 1


@pytest.mark.skipif(
    os.getuid() != 0, reason="only root can make a program that runs as another user"
)
def test_a_setuid_program_of_another_user_does_not_fail_the_request(tmp_path: Path) -> None:
    folder = Path("/tmp") / f"scaletest-setuid-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        program = folder / "sleep"
        shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
        program.chmod(0o4755)
        activity = _as_nobody(str(program), "1")
    finally:
        shutil.rmtree(folder)
    # the call that it sleeps in may not be read, nor the function
    assert longest(activity) is State.NOT_OBSERVED
    assert activity.memory_bytes > 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_waits_are_named_for_a_user_without_privileges() -> None:
    folder = Path("/tmp") / f"scaletest-nobody-{os.getpid()}"
    folder.mkdir(mode=0o755)
    path = folder / "lock"
    try:
        with lock_held(path):
            path.chmod(0o666)
            activity = _as_nobody("flock", str(path), "true")
    finally:
        shutil.rmtree(folder)
    assert longest(activity) is State.FILE_LOCK and objects(activity, State.FILE_LOCK) == {
        str(path)
    }


def _as_nobody(*command: str) -> Activity:
    """The activity of a command whose worker is another user, in a fork of this process."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            result, _ = Runtime(Settings(command=command), Wake()).run((), 0.0)
            os.write(write_end, json.dumps(activity_of(result).to_dict()).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as pipe:  # noqa: PTH123
        data = pipe.read()
    os.waitpid(child, 0)
    return Activity.from_dict(json.loads(data))


# -- peers, without a duplicate of the descriptor
# --------------------------------------------------------------------------------------------------


def test_peers_are_found_by_the_tables_of_the_kernel(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(path)
        local.listen()
        with (
            socket.create_connection(server.getsockname()) as tcp,
            socket.socket(socket.AF_UNIX) as unix,
        ):
            unix.connect(path)
            near, far = socket.socketpair()
            with near, far, local.accept()[0]:
                for sockets in (Sockets(duplicate=False), Sockets()):
                    names = [_peer(sockets, each) for each in (tcp, unix, near)]
                    assert names == [f"127.0.0.1:{server.getsockname()[1]}", path, ""]


def _peer(sockets: Sockets, connection: socket.socket) -> str | None:
    number = connection.fileno()
    inode = int(proc.link(f"/proc/self/fd/{number}").partition("[")[2].rstrip("]"))
    peer = sockets.peer(os.getpid(), number, inode)
    return None if peer is None else peer.name


def test_socket_tables_are_read_at_a_rate_bounded_by_their_cost() -> None:
    now = 0.0
    sockets = Sockets(duplicate=False, clock=lambda: now)
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as stack:

        def connected() -> socket.socket:
            return stack.enter_context(socket.create_connection(server.getsockname()))

        first = connected()
        assert _peer(sockets, first)
        # what one list has not, another may have
        assert _peer(sockets, connected())
        third = connected()
        assert _peer(sockets, third) is None and _peer(sockets, first)
        now = 1e6
        assert _peer(sockets, third)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_kernels_diagnosis_says_what_its_tables_say(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with server, socket.create_connection(server.getsockname()[:2]) as client:
        inode = os.fstat(client.fileno()).st_ino
        table = proc.read_all(f"/proc/self/net/{'tcp6' if ':' in host else 'tcp'}")
        expected = (inode, proc.place(*server.getsockname()[:2]), client.getsockname()[1])
        for connections in (tcp_peers(), proc.parse_peers(table)):
            assert expected in list(connections)


@pytest.mark.parametrize("duplicate", [True, False])
def test_clients_of_a_service_are_told_from_services_that_it_calls(duplicate: bool) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as service,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        sockets = Sockets(duplicate=duplicate, served=service.getsockname()[1])
        asks = socket.create_connection(service.getsockname())
        with (
            asks,
            service.accept()[0] as client,
            socket.create_connection(other.getsockname()) as asked,
        ):
            names = [_peer(sockets, each) for each in (client, asked)]
            assert names == [CLIENTS, f"127.0.0.1:{other.getsockname()[1]}"]


SERVICE = """
import select, socket
service = socket.create_server(("127.0.0.1", 0))
print("ready", service.getsockname()[1], sep="\\n", flush=True)
connection, _ = service.accept()
asked = socket.create_connection(("127.0.0.1", int(connection.recv(9))))
select.select([connection, service, asked], [], [])
select.select([connection, service], [], [])
"""


def test_a_service_that_calls_no_other_waits_for_its_clients() -> None:
    # given a service that has clients and asks another one, until that answers
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        running(sys.executable, "-c", SERVICE) as process,
    ):
        assert process.stdout is not None
        port = int(process.stdout.readline())
        blocking = Blocking(Sockets(served=port))
        handle = blocking.open(process.pid, process.pid)

        def object_is(name: str) -> bool:
            activity = blocking.look(process.pid, process.pid, handle)
            return activity is not None and activity.doing == (State.NETWORK, name)

        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"%d" % other.getsockname()[1])
            with other.accept()[0] as answers:
                eventually(lambda: object_is(f"127.0.0.1:{other.getsockname()[1]}"))
                answers.sendall(b"x")
                eventually(lambda: object_is(CLIENTS))
        os.close(handle)


def test_descriptors_that_are_not_sockets_leave_no_open_file() -> None:
    near, far = os.pipe()
    sockets = Sockets()
    counts = set()
    for _ in range(3):
        assert sockets.peer(os.getpid(), near, 1) is None
        counts.add(len(os.listdir("/proc/self/fd")))  # noqa: PTH208
    os.close(near)
    os.close(far)
    assert len(counts) == 1


def test_the_cache_of_unused_peers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    inodes = iter(range(1, 10**9))
    rows = [f"{number}: 0100007F:0001 0100007F:0002 01 0 0 0 0 0" for number in range(1000)]

    def table(_: str) -> str:
        return "\n".join(["titles", *(f"{row} {next(inodes)}" for row in rows)])

    monkeypatch.setattr(proc, "read_all", table)
    clock = iter(range(0, 10**12, 10**6))
    sockets = Sockets(duplicate=False, clock=lambda: float(next(clock)))
    for _ in range(20):
        assert sockets.peer(os.getpid(), 0, 0) is None
    assert len(sockets._known) <= 2 * 4096


# -- devices
# --------------------------------------------------------------------------------------------------


def test_devices_that_a_program_keeps_busy_are_named(
    wake: Wake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its child opens a device whose files lie in a tree of the test's own."""
    monkeypatch.setattr("scaletest.system.sampler.present", lambda _device: True)
    rows = [
        "drm-driver: i915",
        "drm-client-id: 7",
        "drm-pdev: 0000:00:02.0",
        "drm-resident-local0: 3 MiB",
    ]
    text = "\\n".join([*rows, "drm-engine-capacity-video: 2", "drm-engine-video: 1500000000 ns"])
    script = f"""
mkdir -p $0/$$/fd $0/$$/fdinfo
ln -s /dev/dri/renderD128 $0/$$/fd/5
printf "{text}\\n" > $0/$$/fdinfo/5
sleep {LONG_S}
"""
    sampler = RequestSampler(sampled_part=1.0)
    sampler.clients = Clients(str(tmp_path))
    program = Program(ProgramOptions(), wake, sampler)
    try:
        activity = activity_of(
            program.run(["sh", "-c", f"sh -c '{script}' {tmp_path}; true"], 0.0, {}).result
        )
        after = activity_of(program.run(["sleep", "0.3"], 0.0, {}).result)
    finally:
        program.close()
    assert activity.engines == {"0000:00:02.0 video": 0.75}
    assert activity.device_memory_bytes == 3 * 1024**2
    assert (after.engines, after.device_memory_bytes) == ({}, 0)


# -- odd programs
# --------------------------------------------------------------------------------------------------


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that tells by a line when it is ready."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline()
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_the_child_of_a_thread_that_ended_is_still_seen() -> None:
    code = """
import os, subprocess, threading
wait, end = os.pipe()
def start():
    child = subprocess.Popen(["sleep", "60"])
    print(child.pid, threading.get_native_id(), end, flush=True)
    os.read(wait, 1)
threading.Thread(target=start).start()
os.read(os.pipe()[0], 1)
"""
    with subprocess.Popen(
        python(code), stdout=subprocess.PIPE, start_new_session=True, text=True
    ) as process:
        assert process.stdout is not None
        child, thread, end = process.stdout.readline().split()
        tree = Tree(process.pid, Blocking())
        try:
            first = tree.look()
            assert first is not None and (int(child), int(child)) in first.threads
            Path(f"/proc/{process.pid}/fd/{end}").write_bytes(b"x")
            while Path(f"/proc/{process.pid}/task/{thread}").exists():
                pass
            look = tree.look()
            assert look is not None and (int(child), int(child)) in look.threads
        finally:
            tree.close()
            os.killpg(process.pid, signal.SIGKILL)


def test_the_cpu_time_of_a_thread_that_calls_exec_is_not_negative() -> None:
    code = """
import os, sys, threading
def replace():
    os.read(0, 1)
    os.execv("/bin/sh", ["sh", "-c", "echo replaced; sleep 60"])
sum(range(3_000_000))
threading.Thread(target=replace).start()
print("ready", flush=True)
os.read(os.pipe()[0], 1)
"""
    with running(*python(code)) as process:
        assert process.stdin is not None and process.stdout is not None
        tree = Tree(process.pid, Blocking())
        tree.look()
        process.stdin.write(b"x")
        process.stdin.flush()
        assert process.stdout.readline() == b"replaced\n"
        look = tree.look()
        tree.close()
    assert look is not None and all(share.run_s >= 0 for share in look.shares)


def test_processes_over_the_limit_of_threads_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaletest.system.tree.MOST_THREADS", 3)
    looked_at: list[str] = []

    def numbers(path: str, listed: Callable[[str], list[int]] = proc.numbers) -> list[int]:
        looked_at.append(path)
        return listed(path)

    monkeypatch.setattr(proc, "numbers", numbers)
    with running(
        "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; echo ready; wait"
    ) as process:
        tree = Tree(process.pid, Blocking())
        looks = [tree.look(), tree.look()]
        tree.close()
    assert all(look is not None and len(look.threads) == 3 for look in looks)
    assert len([path for path in looked_at if path.endswith("/task")]) <= 4


def test_system_calls_of_32_bit_programs_are_not_read_as_those_of_64_bit(tmp_path: Path) -> None:
    line = tmp_path / "syscall"
    # nanosleep of i386 has the number of sync on x86_64
    line.write_text("162 0xffd0a0b8 0x0 0x0 0x0 0x0 0x0 0xffd0a080 0xf7f0b549\n")
    with running("sh", "-c", "echo ready; exec sleep 60") as process, line.open("rb") as file:
        while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
            pass
        while proc.parse_call(proc.read(f"/proc/{process.pid}/syscall")) is None:
            pass
        activity = Blocking().look(process.pid, process.pid, file.fileno())
    assert activity is not None and activity.doing.state is State.SLEEP


def test_private_locks_need_no_list_of_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> str:
        raise AssertionError(path)

    monkeypatch.setattr(proc, "read_all", refused)
    code = """
import threading
lock = threading.Lock()
lock.acquire()
print("ready", flush=True)
lock.acquire()
"""
    with running(*python(code)) as process:
        blocking = Blocking()
        handle = blocking.open(process.pid, process.pid)
        while (
            activity := blocking.look(process.pid, process.pid, handle)
        ) is None or activity.doing.state is None:
            pass
        os.close(handle)
    assert activity.doing == Doing(State.LOCK)


def test_a_thread_that_has_ended_has_no_activity() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        blocking = Blocking()
        handle = blocking.open(process.pid, process.pid)
        # a zombie
        assert blocking.look(process.pid, process.pid, handle) is None
    with pytest.raises(OSError):
        blocking.look(process.pid, process.pid, handle)
    os.close(handle)


def test_worker_once_takes_the_option() -> None:
    done = call("worker", "--once", "--no-causes", "--", "true")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("options", "sampled"), [((), True), (("--no-causes",), False)])
def test_records_of_a_local_validation_carry_activities(
    tmp_path: Path, options: tuple[str, ...], sampled: bool
) -> None:
    folder = tmp_path / "run"
    line = [
        "--local",
        "--limit",
        "1",
        "--step-time",
        "2",
        "--run-dir",
        str(folder),
        *options,
        "--",
        "/bin/sleep",
        "0.2",
    ]
    done = call("validate", *line)
    assert done.returncode in (0, 3, 4), done.stderr
    records = [
        Record.from_json(line)
        for line in (folder / "records.jsonl").read_text("utf-8").splitlines()
    ]
    assert records and any(record.reply.activity is not None for record in records) is sampled


@pytest.mark.parametrize("option", ["--no-causes", "--device-metrics-url=http://h/"])
def test_sampling_options_are_refused_for_workers_of_a_deployment(option: str) -> None:
    done = call("validate", "--deployment", "d", option)
    assert (
        done.returncode == 2 and f"{option.partition('=')[0]} is for local workers" in done.stderr
    )


def test_local_workers_get_the_address_of_device_metrics(tmp_path: Path) -> None:
    line = ["--local", "--limit", "1", "--step-time", "1", "--run-dir", str(tmp_path / "run")]
    url, arguments = "http://127.0.0.1:9/metrics", tmp_path / "words"
    done = call(
        "validate",
        *line,
        "--device-metrics-url",
        url,
        "--",
        "sh",
        "-c",
        f"cat /proc/$PPID/cmdline > {arguments}",
    )
    assert done.returncode in (0, 3, 4), done.stderr
    worker = arguments.read_text().split("\0")
    assert worker[worker.index("--device-metrics-url") + 1] == url
    # nothing listens there: it is said once, and stays with the run
    assert done.stderr.count(f"warning: the device metrics at {url} cannot be read: ") == 1
    warnings = json.loads((tmp_path / "run" / "result.json").read_text())["warnings"]
    assert [line for line in warnings if line.endswith("or correct --device-metrics-url")]


def test_once_warns_when_device_metrics_name_no_device() -> None:
    with injected_metrics("up 1\n") as url:
        done = call("worker", "--once", "--device-metrics-url", url, "--", "true")
    assert done.returncode == 0
    assert f"warning: {url} has no known metrics of devices" in done.stderr
    assert "or correct --device-metrics-url" in done.stderr
    with injected_metrics('DCGM_FI_DEV_GPU_UTIL{gpu="0",pci_bus_id="00000000:03:00.0"} 7\n') as url:
        done = call("worker", "--once", "--device-metrics-url", url, "--", "true")
    assert done.returncode == 0 and "warning" not in done.stderr


@contextmanager
def injected_metrics(text: str) -> Iterator[str]:
    """The URL of an exporter that says this."""

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics"
        finally:
            server.shutdown()


@pytest.mark.parametrize("command", [("worker", "--once"), ("validate", "--local")])
def test_a_wrong_address_of_device_metrics_is_refused_at_once(command: tuple[str, ...]) -> None:
    done = call(*command, "--device-metrics-url", "node:9400")
    assert done.returncode == 2
    assert "--device-metrics-url is 'node:9400', not an HTTP URL" in done.stderr
    assert "give http://HOST[:PORT]/PATH" in done.stderr
