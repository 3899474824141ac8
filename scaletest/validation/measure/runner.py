"""The run of a validation: scale, wait until ready, load, measure, drain and record; judge.

A run measures its steps up and down, and undecided steps again (`judging.schedule`). It is stored
after every step and can be stopped at any point: completed measurements are kept, and the verdict
says that the run was interrupted. A stored run continues where it ended.

Counts of the current step are updated with every record, so that reading them is cheap.
"""

import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from scaletest.causes.steps import Rows
from scaletest.model import Measurement, Record, VerdictKind, wire
from scaletest.model.errors import UsageError, WaitTimeout
from scaletest.processes.wake import Wake
from scaletest.render.numbers import format_percent, format_significant, plural
from scaletest.runs.folder import RESULT, elapsed_s
from scaletest.runs.progress import Progress
from scaletest.stats.completions import Completions
from scaletest.validation.folder import StoredValidation, ValidationFolder
from scaletest.validation.judging.evaluation import Evaluation, evaluate, missing_samples
from scaletest.validation.judging.forecast import left_s
from scaletest.validation.judging.growth import SEED
from scaletest.validation.judging.measured_step import measure_step
from scaletest.validation.judging.schedule import Turn, further_pair, planned_pairs, way_name
from scaletest.validation.judging.step_parts import StepPart
from scaletest.validation.judging.steps import summarise
from scaletest.validation.judging.stopping import Stop, Stopping
from scaletest.validation.judging.throughput import Throughput
from scaletest.validation.measure.interfaces import Backend, BackgroundLoad, Load
from scaletest.validation.measure.samples import Collector, ReadSamples, SampleStore
from scaletest.validation.plan import Plan

READY_TIMEOUT_S = 120.0
LOOK_S = 0.1
# A step with more failures than tolerated continues this long, to show which workers fail.
FAILING_S = 5.0


class StepTally:
    """Counts and completions of one step. The load's thread calls `add`, the runner's the rest."""

    def __init__(self) -> None:
        self.completions = 0
        self.failures = 0
        self._began_s = math.inf
        self._ends: dict[str, list[float]] = defaultdict(list)

    def add(self, record: Record) -> None:
        """Count a finished request."""
        reply = record.reply
        if reply.started_s:
            self._began_s = min(self._began_s, reply.started_s - reply.wait_s)
        if record.ok:
            self._ends[reply.worker].append(reply.ended_s)
            self.completions += 1
        else:
            self.failures += 1

    def course(self) -> tuple[Completions, float]:
        """Return the completions, and when the first request was submitted on Redis' clock."""
        times = {worker: sorted(own) for worker, own in list(self._ends.items())}
        return Completions(times), self._began_s


def progress_line(
    workers: int,
    tally: StepTally,
    passed_s: float,
    longest_s: float,
    rate: Throughput | None,
) -> str:
    """The state of a step. rate: throughput at its last evaluation, if there is one."""
    seen = (
        f", {format_significant(rate.per_s, 4)}/s ± {format_percent(rate.relative)}" if rate else ""
    )
    failed = f", {tally.failures} failed" if tally.failures else ""
    time_used = f"{passed_s:.0f} s of {longest_s:.0f} s at most"
    return (
        f"{plural(workers, 'worker')}: measuring, {tally.completions} done{seen}{failed},"
        f" {time_used}"
    )


class ValidationRunner:
    """Runs one plan. `record` is the load's sink; `stop` ends the run early.

    stored: measurements of an earlier process. ready_s: how long workers may take to be ready; a
    backend that knows why they are not ready ends the wait earlier, with the reason. clock, wake:
    time in seconds, and the wait; tests replace both. look: returns warnings about the machine;
    called once, when the first workers are ready.
    """

    def __init__(
        self,
        plan: Plan,
        folder: ValidationFolder,
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
        stored: StoredValidation | None = None,
        ready_s: float = READY_TIMEOUT_S,
        wake: Wake | None = None,
        look: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._plan = plan
        self._ready_s = ready_s
        self._folder = folder
        self._progress = progress
        self._clock = clock
        self._began = clock()
        earlier = stored or StoredValidation(plan, {}, [], {}, [], {})
        self._spent_s = elapsed_s(earlier.result)
        self._measurements = list(earlier.measurements)
        self._records = defaultdict(list, earlier.records)
        self._background = list(earlier.background)
        self._saved = len(self._background)
        self._samples = SampleStore(folder, earlier.samples)
        self._tally = StepTally()
        self._wake = wake or Wake()
        self._stopped_by = ""
        self._others: Sequence[BackgroundLoad] = ()
        self._look = look
        self._noticed = wire.texts(earlier.result.get("noticed"))
        self._noticed += missing_samples(earlier.damaged)

    def record(self, record: Record) -> None:
        """Add a finished request; may be called from any thread."""
        if record.queue != self._plan.queue:
            self._background.append(record)
            return
        share = self._plan.share(record.step)
        if share:
            record = replace(record, per_device=share)
        self._records[record.step, record.repeat].append(record)
        self._tally.add(record)

    def stop(self, reason: str) -> None:
        """End the run when requests in flight are done. Safe in a signal handler."""
        self._stopped_by = self._stopped_by or reason
        self._wake.set()

    def run(
        self,
        backend: Backend,
        load: Load,
        others: Sequence[BackgroundLoad] = (),
        samples: ReadSamples | None = None,
    ) -> Evaluation:
        """Measure all steps that are not measured yet; the result.

        others: loads on other queues during the run. samples: reads samples of the nodes.
        """
        self._others = others
        self._collector = Collector(samples or tuple, self._samples.add)
        if samples:
            self._collector.start()
        try:
            for number in count():
                turns = self._turns(number)
                if not turns or not self._measure_all(turns, backend, load):
                    break
        finally:
            self._collector.close()
        result = self.result()
        self._store(lambda: self._folder.write(RESULT, result.to_dict()))
        return result

    def _turns(self, number: int) -> list[Turn]:
        """The planned measurements, or those of this further pair of ways, chosen by the pairs
        before.

        A continued run makes the same choice again, because measurements of this pair do not count.
        """
        if not number:
            return planned_pairs(self._plan)
        if self.result().verdict.kind is VerdictKind.FAIL:
            return []
        before = [
            measurement for measurement in self._measurements if measurement.repeat < 2 * number
        ]
        return further_pair(
            self._plan, [step.parts for step in summarise(self._plan, before, self._records)]
        )

    def _measure_all(self, turns: Sequence[Turn], backend: Backend, load: Load) -> bool:
        """Measure these turns unless they are measured already; false when the run was stopped."""
        pair = turns[0].repeat // 2
        for turn in turns:
            if turn.key in {measurement.key for measurement in self._measurements}:
                continue
            if turn.repeat // 2 != pair:
                backend.scale(0)  # every planned pair of ways has workers of its own
                pair = turn.repeat // 2
            # where in these turns the run is
            measured = {measurement.key for measurement in self._measurements}
            left = [each for each in turns if each.key not in measured]
            self._progress.at(
                len(self._measurements),
                len(self._measurements) + len(left),
                left_s=left_s(self._plan, left, self._measurements),
                # another pair of ways may be needed
                is_estimate=self._plan.repeats == 1,
            )
            workers, repeat = turn.key
            self._records[workers, repeat] = []
            self._tally = StepTally()
            self._progress.phase(f"{plural(workers, 'worker')}: getting ready")
            began = self._clock()
            stop, warm_at_s, scale_s, measured_s = Stop.ENDED, None, 0.0, 0.0
            try:
                backend.scale(workers)
                deadline = self._clock() + self._ready_s
                while backend.ready() < workers and not self._wake.wait(LOOK_S / 5):
                    if self._clock() > deadline:
                        raise WaitTimeout(
                            f"{backend.ready()} of {workers} workers were ready after"
                            f" {self._ready_s:.0f} s",
                            hint="look at the workers' log",
                        )
                scale_s = self._clock() - began
                # the warnings about the machine, once, before the first load
                look, self._look = self._look, tuple
                lines = look()
                self._progress.warn(lines)
                self._noticed += [line for line in lines if line not in self._noticed]
                if not self._stopped_by:
                    for other in self._others:
                        other.enter(workers, repeat)
                    load.set_parallel(workers, workers, repeat)
                    began = self._clock()
                    stop, warm_at_s = self._measure(turn, backend, load)
                    measured_s = self._clock() - began
                self._progress.note(f"{plural(workers, 'worker')}: waiting for requests in flight")
                load.set_parallel(0)
                # they finish, so that each belongs to one step; the wait is limited
                patience_s = max(30.0, 2.0 * (self._plan.time_limit_s or 10.0 * self._plan.seconds))
                if not load.wait_idle(patience_s):
                    self.stop(f"requests still ran {patience_s:.0f} s after the load ended")
            finally:
                self._keep(
                    Measurement(
                        workers, repeat, scale_s, measured_s, str(stop), warm_at_s=warm_at_s
                    )
                )
            # where every request failed, more workers would only fail faster; but each number is a
            # result where numbers of workers per device are compared
            rows = self._records.get(turn.key, [])
            failing = not self._plan.compares and len(rows) > self._plan.tolerate_failures
            if self._stopped_by or (failing and not any(row.ok for row in rows)):
                return False
        return True

    def result(self) -> Evaluation:
        """The result so far."""
        return evaluate(
            self._plan,
            self._measurements,
            self._records,
            random.Random(SEED),
            self._background,
            interrupted=self._stopped_by,
            elapsed_s=self._spent_s + self._clock() - self._began,
            samples=self._samples.rows,
            noticed=self._noticed,
        )

    def _keep(self, measurement: Measurement) -> None:
        """Store the step and the result so far; a step without a record is dropped."""
        rows = self._records[measurement.key]
        if not rows and measurement.stop == Stop.ENDED:
            del self._records[measurement.key]
        else:
            measurement = replace(measurement, requests=len(rows))
            self._measurements.append(measurement)
            others, self._saved = self._background[self._saved :], len(self._background)
            self._store(lambda: self._folder.add(measurement, [*rows, *others]))
        self._collector.collect()
        result = self.result()
        self._store(lambda: self._folder.write(RESULT, result.to_dict()))
        for step in result.steps:
            if step.workers == measurement.workers and rows:
                ratio = f", ratio {step.ratio.value:.2f}" if step.ratio else ""
                failed = f", {step.failures} failed" if step.failures else ""
                why = f" ({measurement.stop}, {measurement.measured_s:.0f} s)"
                at = f"{plural(step.workers, 'worker')} on the {way_name(measurement.repeat)}"
                rate = f"{step.throughput.per_s:.3f} requests/s"
                self._progress.step(f"{at}: {rate}{ratio}{failed}{why}")
        self._progress.step_ended()

    def _store(self, write: Callable[[], None]) -> None:
        """Write into the run's folder. Where that fails, as on a full disk, the run ends as by a
        signal, so that what was measured is still judged and shown.
        """
        try:
            write()
        except UsageError as error:
            if error.message != self._stopped_by:
                self._progress.warn([error.message])
            self.stop(error.message)

    def _measure(self, turn: Turn, backend: Backend, load: Load) -> tuple[Stop, float | None]:
        """Measure until the stopping rule ends it, or more requests failed than the plan tolerates.

        Returns why it ended, and when the warm-up ended where the rule found that.
        """
        plan, workers = self._plan, turn.workers
        self._progress.phase(f"{plural(workers, 'worker')}: measuring")
        rule = Stopping(
            plan, workers, self._base(turn), workers == plan.steps[-1], self._length_s(turn)
        )
        began = self._clock()
        while not self._wake.wait(LOOK_S):
            elapsed = self._clock() - began
            tally = self._tally
            backend.ready()
            load.check()
            for other in self._others:
                other.check()
            if tally.failures > plan.tolerate_failures and elapsed > max(
                FAILING_S, 5 * plan.seconds
            ):
                return Stop.FAILURES, None
            stop = rule.decide(tally.completions, elapsed, tally.course)
            self._progress.note(progress_line(workers, tally, elapsed, rule.longest_s, rule.rate))
            if stop:
                return stop, rule.warm_at_s
        return Stop.ENDED, None

    def _base(self, turn: Turn) -> StepPart | None:
        """The step that this one is compared with; None with planned repeats, compared together."""
        index = self._plan.steps.index(turn.workers)
        if index == 0 or self._plan.repeats > 1 or self._plan.compares:
            return None
        key = (self._plan.steps[index - 1], turn.repeat)
        for measurement in self._measurements:
            if measurement.key == key:
                rows = self._records[key]
                return measure_step(self._plan, measurement, rows, Completions.of(rows)).part
        return None

    def _length_s(self, turn: Turn) -> float:
        """Seconds of this measurement, by its pair's plan or its mirror image; 0: not fixed."""
        if turn.length_s or turn.repeat % 2 == 0:
            return turn.length_s
        mirror = (turn.workers, turn.repeat - 1)
        return next(
            (
                measurement.measured_s
                for measurement in self._measurements
                if measurement.key == mirror
            ),
            0.0,
        )


def complete_measurements(measurements: Sequence[Measurement], records: Rows) -> list[Measurement]:
    """Measurements that need not be repeated: not interrupted, and with all of their records."""
    return [
        measurement
        for measurement in measurements
        if measurement.stop != Stop.ENDED
        and measurement.requests in (None, len(records.get(measurement.key, ())))
    ]
