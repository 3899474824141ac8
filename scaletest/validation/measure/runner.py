"""The run of a validation: scale, wait until ready, load, measure, drain and record; judge.

A run measures its steps up and down, and undecided steps again (`judging.schedule`). It is stored
after every step and can be stopped at any point: completed measurements are kept, and the verdict
says that the run was interrupted. A stored run continues where it ended.
"""

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
from scaletest.render.numbers import plural
from scaletest.runs.folder import RESULT, elapsed_s
from scaletest.runs.progress import Progress
from scaletest.stats.completions import Completions
from scaletest.validation.folder import StoredValidation, ValidationFolder
from scaletest.validation.judging.evaluation import Evaluation, evaluate
from scaletest.validation.judging.forecast import time_left
from scaletest.validation.judging.growth import SEED
from scaletest.validation.judging.measured_step import measure_step
from scaletest.validation.judging.schedule import Turn, further_pair, pass_name, planned_pairs
from scaletest.validation.judging.steps import summarise
from scaletest.validation.judging.stopping import Stop, Stopping
from scaletest.validation.measure.interfaces import Backend, BackgroundLoad, Load
from scaletest.validation.measure.samples import Collector, ReadSamples, SampleStore
from scaletest.validation.measure.tally import StepTally, progress_line
from scaletest.validation.plan import Plan

READY_TIMEOUT_S = 120.0
LOOK_S = 0.1
LOOK_FOR_READY_S = 0.02
# A step with more failures than tolerated continues this long, to show which workers fail.
FAILING_S = 5.0


class ValidationRunner:
    """Runs one plan. `record` is the load's sink; `stop` ends the run early.

    stored: measurements of an earlier process. ready_s: how long workers may take to be ready; a
    backend that knows why they are not ready ends the wait earlier, with the reason. clock, wake:
    time in seconds, and the wait; tests replace both. machine_warnings: returns warnings about the
    machine; called once, when the first workers are ready.
    """

    def __init__(
        self,
        plan: Plan,
        folder: ValidationFolder,
        progress: Progress,
        *,
        clock: Callable[[], float] = time.monotonic,
        stored: StoredValidation | None = None,
        ready_s: float = READY_TIMEOUT_S,
        wake: Wake | None = None,
        machine_warnings: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._plan = plan
        self._ready_s = ready_s
        self._folder = folder
        self._progress = progress
        self._clock = clock
        self._began = clock()
        earlier = stored or StoredValidation(plan)
        self._spent_s = elapsed_s(earlier.result)
        self._measurements = list(earlier.measurements)
        self._records = defaultdict(list, earlier.records)
        self._request_s = dict[int, float]()  # mean, by the number of workers
        self._background = list(earlier.background)
        self._stored_background = len(self._background)
        self._samples = SampleStore(folder, earlier.samples)
        self._tally = StepTally()
        self._wake = wake or Wake()
        self._stopped_by = ""
        self._others: Sequence[BackgroundLoad] = ()
        self._machine_warnings = machine_warnings
        self._noticed = wire.texts(earlier.result.get("noticed"))

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
        """Measure all steps that are not measured yet, and return the result.

        others: loads on other queues during the run. samples: reads samples of the nodes.
        """
        self._others = others
        self._collector = Collector(samples or tuple, self._samples.add)
        if samples:
            self._collector.start()
        try:
            for number in count():
                turns = self._choose_turns(number)
                if not turns or not self._measure_all(turns, backend, load):
                    break
        finally:
            self._collector.close()
        return self._store_result()

    def _choose_turns(self, number: int) -> list[Turn]:
        """Return the planned measurements, or those of the further pair of ways with this number.

        That is chosen by the pairs before. A continued run makes the same choice again, because
        measurements of this pair do not count.
        """
        if not number:
            return planned_pairs(self._plan)
        if self.result().verdict.kind is VerdictKind.FAIL:
            return []
        before = [
            measurement for measurement in self._measurements if measurement.repeat < 2 * number
        ]
        steps = summarise(self._plan, before, self._records)
        return further_pair(self._plan, [step.parts for step in steps])

    def _measure_all(self, turns: Sequence[Turn], backend: Backend, load: Load) -> bool:
        """Measure these turns unless they are measured already; false when the run was stopped."""
        measured = {measurement.key for measurement in self._measurements}
        left = [turn for turn in turns if turn.key not in measured]
        pair = turns[0].repeat // 2
        while left:
            turn = left[0]
            if turn.repeat // 2 != pair:
                backend.scale(0)  # every planned pair of ways has workers of its own
                pair = turn.repeat // 2
            self._progress.at(
                len(self._measurements),
                len(self._measurements) + len(left),
                left=time_left(self._plan, left, self._measurements, self._request_s),
            )
            self._measure_turn(turn, backend, load)
            # where every request failed, more workers would only fail faster; but each number is a
            # result where numbers of workers per device are compared
            records = self._records.get(turn.key, [])
            failing = not self._plan.compares and len(records) > self._plan.tolerate_failures
            if self._stopped_by or (failing and not any(record.ok for record in records)):
                return False
            del left[0]
        return True

    def _measure_turn(self, turn: Turn, backend: Backend, load: Load) -> None:
        """Make one measurement, from scaling to the end of its requests, and store it."""
        workers, repeat = turn.key
        self._records[workers, repeat] = []
        self._tally = StepTally()
        self._progress.phase(f"{plural(workers, 'worker')}: getting ready")
        began = self._clock()
        # what is stored where an error or a signal ends it early
        stop = Stop.ENDED
        warm_at_s: float | None = None
        scale_s = measured_s = 0.0
        try:
            backend.scale(workers)
            deadline = self._clock() + self._ready_s
            while backend.ready() < workers and not self._wake.wait(LOOK_FOR_READY_S):
                if self._clock() > deadline:
                    raise WaitTimeout(
                        f"{backend.ready()} of {workers} workers were ready after"
                        f" {self._ready_s:.0f} s",
                        hint="look at the workers' log",
                    )
            scale_s = self._clock() - began
            # the warnings about the machine, once, before the first load
            warnings = self._machine_warnings()
            self._machine_warnings = tuple
            self._progress.warn(warnings)
            self._noticed += [line for line in warnings if line not in self._noticed]
            if not self._stopped_by:
                for other in self._others:
                    other.enter(workers, repeat)
                load.set_parallel(workers, workers, repeat)
                began = self._clock()
                stop, warm_at_s = self._measure_until_stopped(turn, backend, load)
                measured_s = self._clock() - began
            self._progress.note(f"{plural(workers, 'worker')}: waiting for requests in flight")
            load.set_parallel(0)
            # they finish, so that each belongs to one step; the wait is limited
            patience_s = max(30.0, 2.0 * (self._plan.time_limit_s or 10.0 * self._plan.seconds))
            if not load.wait_idle(patience_s):
                self.stop(f"requests still ran {patience_s:.0f} s after the load ended")
        finally:
            self._keep_measurement(
                Measurement(workers, repeat, scale_s, measured_s, str(stop), warm_at_s=warm_at_s)
            )

    def _measure_until_stopped(
        self, turn: Turn, backend: Backend, load: Load
    ) -> tuple[Stop, float | None]:
        """Measure until the stopping rule ends it, or more requests failed than the plan tolerates.

        Return why it ended, and when the warm-up ended where the rule found that.
        """
        plan, workers = self._plan, turn.workers
        self._progress.phase(f"{plural(workers, 'worker')}: measuring")
        rule = self._stopping_rule(turn)
        began = self._clock()
        while not self._wake.wait(LOOK_S):
            passed_s = self._clock() - began
            tally = self._tally
            backend.ready()
            load.check()
            for other in self._others:
                other.check()
            failing_s = max(FAILING_S, 5 * plan.seconds)
            # a program that fails each time is told at once
            fails_always = tally.failures >= workers and not tally.completions
            if tally.failures > plan.tolerate_failures and (fails_always or passed_s > failing_s):
                return Stop.FAILURES, None
            stop = rule.decide(tally.completions, passed_s, tally.read)
            self._progress.note(progress_line(workers, tally, passed_s, rule.longest_s, rule.rate))
            if stop:
                return stop, rule.warm_at_s
        return Stop.ENDED, None

    def _stopping_rule(self, turn: Turn) -> Stopping:
        """Return the rule that ends a measurement, from what was measured before it."""
        plan = self._plan
        measured = {measurement.key: measurement for measurement in self._measurements}
        # the step that this one is compared with; planned repeats are compared together, later
        base = None
        index = plan.steps.index(turn.workers)
        key = (plan.steps[index - 1], turn.repeat)
        if index and plan.repeats == 1 and not plan.compares and key in measured:
            records = self._records[key]
            base = measure_step(plan, measured[key], records, Completions.of(records)).part
        # a way down is as long as the way up, unless its pair has a length of its own
        mirrored_s = turn.length_s
        way_up = measured.get((turn.workers, turn.repeat - 1))
        if way_up and turn.repeat % 2 and not mirrored_s:
            mirrored_s = way_up.measured_s
        return Stopping(plan, turn.workers, base, mirrored_s)

    def _keep_measurement(self, measurement: Measurement) -> None:
        """Store the step and the result so far; a step without a record is dropped."""
        records = self._records[measurement.key]
        if not records and measurement.stop == Stop.ENDED:
            del self._records[measurement.key]
        else:
            measurement = replace(measurement, requests=len(records))
            self._measurements.append(measurement)
            others = self._background[self._stored_background :]
            self._stored_background += len(others)
            self._write_or_stop(lambda: self._folder.add(measurement, [*records, *others]))
        self._collector.collect()
        result = self._store_result()
        for step in result.steps:
            if step.run.mean is not None:
                self._request_s[step.workers] = step.run.mean
            if step.workers == measurement.workers and records:
                ratio = f", ratio {step.ratio.value:.2f}" if step.ratio else ""
                failed = f", {step.failures} failed" if step.failures else ""
                reason = f" ({measurement.stop}, {measurement.measured_s:.0f} s)"
                name = f"{plural(step.workers, 'worker')} in the {pass_name(measurement.repeat)}"
                rate = f"{step.throughput.per_s:.3f} requests/s"
                self._progress.step(f"{name}: {rate}{ratio}{failed}{reason}")
        self._progress.step_ended()

    def result(self) -> Evaluation:
        """Return the result so far."""
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

    def _store_result(self) -> Evaluation:
        result = self.result()
        self._write_or_stop(lambda: self._folder.write(RESULT, result.to_dict()))
        return result

    def _write_or_stop(self, write: Callable[[], None]) -> None:
        """Write into the run's folder.

        Where that fails, as on a full disk, the run ends as by a signal, so that what was measured
        is still judged and shown.
        """
        try:
            write()
        except UsageError as error:
            if error.message != self._stopped_by:
                self._progress.warn([error.message])
            self.stop(error.message)


def complete_measurements(measurements: Sequence[Measurement], records: Rows) -> list[Measurement]:
    """Return those that need not be repeated: not interrupted, and with all of their records."""
    return [
        measurement
        for measurement in measurements
        if measurement.stop != Stop.ENDED
        and measurement.requests in (None, len(records.get(measurement.key, ())))
    ]
