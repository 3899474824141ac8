"""Where requests spend their time, with real processes. What dominates or is named is asserted,
never exact shares.
"""

import ctypes
import os
import socket
import sqlite3
import subprocess
from pathlib import Path

import pytest

from hack.benchmarks import causes_injectors as injectors
from hack.benchmarks.causes_injectors import Unsuitable
from hack.benchmarks.causes_programs import python
from scaletest.model import Outcome, State
from scaletest.model.activity import TOKENS
from scaletest.observe.descriptors import Descriptors
from scaletest.observe.devices.clients import Clients
from scaletest.observe.doing import Doing
from scaletest.observe.sampler import RequestSampler
from scaletest.observe.sockets import Sockets
from scaletest.processes.wake import Wake
from scaletest_workers.workloads.base import ProgramOptions
from scaletest_workers.workloads.program import Program
from tests.integration.sampling import (
    LONG_S,
    activity_of,
    lock_held,
    longest,
    objects,
    programs,
    running,
    sampled,
    sampled_apart,
)


@pytest.mark.parametrize(
    "command",
    [("flock", "PATH", "true"), ("sh", "-c", 'sh -c \'flock "$0" true; true\' "$0"; true', "PATH")],
    ids=["by the program", "by a child of its child"],
)
def test_a_file_lock_is_named_by_its_path(
    wake: Wake, tmp_path: Path, command: tuple[str, ...]
) -> None:
    path = str(tmp_path / "shared lock")
    with lock_held(Path(path)):
        activity = sampled(wake, *(path if word == "PATH" else word for word in command))
    assert longest(activity) is State.FILE_LOCK
    assert objects(activity, State.FILE_LOCK) == {path}


def test_a_record_lock_is_named_by_its_path(wake: Wake, tmp_path: Path) -> None:
    path = tmp_path / "records"
    holder = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX)"
    with subprocess.Popen(
        python(f"{holder}; print(1, flush=True); time.sleep({LONG_S})", path), stdout=-1
    ) as other:
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


# asks a ring of io_uring for what the socket `c` receives, and waits for that
RECEIVE_BY_RING = """
import ctypes, mmap, struct
libc, SETUP, ENTER, RECEIVE, GET_EVENTS = ctypes.CDLL(None), 425, 426, 27, 1
parameters = bytearray(120)
ring = libc.syscall(SETUP, 1, (ctypes.c_char * 120).from_buffer(parameters))
if ring < 0:
    raise SystemExit(0)
data = ctypes.create_string_buffer(16)
request = (RECEIVE, 0, 0, c.fileno(), 0, ctypes.addressof(data), 16)
requests = mmap.mmap(ring, 4096, offset=0x10000000)
requests[:28] = struct.pack("=BBHiQQI", *request)
queue = mmap.mmap(ring, 4096)
tail = struct.unpack_from("I", parameters, 44)[0]
queue[tail : tail + 4] = struct.pack("I", 1)
libc.syscall(ENTER, ring, 1, 1, GET_EVENTS, None, 0)
"""
POLLS = {
    "select": "select.select([c], [], [])",
    "poll": "p = select.poll(); p.register(c, select.POLLIN); p.poll()",
    "epoll": "p = select.epoll(); p.register(c, select.POLLIN); p.poll()",
    "io_uring": RECEIVE_BY_RING,
}


@pytest.mark.parametrize("name", POLLS)
def test_a_poll_is_a_wait_for_the_peer_of_the_socket_that_is_polled(wake: Wake, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"import select, socket; c = socket.create_connection(('127.0.0.1', {port}))"
        # nobody answers: the limit ends it
        with programs(wake) as program:
            result = program.run(python(f"{connect}\n{POLLS[name]}"), LONG_S, {}).result
    if result.outcome is Outcome.SUCCEEDED:
        pytest.skip("this kernel has no io_uring")
    activity = result.activity
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


def test_a_file_that_others_keep_locked_is_named_while_attempts_pause(
    wake: Wake, tmp_path: Path
) -> None:
    path = tmp_path / "shared.sqlite"
    sqlite3.connect(path).execute("create table t (x)")
    write = f"""
import sqlite3, sys, time
connection = sqlite3.connect({str(path)!r}, timeout=60, isolation_level=None)
connection.execute("begin immediate")
print("locked", flush=True)
time.sleep(float(sys.argv[1]))
"""
    with running(*python(write, LONG_S)), programs(wake) as program:
        activity = activity_of(program.run(python(write, 0.0), 0.0, {}).result)
    assert objects(activity, State.SLEEP) == {str(path)}
    assert activity.seconds[State.SLEEP] > 0.3 * LONG_S


def test_semaphores_of_system_v_have_their_id_as_name(wake: Wake) -> None:
    code = """
import ctypes
libc = ctypes.CDLL(None)
name = libc.semget(0, 1, 0o600)
print(name, flush=True)
class Limit(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
class Operation(ctypes.Structure):
    _fields_ = [("number", ctypes.c_ushort), ("by", ctypes.c_short), ("flags", ctypes.c_short)]
libc.semtimedop(name, ctypes.byref(Operation(0, -1, 0)), 1, ctypes.byref(Limit(2, 0)))
libc.semctl(name, 0, 0)
"""
    with programs(wake) as program:
        ended = program.run(python(code), 0.0, {}, capture=True)
    activity = activity_of(ended.result)
    assert objects(activity, State.LOCK) == {f"System V semaphores {int(ended.output)}"}


def test_what_short_lived_children_do_is_observed(wake: Wake) -> None:
    # none of them lives through the usual time between two looks
    loop = "for i in $(seq 30); do sleep 0.02; done"
    activity = sampled(wake, "sh", "-c", loop)
    assert longest(activity) is State.SLEEP
    assert State.NOT_OBSERVED not in activity.seconds
    assert activity.switches > 30


def test_commands_of_a_script_get_the_time_that_each_of_them_takes(
    wake: Wake, tmp_path: Path
) -> None:
    path = tmp_path / "lock"
    with programs(wake) as program, lock_held(path):
        script = f"flock {path} sleep 0.3; sleep 0.7"
        activity = activity_of(program.run(["sh", "-c", script], 0.0, {}).result)
    assert objects(activity, State.FILE_LOCK) == {str(path)}
    # the rest is what the machine's other programs take
    assert activity.seconds[State.SLEEP] == pytest.approx(1.0, abs=0.2)
    assert activity.seconds[State.FILE_LOCK] > 0.5 * LONG_S


def test_a_device_is_named_by_its_path(wake: Wake, tmp_path: Path) -> None:
    fifo = tmp_path / "device"
    os.mkfifo(fifo)
    code = "import os, sys; os.read(os.open(sys.argv[1], os.O_RDWR), 1)"
    with programs(wake) as program:
        result = program.run(python(code, fifo), LONG_S, {"SCALETEST_DEVICE": str(fifo)}).result
        plain = program.run(python(code, fifo), LONG_S, {}).result
    assert result.activity is not None and plain.activity is not None
    assert objects(result.activity, State.DEVICE) == {str(fifo)}
    assert objects(plain.activity, State.PIPE) == {f"{fifo}{TOKENS}"}


def test_a_character_device_of_no_known_kind_is_a_device(wake: Wake) -> None:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse may not be opened")
    main, other = os.openpty()
    # neither a disk nor a terminal
    assert Descriptors(Sockets()).target(os.getpid(), main).state is State.IDLE
    fuse = os.open("/dev/fuse", os.O_RDWR)
    try:
        assert Descriptors(Sockets()).target(os.getpid(), fuse) == Doing(State.DEVICE, "/dev/fuse")
    finally:
        for descriptor in (main, other, fuse):
            os.close(descriptor)


def test_a_slow_disk_is_named_by_the_file(tmp_path: Path) -> None:
    try:
        with injectors.disk(tmp_path, bytes_per_s=2 << 20) as injected:
            activity = sampled_apart(injected)
    except Unsuitable as error:
        pytest.skip(str(error))
    assert objects(activity, State.DISK) == {injected.object}


def test_a_cpu_limit_is_told_from_too_few_cores(tmp_path: Path) -> None:
    try:
        with injectors.quota(tmp_path, cores=0.05) as injected:
            activity = sampled_apart(injected)
    except Unsuitable as error:
        pytest.skip(str(error))
    assert activity.throttled_s > 0 and activity.seconds[State.THROTTLED] > 0


def test_devices_that_a_program_keeps_busy_are_named(
    wake: Wake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its child opens a device whose files lie in a tree of the test's own."""
    monkeypatch.setattr("scaletest.observe.sampler.devices_present", lambda: True)
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
