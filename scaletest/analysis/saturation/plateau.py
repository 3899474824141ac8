"""The search under closed load: the plateau, and the smallest number in flight that reaches 97 % of it. A generator."""

from __future__ import annotations

import math
from collections.abc import Generator

from scaletest.analysis.saturation.trial import Bracket, Finding, Probe, Search, Trial
from scaletest.model.saturation import Phase, SaturationPlan

PLATEAU_SHARE = 0.97
GAIN = 1.03


def closed_search(plan: SaturationPlan, start: int) -> Search:
    """Of a number in flight."""
    rates: dict[int, list[float]] = {}
    doubts: set[int] = set()
    stopped: Trial | None = None
    level, flat = max(1, start), 0
    while len(rates) + len(doubts) < plan.most_steps:
        trial = yield Probe(float(level), Phase.RAMP)
        if trial.finding is Finding.FAILED:
            stopped = trial
            break
        if trial.finding is Finding.OPEN:
            doubts.add(level)
        else:
            before = _mean(rates[max(rates)]) if rates else 0.0
            rates[level] = [trial.per_s]
            flat = flat + 1 if before and trial.per_s < before * GAIN else 0
        if flat == 2 or level >= plan.highest:
            break
        following = level + round(plan.increment) if plan.increment else math.ceil(level * plan.factor)
        level = int(min(max(level + 1, following), plan.highest))
    steps = len(rates) + len(doubts) + (stopped is not None)
    high, unfit = (stopped.level, stopped.unfit) if stopped else (None, False)
    if not rates:
        return Bracket(None, high, None, False, steps, unfit, tuple(map(float, sorted(doubts))))
    steps += yield from _smallest(plan, rates, plan.most_steps - steps)
    confirmed = yield from _confirm_closed(plan, rates, doubts)
    reached = stopped is not None or flat == 2
    # what holds with more in flight holds with fewer as well
    undecided = tuple(float(one) for one in sorted(doubts) if one > max(rates))
    plateau = max(map(_mean, rates.values()))
    return Bracket(float(_first(rates)), high, plateau, confirmed and reached, steps, unfit and flat < 1, undecided)


def _smallest(plan: SaturationPlan, rates: dict[int, list[float]], left: int) -> Generator[Probe, Trial, int]:
    """Bisect whole numbers to the smallest that reaches the plateau; how many steps that took."""
    used = 0
    while used < left:
        high = _first(rates)
        low = max((one for one in rates if one < high), default=0)
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
    """Measure the number that was found and the best again, until both stay what they are.

    A number that does not hold again is dropped, as long as another is left.
    Where the tester was late nothing is known.
    """
    for _ in range(plan.confirm):
        smallest, best = _first(rates), max(rates, key=lambda one: _mean(rates[one]))
        same = True
        for level in dict.fromkeys((smallest, best)):
            trial = yield Probe(float(level), Phase.CONFIRM)
            same = same and trial.finding is Finding.HELD
            if trial.finding is Finding.HELD:
                rates[level].append(trial.per_s)
            elif not trial.unfit and len(rates) > 1:
                del rates[level]
                doubts |= {level} if trial.undecided else set()
        if same and _first(rates) == smallest:
            return True
    return False


def _first(rates: dict[int, list[float]]) -> int:
    """The smallest number that reaches 97 % of the highest throughput."""
    best = max(map(_mean, rates.values()))
    return min(one for one, values in rates.items() if _mean(values) >= PLATEAU_SHARE * best)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
