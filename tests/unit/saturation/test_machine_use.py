"""What else happens on a tester's machine: read, told apart, and blamed."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.level_load import LoadOrder, LoadResult
from scaletest.model import Activity, State
from scaletest.model.activity import Wait
from scaletest.model.attempt import OK, Attempt
from scaletest.model.errors import InvalidValue
from scaletest.model.measurement import MachineUse
from scaletest.observe.node.used_time import cpu_used_s, machine_time, parse_machine
from scaletest.observe.sockets import CLIENTS, is_here, server_processes
from scaletest.processes.proc import TICKS_PER_S
from scaletest.saturation.judging.evaluation import evaluate
from scaletest.saturation.judging.step import assess_step
from scaletest.saturation.judging.tester import machine_full
from scaletest.saturation.measure.machine_use import WatchedMachine, idle_between_requests
from scaletest.saturation.plan import SaturationPlan, SaturationStep
from scaletest.saturation.report.report import sentences, service_time_sentence

QUIET = MachineUse(cores=4, busy=0.6, tester=0.3, service=0.2)
OTHERS = MachineUse(cores=4, busy=3.9, tester=0.3, service=0.2)
SERVICE = MachineUse(cores=4, busy=3.9, tester=0.5, service=3.2)
LATE = [
    Attempt(n, n / 100, n / 100 + 0.08, n / 100 + 0.08, n / 100 + 0.09, OK) for n in range(1000)
]


def step(around: MachineUse | None, **more: float) -> SaturationStep:
    return SaturationStep(0, "ramp", "open", 100.0, 10.0, 1000, 1.0, around=around, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("around", "cpu", "blamed"),
    [
        (
            OTHERS,
            0.3,
            "the machine was busy: other programs used 3.4 of 4 cores: the load generator sent",
        ),
        # it computed much itself, and the machine was full of others all the same
        (OTHERS, 0.6, "the machine was busy: other programs used 3.4 of 4 cores"),
        (
            SERVICE,
            0.5,
            "the service used 3.2 and the load generator 0.5 of 4 cores",
        ),
        (QUIET, 0.9, "it was the bottleneck"),
        (QUIET, 0.3, "other programs or this machine kept it from a core"),
        (None, 0.9, "it was the bottleneck"),
    ],
)
def test_a_late_step_blames_who_had_the_cores(
    around: MachineUse | None, cpu: float, blamed: str
) -> None:
    assert blamed in assess_step(SaturationPlan("t"), step(around, cpu=cpu), LATE).tester


def test_a_cpu_limit_of_the_tester_makes_the_tester_the_bottleneck() -> None:
    plan = SaturationPlan("t")
    assessed = assess_step(plan, step(OTHERS, cpu=0.2, throttled_periods=0.4), LATE)
    assert assessed.tester.endswith(
        ", throttled by its CPU limit in 40% of the periods: it was the bottleneck"
    )
    # hardly at all, which is no reason
    rare = assess_step(plan, step(OTHERS, cpu=0.2, throttled_periods=0.01), LATE)
    assert rare.tester.startswith("the machine was busy")


def test_a_machine_with_free_cores_was_not_full() -> None:
    assert machine_full(replace(OTHERS, busy=3.0)) == ""


def test_a_step_is_read_as_it_was_written() -> None:
    activity = Activity(
        {State.FILE_LOCK: 9.0, State.ON_CPU: 1.0}, (Wait(State.FILE_LOCK, "/l", 9.0),)
    )
    written = step(replace(OTHERS, activities=(activity,)))
    assert SaturationStep.from_json(written.to_json()) == written
    assert SaturationStep.from_json(step(None).to_json()) == step(None)


@pytest.mark.parametrize(
    "text", ['"x"', '{"cores": -1}', '{"cores": 1}', '{"cores": 1, "busy": "x"}']
)
def test_a_step_with_invalid_machine_use_is_refused(text: str) -> None:
    line = step(None).to_json()[:-1] + f',"around":{text}}}'
    with pytest.raises(InvalidValue):
        SaturationStep.from_json(line)


def test_the_report_says_what_limits_the_service() -> None:
    # given a rate that holds, and one at which the backlog grows while the service waits for a lock
    plan = SaturationPlan("t", start=100.0, maximum=200.0, warm_s=0.0)
    lock = Activity({State.FILE_LOCK: 9.0, State.ON_CPU: 1.0}, (Wait(State.FILE_LOCK, "/l", 9.0),))
    idle = Activity({State.IDLE: 10.0})
    steady = [Attempt(n, n / 100, n / 100, n / 100, n / 100 + 0.01, OK) for n in range(1000)]
    late = [Attempt(n, n / 200, n / 200, n / 200, n / 100 + 0.01, OK) for n in range(2000)]
    first = replace(step(replace(QUIET, activities=(idle,))), phase="ramp")
    second = replace(
        first, number=1, level=200.0, requests=2000, around=replace(QUIET, activities=(lock,))
    )
    result = evaluate(plan, [first, second], {0: steady, 1: late})
    assert result.steps[-1].saturated
    ceiling = service_time_sentence(result)
    assert (
        ceiling
        == "at 200/s the service's time: file lock 90% (/l), on a CPU 10%; of 4 cores it used 0.20,"
        " the load generator 0.30, other programs 0.10"
    )
    assert ceiling in sentences(result)
    # what others took of a busy machine is a warning
    busy = replace(OTHERS, activities=(lock,))
    result = evaluate(plan, [first, replace(second, around=busy)], {0: steady, 1: late})
    assert any(
        line.startswith("the machine was busy: other programs used 3.4") for line in result.warnings
    )


def test_a_pool_waits_for_a_lock_only_while_there_are_requests() -> None:
    waits = (Wait(State.IDLE, CLIENTS, 6.0), Wait(State.NETWORK, "127.0.0.1:6379", 1.0))
    activity = Activity({State.LOCK: 6.0, State.NETWORK: 1.0, State.ON_CPU: 3.0}, waits)
    assert idle_between_requests(activity, 1.5).seconds[State.LOCK] == 6.0
    spare = idle_between_requests(activity, 0.25)
    assert spare.seconds[State.IDLE] == 4.5 and spare.seconds[State.LOCK] == 1.5
    result = evaluate(
        SaturationPlan("t", start=100.0),
        [replace(step(replace(QUIET, activities=(spare,))), phase="ramp")],
        {0: []},
    )
    assert service_time_sentence(result).startswith(
        "at 100/s the service's time: idle 45% (waiting for requests), on a CPU 30%"
    )


def test_the_operating_point_is_no_level_that_is_too_much() -> None:
    # given a closed load of 4 in flight, and behind it a rate of 14 requests a second
    lock, sleep = (Activity({state: 5.0}) for state in (State.LOCK, State.SLEEP))
    full = replace(step(replace(QUIET, activities=(lock,))), phase="ramp", load="closed", level=4.0)
    operating = step(replace(QUIET, activities=(sleep,)))
    operating = replace(operating, number=1, phase="operate", level=14.0)
    result = evaluate(SaturationPlan("t", load="closed"), [full, operating], {0: [], 1: []})
    assert service_time_sentence(result).startswith("at 4 the service's time: lock 100%")


def test_the_report_names_no_limit_of_a_service_on_another_machine() -> None:
    result = evaluate(
        SaturationPlan("t", start=100.0),
        [replace(step(QUIET), phase="ramp")],
        {0: LATE},
    )
    assert service_time_sentence(result) == ""


def test_busy_cpu_time_of_the_machine_is_read_from_proc_stat() -> None:
    text = "cpu  100 20 30 1000 50 6 4 40 10 0\ncpu0 1 2 3 4\ncpu1 1 2 3 4\nintr 5\n"
    assert parse_machine(text) == (2, 200 / TICKS_PER_S)
    assert machine_time().cores >= 1


@given(st.text(max_size=80))
def test_any_text_gives_a_busy_time_of_zero_or_more(text: str) -> None:
    assert parse_machine(text).busy_s >= 0


SERVER = """
import os, socket, time
server = socket.create_server(("127.0.0.1", 0))
if not os.fork():
    time.sleep(600)
print(server.getsockname()[1], os.getpid(), flush=True)
time.sleep(600)
"""


def test_the_first_process_of_a_server_is_found() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            port, pid = map(int, process.stdout.readline().split())
            # its child has the socket, too
            assert server_processes(port) == [pid]
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_free_port_has_no_server_process() -> None:
    with socket.socket() as server:
        # bound, so that nobody else takes it, and not yet listening
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert server_processes(port) == []
        # we do, and are not meant
        server.listen()
        assert server_processes(port) == []


@pytest.mark.parametrize(
    ("host", "here"), [("127.0.0.1", True), ("localhost", True), ("192.0.2.7", False)]
)
def test_addresses_of_this_machine(host: str, here: bool) -> None:
    assert is_here(host) is here


class Waits:
    """A load that begins something, and waits until somebody was looked at."""

    def __init__(self, until: Callable[[], bool], begin: Callable[[], object] = bool) -> None:
        self._until, self._begin = until, begin

    def measure(
        self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        self._begin()
        while not self._until():
            pass
        return LoadResult([], 1.0, 0.0, 0.0)

    def close(self) -> None:
        """Nothing."""


def test_tester_and_service_are_told_apart() -> None:
    # given a service that computes when it is asked to, and then sleeps
    code = (
        "import sys, time\nsys.stdin.read()\nwhile time.process_time() < 0.6: pass\ntime.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        load = WatchedMachine(
            Waits(lambda: cpu_used_s([process.pid]) >= 0.4, process.stdin.close),
            lambda: [process.pid],
        )
        try:
            around = load.measure(LoadOrder(1.0), lambda: False, lambda ended, failed: None).around
        finally:
            process.kill()
    assert around is not None and around.cores == machine_time().cores
    assert around.service > 0 and around.tester > 0
    (activity,) = around.activities
    assert activity.seconds.get(State.ON_CPU, 0.0) > 0
