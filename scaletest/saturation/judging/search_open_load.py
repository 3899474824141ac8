"""The search under open load, for a bracket around the saturating rate.

A level is a rate in requests/s. It holds, fails, or stays undecided in a trial, which is one step.
A trial fails where the service is saturated, but also where the tester was late and so offered less
than it should: then the level says nothing of the service, and the bracket notes it.

The search ends when the highest level that held and the lowest that did not lie within the plan's
`precision` of each other, and both turn out the same when they are measured again. It ends without
that where no level up to the plan's highest fails, where none but the tester failed, and when it
has taken as many steps as it may: the bracket is open, wider or unconfirmed then.

The throughput of a saturated step is near the capacity, so the first guess lies just below it and
the second just above. Where that fails (a service that does less when overloaded) or shows
nothing (the level failed by its latency alone, and completed all requests) the middle of the
logarithms is taken.

A level whose latency limit stayed undecided does not end the bracket. It lies inside, and both its
sides are searched.
"""

import math
from collections.abc import Generator, Sequence

from scaletest.saturation.judging.backlog import pool_estimates
from scaletest.saturation.judging.trial import (
    CONFIRMATIONS,
    MOST_STEPS,
    RAMP_FACTOR,
    Bracket,
    Finding,
    Probe,
    Search,
    Trial,
)
from scaletest.saturation.plan import Phase, SaturationPlan

# Trials of each end of the bracket, of which most must agree.
TRIALS = 1 + CONFIRMATIONS
# Confirmation may move the ends of the bracket this often, and takes at most this many steps.
MOST_CORRECTIONS = 10
MOST_CORRECTING_STEPS = 2 * MOST_STEPS + 2 * TRIALS


def search_open_load(plan: SaturationPlan, start: float) -> Search:
    """Search the saturating request rate: ramp, bisect, confirm. start: the first rate."""
    return _OpenSearch(plan).run(start)


class _OpenSearch:
    """One search: the trials so far, and the ends of the bracket."""

    def __init__(self, plan: SaturationPlan) -> None:
        self._plan = plan
        self._tried: dict[float, list[Trial]] = {}  # by level
        self._low: float | None = None
        self._high: float | None = None

    def run(self, start: float) -> Search:
        """Yield the levels; return the bracket."""
        # go up until a level fails; when none held until then, go down until one does
        level, highest = min(start, self._plan.highest), self._plan.highest
        for _ in range(MOST_STEPS):
            finding = yield from self._measure(level, Phase.RAMP)
            if finding is Finding.FAILED:
                self._high = level
                if self._low is not None:
                    break
                level = min(self._tried) / RAMP_FACTOR
                continue
            if finding is Finding.HELD:
                self._low = level
            if self._high is not None or level >= highest:
                break
            level = min(level * RAMP_FACTOR, highest)
        failed = self._tried[self._high][-1] if self._high else None
        if failed and failed.tester_was_late and not failed.saturated:
            # the tester failed, not the service: bisecting would search the tester's limit
            return self._make_bracket(len(self._tried), is_confirmed=False, tester_was_late=True)
        # narrow the bracket, and measure its ends again
        yield from self._bisect(MOST_STEPS - len(self._tried))
        steps, is_confirmed = self._step_count(), False
        if self._low:
            is_confirmed = yield from self._confirm_ends(self._low)
        # the high end failed with the tester in time, most times or in all trials together
        trials = self._tried.get(self._high or 0.0, [])
        failures = sum(trial.saturated and not trial.tester_was_late for trial in trials)
        is_refuted = 2 * failures > len(trials) or _has_grown(trials)
        tester_was_late = self._high is not None and not is_refuted
        return self._make_bracket(steps, is_confirmed=is_confirmed, tester_was_late=tester_was_late)

    def _measure(self, level: float, phase: Phase) -> Generator[Probe, Trial, Finding]:
        """Ask for a trial of a level, keep it, and return what it found."""
        trial = yield Probe(level, phase)
        self._tried.setdefault(level, []).append(trial)
        return trial.finding

    def _step_count(self) -> int:
        """Return how many trials there were of all levels."""
        return sum(map(len, self._tried.values()))

    def _make_bracket(self, steps: int, *, is_confirmed: bool, tester_was_late: bool) -> Bracket:
        return Bracket(
            self._low,
            self._high,
            confirmed=is_confirmed,
            steps=steps,
            tester_was_late=tester_was_late,
            undecided=self._undecided_levels(self._low, self._high),
        )

    def _undecided_levels(self, low: float | None, high: float | None) -> tuple[float, ...]:
        """Return the levels inside the bracket that are undecided, in order."""
        inside = [level for level in self._tried if (low or 0.0) < level < (high or math.inf)]
        return tuple(
            sorted(level for level in inside if self._tried[level][-1].finding is Finding.OPEN)
        )

    def _bisect(self, most_steps: int) -> Generator[Probe, Trial, None]:
        """Move the ends towards each other until they are near enough, or steps run out.

        most_steps: how many levels may be measured.
        """
        rises = 0  # how often in a row the low end moved
        while self._low and self._high and most_steps > 0:
            level = self._next_inside(self._low, self._high, rises)
            if level is None:
                return
            most_steps -= 1
            finding = yield from self._measure(level, Phase.BISECT)
            if finding is Finding.HELD:
                self._low, rises = level, rises + 1
            elif finding is Finding.FAILED:
                self._high, rises = level, 0

    def _next_inside(self, low: float, high: float, rises: int) -> float | None:
        """Return the next level inside a bracket; None when it is narrow enough.

        rises: how often in a row the low end moved. Undecided levels count as narrow: only what is
        left on both their sides is searched.
        """
        undecided = self._undecided_levels(low, high)
        if undecided:
            for bottom, top in ((low, undecided[0]), (undecided[-1], high)):
                if not self._is_narrow_enough(bottom, top):
                    return math.sqrt(bottom * top)
            return None
        if self._is_narrow_enough(low, high):
            return None
        middle, failed = math.sqrt(low * high), self._tried[high][-1]
        if failed.only_latency_failed:
            return middle  # it completed all requests, so its capacity is unknown
        # just below the throughput of the failed level, then just above it
        half_precision = math.sqrt(1 + self._plan.precision)
        for guess in (failed.per_s / half_precision, failed.per_s * half_precision):
            # at an end it would tell nothing new
            if low * 1.002 < guess < high / 1.002:
                return guess
        if rises and failed.per_s <= low:
            # the level that held lies above the failed one's throughput: go up in growing steps
            return min(low * math.pow(1 + self._plan.precision, 2**rises), middle)
        return middle

    def _is_narrow_enough(self, low: float, high: float) -> bool:
        """Whether the ends of a bracket are as near as the plan wants, but for rounding."""
        return high / low <= (1 + self._plan.precision) * 1.0001

    def _confirm_ends(self, low: float) -> Generator[Probe, Trial, bool]:
        """Measure both ends again; return whether both turn out the same in most of their repeats.

        An end that does not moves. One that turns out the contrary becomes the other end; an
        undecided one is an end no more. The new end is off by the precision first, then twice as
        far each time. A bracket that is too wide then is bisected again.
        """
        corrections = 0  # ends that moved since the bracket was bisected
        most_steps = self._step_count() + MOST_CORRECTING_STEPS
        for _ in range(MOST_CORRECTIONS):
            if self._step_count() + 2 * TRIALS > most_steps:
                break
            finding = yield from self._repeat_until_sure(low)
            if finding is not Finding.HELD:
                self._high = low if finding is Finding.FAILED else self._high
                low = self._low = self._step_away(low, -(corrections + 1))
                corrections += 1
                continue
            high = self._high
            if high is None:
                return True
            finding = yield from self._repeat_until_sure(high)
            if finding is not Finding.FAILED:
                if finding is Finding.HELD:
                    low = self._low = high
                corrections += 1
                self._high = (
                    self._step_away(high, corrections) if high < self._plan.highest else None
                )
                continue
            if not corrections or self._next_inside(low, high, rises=0) is None:
                return True
            yield from self._bisect(min(MOST_STEPS, most_steps - self._step_count()))
            low, corrections = self._low or low, 0
        return False

    def _step_away(self, level: float, strides: int) -> float:
        """Return a level beside this one, no farther away than the next decided one.

        strides: 1 or -1 for the first correction, by the precision; 2 or -2 for the second, by
        twice as much, and so on. Below 0 it goes down.
        """
        widths = math.copysign(math.ldexp(1.0, abs(strides) - 1), strides)
        target = level * math.pow(1 + self._plan.precision, widths)
        decided = [
            tried for tried, trials in self._tried.items() if trials[-1].finding is not Finding.OPEN
        ]
        if strides < 0:
            return max([target, *(tried for tried in decided if target < tried < level)])
        return min(
            [target, self._plan.highest, *(tried for tried in decided if level < tried < target)]
        )

    def _repeat_until_sure(self, level: float) -> Generator[Probe, Trial, Finding]:
        """Measure a level until the finding of most of its trials is sure; return it.

        Trials that each leave open whether the backlog grows may show together that it does: then
        the level did not hold. For a latency limit the last trial knows all that is known.
        """
        while True:
            trials = self._tried.get(level, [])
            if trials and trials[-1].finding is Finding.OPEN:
                return Finding.OPEN
            findings = [trial.finding for trial in trials]
            successes, failures = findings.count(Finding.HELD), findings.count(Finding.FAILED)
            if successes + failures >= TRIALS or max(successes, failures) > TRIALS / 2:
                holds = successes > failures and not _has_grown(trials)
                return Finding.HELD if holds else Finding.FAILED
            yield from self._measure(level, Phase.CONFIRM)


def _has_grown(trials: Sequence[Trial]) -> bool:
    """Whether the backlog grew over all trials of a level in which the tester was in time."""
    growths = [
        trial.backlog_growth
        for trial in trials
        if trial.backlog_growth is not None and not trial.tester_was_late
    ]
    return bool(growths) and pool_estimates(growths).low > 0
