"""One run: every step that the course asks for, from the probe to the operating point."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

from scaletest.analysis.saturation.evaluation import SaturationResult, conclude
from scaletest.analysis.saturation.forecast import BACK_OFF_S
from scaletest.analysis.saturation.sequence import SaturationSequence
from scaletest.analysis.saturation.step import Assessed, assess, level_text, timing
from scaletest.analysis.saturation.trial import Probe
from scaletest.load import pace
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult
from scaletest.model.attempt import Attempt, rounded
from scaletest.model.errors import AgentLost, ScaletestError, Unreachable
from scaletest.model.saturation import LoadKind, Phase, SaturationPlan, SaturationStep

LEAST_BEHIND = 100.0
# Beyond doubt: this many seconds' worth of requests behind, and as many usual latencies.
BEHIND_S, BEHIND_USUAL = 1.0, 5.0


class StepStore(Protocol):
    """Stores the samples of steps."""

    def store(self, step: SaturationStep, samples: Sequence[Attempt]) -> None:
        """Keep a step and its samples."""


class ProgressListener(Protocol):
    """Receives the progress of a run."""

    def note(self, line: str) -> None:
        """Receive what the run does now."""

    def step(self, line: str) -> None:
        """Receive the line of a finished step."""


class Runner:
    """Measures a plan with a load. `stop` ends it after what is in flight; what was measured is
    judged all the same.

    So it is when a load agent or Redis is lost, as INVALID: `lost` is why.
    """

    def __init__(
        self,
        plan: SaturationPlan,
        load: LevelLoad,
        stores: Sequence[StepStore],
        teller: ProgressListener,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        between: Callable[[Assessed], None] = lambda found: None,
    ) -> None:
        self._plan, self._load, self._stores, self._teller = plan, load, stores, teller
        self._clock, self._sleep, self._between = clock, sleep, between
        self._chance = random.Random(plan.seed)
        self._stopped = ""
        self.lost: ScaletestError | None = None

    def stop(self, why: str) -> None:
        """End soon."""
        self._stopped = self._stopped or why

    def stopped(self) -> str:
        """Who ended it, "" as long as nobody did."""
        return self._stopped

    def run(self) -> SaturationResult:
        """The whole run; what is left of it when it was stopped."""
        course, began = SaturationSequence(self._plan), self._clock()
        while course.next is not None and not self.stopped():
            probe = course.next
            try:
                step, samples = self._measure(probe, course)
            except (AgentLost, Unreachable) as error:
                self.lost = (
                    error  # a step without one of its agents is no step; those before it are
                )
                break
            if self.stopped():
                break  # a step that was cut short must not be taken for a whole one
            for store in self._stores:
                store.store(step, samples)
            course.tell(assess(self._plan, step, samples))
            found = course.steps[-1]  # as it is with all that was sent at its level
            self._teller.step(line(self._plan, found))
            self._between(found)
            if found.saturated and course.next is not None:
                self._sleep(BACK_OFF_S)
            if probe.phase is Phase.WARM and found.success == 0:
                break
        lost = self.lost.message if self.lost else ""
        return conclude(
            course, interrupted=self._stopped, lost=lost, elapsed_s=self._clock() - began
        )

    def _measure(
        self, probe: Probe, course: SaturationSequence
    ) -> tuple[SaturationStep, Sequence[Attempt]]:
        plan, warm = self._plan, probe.phase is Phase.WARM
        kind = (
            LoadKind.OPEN
            if probe.phase is Phase.OPERATE
            else LoadKind.CLOSED
            if warm
            else LoadKind(plan.load)
        )
        operating = plan.operate_s or 2 * plan.step_s
        wanted = {Phase.WARM: plan.warm_s, Phase.OPERATE: operating}.get(probe.phase, plan.step_s)
        long, warmup = (wanted, 0.0) if warm else timing(wanted, course.usual_s)
        order = self._order(probe, kind, long, 0 if warm else plan.count, course.usual_s)
        began = datetime.now(UTC).isoformat(timespec="milliseconds")
        name = (
            f"{probe.phase}, {probe.level:.4g}"
            f" {'requests/s' if kind == LoadKind.OPEN else 'in flight'}"
        )

        def tell(ended: int, failed: int) -> None:
            self._teller.note(f"{name}: {ended} ended, {failed} failed")

        found: LoadResult = self._load.measure(order, lambda: bool(self._stopped), tell)
        step = SaturationStep(
            len(course.steps),
            probe.phase,
            kind,
            probe.level,
            found.seconds,
            sum(one.final for one in found.samples),
            warmup,
            found.cpu,
            found.beat_s,
            found.throttled_s,
            found.unsent,
            began,
            around=found.around,
            throttled_periods=found.throttled_periods,
        )
        # judged as they are stored: whoever reads the run decides the same
        return step, [rounded(one) for one in found.samples]

    def _order(
        self, probe: Probe, kind: LoadKind, long: float, count: int, usual_s: float
    ) -> LoadOrder:
        patience = (self._plan.timeout_s + 0.1) * (1 + self._plan.retries)
        if kind == LoadKind.CLOSED:
            return LoadOrder(
                long, parallel=max(1, round(probe.level)), count=count, patience_s=patience
            )
        if count:
            long = count / probe.level
        starts = (
            pace.exact_poisson(probe.level, long, self._chance)
            if self._plan.poisson
            else pace.constant(probe.level)
        )
        behind = max(LEAST_BEHIND, probe.level * (BEHIND_S + BEHIND_USUAL * usual_s))
        return LoadOrder(
            float("inf") if count else long,
            pace=starts,
            count=count,
            most_behind=behind,
            patience_s=patience,
        )


def line(plan: SaturationPlan, found: Assessed) -> str:
    """A step in one line."""
    step = found.step
    p95 = found.latency.p95 or found.latency.p50
    latency = f", p{100 * p95.p:.0f} {1000 * p95.value:.3g} ms" if p95 else ""
    wrong = found.tester or found.saturated or found.undecided
    state = f": {wrong}" if wrong else ""
    return f"{step.phase} {level_text(step)}: {found.goodput.value:.4g}/s succeed{latency}{state}"
