"""A whole validation on a virtual clock: known laws come back, and what was interrupted is measured
again.
"""

import errno
import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaletest.model import Outcome, Record, Reply
from scaletest.processes.wake import Wake
from scaletest.runs.environment import read_environment
from scaletest.runs.progress import Progress
from scaletest.validation.folder import StoredValidation, ValidationFolder
from scaletest.validation.judging.stopping import Stop
from scaletest.validation.measure.runner import ValidationRunner, complete_measurements
from scaletest.validation.plan import Plan
from scaletest.validation.run_type import RUN_TYPE
from tests.unit.valid import checked

SECONDS = 0.4
# Requests differ by so much, relative.
SCATTER = 0.01
Law = Callable[[int], float]


class Site(Wake):
    """Workers and load of a run, whose time passes while the runner waits.

    law: seconds of a request, by the number of workers. look: called after each wait.
    """

    def __init__(self, law: Law, look: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.now = 0.0
        self.outcome = Outcome.SUCCEEDED  # of all requests
        self.runner: ValidationRunner
        self._law, self._look = law, look
        self._chance = random.Random(1)
        self._numbers = itertools.count()
        self._workers = self._parallel = 0
        self._loaded = 0.0
        self._key = (0, 0)
        self._running: dict[
            int, tuple[float, float]
        ] = {}  # by worker: when its request began, and when it ends

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self._go_on_until(self.now + seconds)
        self._look()
        return super().wait(0.0)

    def scale(self, workers: int) -> None:
        self._workers = workers

    def ready(self) -> int:
        return self._workers

    def check(self) -> None:
        pass

    def set_parallel(self, parallel: int, step: int | None = None, repeat: int = 0) -> None:
        self._parallel, self._loaded = parallel, self.now
        if step is not None:
            self._key = (step, repeat)
        for worker in range(parallel):
            self._begin(worker, self.now)

    @property
    def busy_s(self) -> float:
        """How long there has been load."""
        return self.now - self._loaded if self._parallel else 0.0

    def wait_idle(self, timeout_s: float) -> bool:
        self._go_on_until(max((end for _, end in self._running.values()), default=self.now))
        return True

    def _begin(self, worker: int, began: float) -> None:
        run_s = self._law(self._workers) * (1.0 + self._chance.gauss(0.0, SCATTER))
        self._running[worker] = (began, began + run_s)

    def _go_on_until(self, then: float) -> None:
        while self._running:
            worker = min(self._running, key=lambda number: self._running[number][1])
            began, end = self._running[worker]
            if end > then:
                break
            del self._running[worker]
            self.runner.record(self._record(worker, began, end))
            if self._parallel:
                self._begin(worker, end)
        self.now = then

    def _record(self, worker: int, began: float, end: float) -> Record:
        step, repeat = self._key
        reply = Reply(
            f"r{next(self._numbers)}",
            self.outcome,
            exit_code=0,
            run_s=end - began,
            worker=f"w{worker}",
            node="here",
            enqueued_s=1000.0 + began,
            started_s=1000.0 + began,
            ended_s=1000.0 + end,
        )
        return Record("q", step, reply, end - began, repeat)


class Nobody(Progress):
    """A progress that nobody looks at, but for its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        super().__init__(lambda change, state, message: self.lines.append(message))


def validated(
    plan: Plan, folder: ValidationFolder, site: Site, stored: StoredValidation | None = None
) -> dict[str, Any]:
    """The result of a run, in the form that is promised."""
    if stored is None:
        folder.begin(plan, read_environment(["scaletest", "validate"]))
    site.runner = ValidationRunner(
        plan, folder, Nobody(), clock=site.clock, stored=stored, wake=site
    )
    return checked(site.runner.run(site, site).to_dict(), "result")


def planned(limit: int, *per_device: int, devices: int = 0) -> Plan:
    glob = "/dev/fake*" if devices else ""
    return Plan(
        limit=limit,
        seconds=SECONDS,
        queue="q",
        per_device=per_device,
        devices=devices,
        device_glob=glob,
    )


def shared(contention: float, coherency: float = 0.0) -> Law:
    """The time of a request of SECONDS when all workers use something together."""
    return lambda n: SECONDS * (1.0 + contention * (n - 1) + coherency * n * (n - 1))


def measured(folder: ValidationFolder) -> list[tuple[int, int]]:
    """Workers and repeat of every measuring, in order; odd repeats are on the way down."""
    return [measurement.key for measurement in folder.load().measurements]


@pytest.fixture
def folder(tmp_path: Path) -> ValidationFolder:
    return ValidationFolder.create(tmp_path / "run")


def test_workers_without_shared_resources_pass(folder: ValidationFolder) -> None:
    result = validated(planned(8), folder, Site(shared(0)))
    assert result["verdict"]["kind"] == "PASS", result["verdict"]
    assert measured(folder) == [(1, 0), (2, 0), (4, 0), (8, 0), (8, 1), (4, 1), (2, 1), (1, 1)]


def test_contention_comes_out_within_its_interval_and_fails(folder: ValidationFolder) -> None:
    result = validated(planned(16), folder, Site(shared(0.15)))
    assert result["verdict"]["kind"] == "FAIL", result["verdict"]
    interval = result["law"]["intervals"]["contention"]
    assert interval["low"] <= 0.15 <= interval["high"]
    assert interval["high"] - interval["low"] < 0.02


def test_a_peak_is_found_when_throughput_falls_again(folder: ValidationFolder) -> None:
    # given contention 3 % and coherency 2 %, the peak lies at sqrt(0.97 / 0.02) = 6.96 workers
    result = validated(planned(16), folder, Site(shared(0.03, 0.02)))
    assert result["verdict"]["kind"] == "FAIL", result["verdict"]
    assert result["law"]["name"] == "usl"
    assert (result["peak"]["workers"], result["peak"]["extrapolated"]) == (
        pytest.approx(6.96, rel=0.05),
        False,
    )


def test_the_ceiling_of_simulated_devices_is_found(folder: ValidationFolder) -> None:
    # given two devices that serve two runs of 0.4 s each at full speed: 10 requests/s together
    result = validated(
        planned(16, 1, 2, 4, 8, devices=2), folder, Site(lambda n: SECONDS * max(1, n / 4))
    )
    assert result["verdict"]["kind"] == "PASS", result["verdict"]
    assert (result["law"]["name"], result["law"]["ceiling_per_s"]) == (
        "capped",
        pytest.approx(10, rel=0.01),
    )
    assert result["sharing"]["best"] == 2


def test_contention_and_coherency_of_a_simulated_device_are_found(folder: ValidationFolder) -> None:
    # given one device whose throughput is highest with sqrt(0.9 / 0.03) = 5.5 runs
    result = validated(planned(16, 1, 2, 4, 8, 16, devices=1), folder, Site(shared(0.1, 0.03)))
    law = result["law"]
    assert law["name"] == "usl"
    assert (law["contention"], law["coherency"]) == (
        pytest.approx(0.1, abs=0.02),
        pytest.approx(0.03, rel=0.1),
    )
    assert result["peak"]["workers"] == pytest.approx(5.5, rel=0.05)
    assert result["sharing"]["best"] in (4, 8)


def test_a_warning_from_before_the_first_load_is_stored_and_kept_on_resume(
    folder: ValidationFolder,
) -> None:
    plan, site, progress = planned(2), Site(shared(0)), Nobody()
    looks: list[float] = []

    def look() -> list[str]:
        looks.append(site.now)
        return ["before the run, other programs used 1.3 of 2 cores"]

    folder.begin(plan, read_environment(["scaletest", "validate"]))
    site.runner = ValidationRunner(
        plan, folder, progress, clock=site.clock, wake=site, machine_warnings=look
    )
    result = checked(site.runner.run(site, site).to_dict(), "result")
    assert len(looks) == 1 and looks[0] < 1.0
    assert progress.lines[1] == "warning: before the run, other programs used 1.3 of 2 cores"
    assert (
        result["warnings"][0]
        == result["noticed"][0]
        == "before the run, other programs used 1.3 of 2 cores"
    )
    again = ValidationRunner(
        plan,
        folder,
        Nobody(),
        clock=site.clock,
        stored=folder.load(),
        wake=site,
        machine_warnings=look,
    )
    assert again.result().warnings[0] == result["noticed"][0]
    assert RUN_TYPE.judge(folder).result.warnings[0] == result["noticed"][0]


def test_a_full_disk_ends_the_run_with_what_was_measured(
    folder: ValidationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    def fill_disk() -> None:
        if (folder.path / "steps.jsonl").exists():
            monkeypatch.setattr("scaletest.runs.folder.open_private", refuse)
            monkeypatch.setattr("scaletest.runs.private_files.open_private", refuse)

    # given a disk that is full once the first step is stored
    result = validated(planned(2), folder, Site(shared(0), fill_disk))
    assert [step["workers"] for step in result["steps"]] == [1, 2]
    reason = "run run cannot be written: No space left on device"
    assert result["verdict"]["reason"] == f"interrupted: {reason}"
    # when there is room again and it goes on, expect a result as if nothing had happened
    monkeypatch.undo()
    stored = folder.load()
    assert [measurement.key for measurement in stored.measurements] == [(1, 0)]
    result = validated(planned(2), folder, Site(shared(0)), stored)
    assert result["verdict"]["kind"] == "PASS", result["verdict"]
    assert measured(folder) == [(1, 0), (2, 0), (2, 1), (1, 1)]


def test_a_program_that_always_fails_ends_the_run_at_once(folder: ValidationFolder) -> None:
    site = Site(shared(0))
    site.outcome = Outcome.FAILED
    result = validated(planned(8), folder, site)
    assert result["verdict"]["kind"] == "FAIL"
    stored = folder.load()
    assert [measurement.stop for measurement in stored.measurements] == [Stop.FAILURES]
    assert len(stored.records[1, 0]) <= 2


def test_an_interrupted_step_is_measured_again(folder: ValidationFolder) -> None:
    # given a run that is interrupted a second after its second step begins
    def interrupt() -> None:
        began = folder.path / "steps.jsonl"
        if began.exists() and site.busy_s > 1:
            site.runner.stop("Ctrl-C")

    site = Site(shared(0), interrupt)
    plan = planned(2)
    result = validated(plan, folder, site)
    assert result["verdict"]["kind"] == "INVALID" and "interrupted" in result["verdict"]["reason"]
    stored = folder.load()
    assert [(measurement.key, measurement.stop) for measurement in stored.measurements][1:] == [
        ((2, 0), Stop.ENDED)
    ]
    # when it goes on, expect that step anew, and a result as if nothing had happened
    stored = replace(
        stored, measurements=complete_measurements(stored.measurements, stored.records)
    )
    folder.forget_unfinished(stored)
    result = validated(plan, folder, Site(shared(0)), stored)
    assert result["verdict"]["kind"] == "PASS", result["verdict"]
    assert measured(folder) == [(1, 0), (2, 0), (2, 1), (1, 1)]
    assert Stop.ENDED not in [measurement.stop for measurement in folder.load().measurements]
