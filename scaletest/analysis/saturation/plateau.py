"""The search under closed load for the smallest number in flight that reaches 97 % of the plateau.

A generator: it yields the number to measure next and receives the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable

from scaletest.analysis.saturation.trial import Bracket, Finding, Probe, Search, Trial
from scaletest.model.saturation import Phase, SaturationPlan

PLATEAU_SHARE = 0.97
# Throughput is flat where a higher number in flight brings less than this factor.
GAIN = 1.03


def closed_search(plan: SaturationPlan, start: int) -> Search:
    """Search the number in flight that saturates the service. start: the first number."""
    ramp = _Ramp(plan, max(1, start))
    yield from ramp.climb()
    rates, doubts = ramp.rates, ramp.doubts
    steps, high, unfit = ramp.steps, None, False
    if ramp.stopped:
        high, unfit = ramp.stopped.level, ramp.stopped.unfit
    if not rates:
        return Bracket(None, high, None, False, steps, unfit, _levels(doubts))
    steps += yield from _smallest(plan, rates, plan.most_steps - steps)
    confirmed = yield from _confirm_closed(plan, rates, doubts)
    reached = ramp.stopped is not None or ramp.flat == 2
    # a number in flight that holds lets lower ones hold as well
    undecided = _levels(level for level in doubts if level > max(rates))
    plateau = max(map(_mean, rates.values()))
    low = float(_first(rates))
    return Bracket(
        low, high, plateau, confirmed and reached, steps, unfit and ramp.flat < 1, undecided
    )


class _Ramp:
    """The way up until throughput is flat twice, the load is too high, or steps run out.

    rates: throughputs by number in flight. doubts: undecided numbers. stopped: the trial that
    failed.
    """

    def __init__(self, plan: SaturationPlan, start: int) -> None:
        self._plan = plan
        self._level = start
        self.rates: dict[int, list[float]] = {}
        self.doubts: set[int] = set()
        self.stopped: Trial | None = None
        self.flat = 0

    @property
    def steps(self) -> int:
        """How many numbers were measured."""
        return len(self.rates) + len(self.doubts) + (self.stopped is not None)

    def climb(self) -> Generator[Probe, Trial, None]:
        """Measure growing numbers."""
        while self.steps < self._plan.most_steps:
            trial = yield Probe(float(self._level), Phase.RAMP)
            if trial.finding is Finding.FAILED:
                self.stopped = trial
                return
            if trial.finding is Finding.OPEN:
                self.doubts.add(self._level)
            else:
                self._note(trial.per_s)
            if self.flat == 2 or self._level >= self._plan.highest:
                return
            self._level = self._next()

    def _note(self, per_s: float) -> None:
        """Record the throughput of the present number."""
        flat = False
        if self.rates:
            before = _mean(self.rates[max(self.rates)])
            flat = bool(before) and per_s < before * GAIN
        self.flat = self.flat + 1 if flat else 0
        self.rates[self._level] = [per_s]

    def _next(self) -> int:
        plan, level = self._plan, self._level
        following = math.ceil(level * plan.factor)
        if plan.increment:
            following = level + round(plan.increment)
        return int(min(max(level + 1, following), plan.highest))


def _levels(numbers: Iterable[int]) -> tuple[float, ...]:
    return tuple(map(float, sorted(numbers)))


def _smallest(
    plan: SaturationPlan, rates: dict[int, list[float]], left: int
) -> Generator[Probe, Trial, int]:
    """Bisect to the smallest number that reaches the plateau; returns how many steps it took."""
    used = 0
    while used < left:
        high = _first(rates)
        low = max((level for level in rates if level < high), default=0)
        if high - low <= 1 or (low and high / low <= 1 + plan.precision):
            break
        middle = (low + high) // 2
        trial = yield Probe(float(middle), Phase.BISECT)
        rates[middle] = [0.0 if trial.saturated else trial.per_s]
        used += 1
    return used


def _confirm_closed(
    plan: SaturationPlan, rates: dict[int, list[float]], doubts: set[int]
) -> Generator[Probe, Trial, bool]:
    """Measure the smallest number and the best one again, until both stay what they are.

    A number that does not hold again is dropped, as long as another is left. A step in which the
    tester was late shows nothing.
    """
    for _ in range(plan.confirm):
        smallest, best = _first(rates), max(rates, key=lambda number: _mean(rates[number]))
        same = True
        for level in dict.fromkeys((smallest, best)):
            trial = yield Probe(float(level), Phase.CONFIRM)
            same = same and trial.finding is Finding.HELD
            if trial.finding is Finding.HELD:
                rates[level].append(trial.per_s)
            elif not trial.unfit and len(rates) > 1:
                del rates[level]
                if trial.undecided:
                    doubts.add(level)
        if same and _first(rates) == smallest:
            return True
    return False


def _first(rates: dict[int, list[float]]) -> int:
    """The smallest number that reaches 97 % of the highest throughput."""
    best = max(map(_mean, rates.values()))
    return min(level for level, values in rates.items() if _mean(values) >= PLATEAU_SHARE * best)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
