"""The algorithm: for every step scale, wait ready, load on, measure until it is decided, drain, record; then judge.

A mirrored run measures its steps up and down, and those again that are not decided then (`analysis.mirror`). The run
persists after every step and can be stopped at any point: what was measured by then is kept, and the verdict says that
the run was interrupted. A stored run goes on where it ended.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from scaletest.analysis.doubling import StepPart
from scaletest.analysis.evaluation import Evaluation, evaluate, missing_samples
from scaletest.analysis.growth import SEED
from scaletest.analysis.mirrored_run import Turn, first_pair, further_pair, way
from scaletest.analysis.steps import Rows, Step, measured_step, summarise
from scaletest.analysis.stopping import Stop, Stopping
from scaletest.archive import RunFolder, Stored
from scaletest.model import Measurement, NodeSample, Plan, Record, VerdictKind, wire
from scaletest.model.errors import WaitTimeout
from scaletest.render.numbers import plural
from scaletest.system.waiting import Wake
from scaletest.validation.interfaces import Backend, Load, Other, Progress
from scaletest.validation.samples import Collector, KeptSamples, ReadSamples
from scaletest.validation.tally import Tally

READY_TIMEOUT_S = 120.0
LOOK_S = 0.1
# A step with more failures than are tolerated goes on this long, to show which workers fail.
FAILING_S = 5.0


def schedule(plan: Plan) -> list[Turn]:
    """The order of measuring, as far as it is known before: up and down, up once, or each repeat a shuffled block.

    Shuffling keeps a slow change of the machine from looking like an effect of the number of workers.
    """
    if plan.mirrored:
        return first_pair(plan)
    order: list[Turn] = []
    for repeat in range(plan.repeats):
        block = [Turn(workers, repeat) for workers in plan.steps]
        if plan.repeats > 1:
            random.Random(f"{plan.seed} {repeat}").shuffle(block)
        order += block
    return order


class Runner:
    """Runs one plan. `record` is the load's sink; `stop` ends the run early.

    stored: what an earlier process measured of it. ready_s: so long may workers take; a backend that knows why they are
    not ready gives up earlier by itself, and says so. clock, wake: seconds, and who waits; a test has them virtual.
    look: warnings about the machine; asked for once, when the first workers are ready.
    """

    def __init__(
        self,
        plan: Plan,
        folder: RunFolder,
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
        stored: Stored | None = None,
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
        self._spent_s = float(stored.result.get("elapsed_s", 0.0)) if stored else 0.0
        self._measurements: list[Measurement] = list(stored.measurements) if stored else []
        self._records: dict[tuple[int, int], list[Record]] = defaultdict(list, stored.records if stored else {})
        self._background: list[Record] = list(stored.background) if stored else []
        self._saved = len(self._background)
        self._samples = KeptSamples(folder, stored.samples if stored else ())
        self._collector = Collector(_no_samples, self._samples.add)
        self._tally = Tally()
        self._wake = wake or Wake()
        self._stopped_by = ""
        self._others: Sequence[Other] = ()
        self._look: Callable[[], Sequence[str]] | None = look
        self._noticed = wire.texts(stored.result.get("noticed")) if stored else []
        self._noticed += missing_samples(stored.damaged) if stored else []

    def record(self, record: Record) -> None:
        """Take in a finished request; may be called from any thread."""
        if record.queue != self._plan.queue:
            self._background.append(record)
            return
        share = self._plan.share(record.step)
        if share:
            record = replace(record, per_device=share)
        self._records[record.step, record.repeat].append(record)
        self._tally.add(record)

    def stop(self, reason: str) -> None:
        """End the run as soon as requests in flight are done. Safe in a signal handler."""
        self._stopped_by = self._stopped_by or reason
        self._wake.set()

    def run(
        self,
        backend: Backend,
        load: Load,
        others: Sequence[Other] = (),
        samples: ReadSamples | None = None,
    ) -> Evaluation:
        """All steps that are not measured yet, then the verdict.

        others: loads on other queues, kept up meanwhile. samples: reads what the nodes do meanwhile.
        """
        self._others = others
        if samples:
            self._collector = Collector(samples, self._samples.add)
            self._collector.start()
        try:
            self._measure_pairs(backend, load)
        finally:
            self._collector.close()
        return self.result()

    def _measure_pairs(self, backend: Backend, load: Load) -> None:
        for number in count():
            turns = self._turns(number)
            if not turns or not self._measure_all(turns, backend, load):
                break

    def _turns(self, number: int) -> list[Turn]:
        """The measurings of that pair of ways, by what the pairs before it have said; all of them for other orders.

        A run that goes on makes the same choice as before: what is there of this pair does not count.
        """
        if not number:
            return schedule(self._plan)
        if not self._plan.mirrored:
            return []
        if self.result().verdict.kind is VerdictKind.FAIL:
            return []
        before = [one for one in self._measurements if one.repeat < 2 * number]
        return further_pair(self._plan, [step.parts for step in summarise(self._plan, before, self._records)])

    def _measure_all(self, turns: Sequence[Turn], backend: Backend, load: Load) -> bool:
        """Measure these, but for what is there; whether that came to its end."""
        block = turns[0].repeat
        for turn in turns:
            if turn.key in {one.key for one in self._measurements}:
                continue
            if turn.repeat != block and not self._plan.mirrored:
                backend.scale(0)  # every repeat has workers of its own
                block = turn.repeat
            self._step(turn, backend, load)
            if self._stopped_by or self._hopeless(turn.workers, turn.repeat):
                return False
        return True

    def result(self) -> Evaluation:
        """The result so far."""
        elapsed_s = self._spent_s + self._clock() - self._began
        return evaluate(
            self._plan,
            self._measurements,
            self._records,
            random.Random(SEED),
            self._background,
            interrupted=self._stopped_by,
            elapsed_s=elapsed_s,
            samples=self._samples.rows,
            noticed=self._noticed,
        )

    def _step(self, turn: Turn, backend: Backend, load: Load) -> None:
        workers, repeat = turn.key
        self._records[workers, repeat] = []
        self._tally = Tally()
        self._progress.phase(workers, "scaling")
        began = self._clock()
        stop, warm_at_s, scale_s, measured_s = Stop.ENDED, None, 0.0, 0.0
        try:
            backend.scale(workers)
            self._wait_ready(workers, backend)
            scale_s = self._clock() - began
            self._notice()
            if not self._stopped_by:
                for other in self._others:
                    other.enter(workers, repeat)
                load.set_parallel(workers, workers, repeat)
                began = self._clock()
                stop, warm_at_s = self._measure(turn, backend, load)
                measured_s = self._clock() - began
            self._progress.phase(workers, "draining")
            load.set_parallel(0)
            self._drain(load)
        finally:
            self._keep(Measurement(workers, repeat, scale_s, measured_s, str(stop), warm_at_s=warm_at_s))

    def _notice(self) -> None:
        """Once, before the first load: what else keeps the machine busy."""
        look, self._look = self._look, None
        lines = look() if look else ()
        for line in lines:
            self._progress.step(f"warning: {line}")
        self._noticed += [line for line in lines if line not in self._noticed]

    def _keep(self, measurement: Measurement) -> None:
        """Write the step and the result so far; a step that was interrupted before its first record leaves nothing."""
        rows = self._records[measurement.key]
        if not rows and measurement.stop == Stop.ENDED:
            del self._records[measurement.key]
        else:
            measurement = replace(measurement, requests=len(rows))
            self._measurements.append(measurement)
            others, self._saved = self._background[self._saved :], len(self._background)
            self._folder.add(measurement, [*rows, *others])
        self._collector.collect()
        result = self.result()
        self._folder.result(result.to_dict())
        for step in result.steps:
            if step.workers == measurement.workers and rows:
                self._progress.step(_line(self._plan, step, measurement))

    def _wait_ready(self, workers: int, backend: Backend) -> None:
        deadline = self._clock() + self._ready_s
        while backend.ready() < workers and not self._wake.wait(LOOK_S / 5):
            if self._clock() > deadline:
                raise WaitTimeout(
                    f"{backend.ready()} of {workers} workers were ready after {self._ready_s:.0f} s",
                    hint="look at the workers' log",
                )

    def _measure(self, turn: Turn, backend: Backend, load: Load) -> tuple[Stop, float | None]:
        """Measure until the rule says stop, or more requests have failed than the plan tolerates.

        Why it ended, and from when on it counts where the rule has found that.
        """
        plan, workers = self._plan, turn.workers
        self._progress.phase(workers, "measuring")
        rule = Stopping(plan, workers, self._base(turn), workers == plan.steps[-1], self._length_s(turn))
        began = self._clock()
        while not self._wake.wait(LOOK_S):
            elapsed = self._clock() - began
            tally = self._tally
            backend.ready()
            load.check()
            for other in self._others:
                other.check()
            if tally.failures > plan.tolerate_failures and elapsed > max(FAILING_S, 5 * plan.seconds):
                return Stop.FAILURES, None
            stop = rule.look(tally.completions, elapsed, tally.course)
            self._progress.tick(workers, elapsed, rule.longest_s, tally.completions, tally.failures, rule.rate)
            if stop:
                return stop, rule.warm_at_s
        return Stop.ENDED, None

    def _base(self, turn: Turn) -> StepPart | None:
        """The step that this one is compared with. With repeats no doubling is decided within one of them."""
        index = self._plan.steps.index(turn.workers)
        if index == 0 or self._plan.repeats > 1 or self._plan.compares:
            return None
        key = (self._plan.steps[index - 1], turn.repeat)
        for measurement in self._measurements:
            if measurement.key == key:
                return measured_step(self._plan, measurement, self._records[key]).part
        return None

    def _length_s(self, turn: Turn) -> float:
        """How long this measuring is: as the plan of its pair says, or as its mirror image was; 0: as it takes."""
        if turn.length_s or not self._plan.mirrored or turn.repeat % 2 == 0:
            return turn.length_s
        mirror = (turn.workers, turn.repeat - 1)
        return next((one.measured_s for one in self._measurements if one.key == mirror), 0.0)

    def _hopeless(self, workers: int, repeat: int) -> bool:
        """Every request failed: more workers would only fail faster.

        Where numbers of workers per device are compared, that it fails with one of them is an answer.
        """
        if self._plan.compares:
            return False
        rows = self._records[workers, repeat]
        return bool(rows) and not any(row.ok for row in rows) and len(rows) > self._plan.tolerate_failures

    def _drain(self, load: Load) -> None:
        """Let requests in flight finish, so that each belongs to one step; a hung workload ends the wait, not us."""
        limit_s = self._plan.time_limit_s or 10.0 * self._plan.seconds
        patience_s = max(30.0, 2.0 * limit_s)
        if not load.wait_idle(patience_s):
            self.stop(f"requests still ran {patience_s:.0f} s after the load was taken away")


def _no_samples() -> Sequence[NodeSample]:
    return ()


def complete(measurements: Sequence[Measurement], records: Rows) -> list[Measurement]:
    """Those that need not be measured again: not cut short, and with all of their records."""
    return [
        one for one in measurements if one.stop != Stop.ENDED and one.requests in (None, len(records.get(one.key, ())))
    ]


def _line(plan: Plan, step: Step, measurement: Measurement) -> str:
    """One line about a measuring that has just ended, and what its step says with it."""
    ratio = f", ratio {step.ratio.value:.2f}" if step.ratio else ""
    failed = f", {step.failures} failed" if step.failures else ""
    why = f" ({measurement.stop}, {measurement.measured_s:.0f} s)"
    direction = f" on the {way(measurement.repeat)}" if plan.mirrored else ""
    return f"{plural(step.workers, 'worker')}{direction}: {step.throughput.per_s:.3f} requests/s{ratio}{failed}{why}"
