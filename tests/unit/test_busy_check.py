"""The look at the machine while the first workers start: never longer than a second, and without
what the run uses.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from scaletest.analysis.interference import Resources
from scaletest.load.busy_check import BusyCheck
from scaletest.system.node_resources import own_used_s, used_s
from tests.unit.node_samples import cpu

# The sums of processor times are of floats.
ROUNDING_S = 1e-6


class Machine:
    """Figures, a clock and a wait that are moved by hand."""

    def __init__(self, resources: Resources, own_cores: float = 0.0) -> None:
        self.resources, self.own_cores, self.now, self.waited, self.reads = (
            resources,
            own_cores,
            50.0,
            0.0,
            0,
        )

    def read(self) -> Resources:
        self.reads += 1
        return self.resources if self.reads > 1 else {}

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.waited += seconds

    def before(self) -> BusyCheck:
        return BusyCheck(
            self.read, lambda: self.own_cores * (self.now - 50.0), lambda: self.now, self.wait
        )


def test_a_busy_machine_gives_a_warning_after_a_look_of_one_second() -> None:
    machine = Machine(cpu(1.5))
    look = machine.before()
    machine.now += 0.3
    (line,) = look.warnings()
    assert line.startswith("before the run, other programs used 1.5 of 2 cores")
    assert machine.waited == pytest.approx(0.7)


def test_workers_that_take_longer_are_not_waited_for() -> None:
    machine = Machine(cpu(0.1))
    look = machine.before()
    machine.now += 3.0
    assert look.warnings() == [] and machine.waited == 0.0


def test_the_cpu_time_of_the_run_itself_is_not_counted_as_busy() -> None:
    machine = Machine(cpu(1.5), own_cores=1.4)
    look = machine.before()
    machine.now += 2.0
    assert look.warnings() == []


def test_cpu_time_holds_that_of_children_that_live_and_of_those_that_ended() -> None:
    script = "import sys; sum(range(10**7)); print('done', flush=True); sys.stdin.read()"
    before_s = own_used_s()
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == b"done\n"
        living_s = used_s([process.pid])
        assert living_s > 0 and own_used_s() - before_s > living_s - ROUNDING_S
        process.stdin.close()
        process.wait()
    assert own_used_s() - before_s > living_s - ROUNDING_S
    assert used_s([process.pid]) == 0.0
