"""Which level comes next: a geometric ramp until saturated, back off, bisect, confirm. Generators, told what was found.

Open load looks for a bracket: the highest level that held and the lowest that did not, within `precision` of each
other. What a saturated step completed is near the capacity, so the first guess lies just below it and the second just
above; where that fails (a service that does less when overloaded) the middle of the logarithms is taken.

Closed load looks for the plateau, the highest throughput, and the smallest number in flight that reaches 97 % of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from scaletest.analysis.estimate import Estimate
from scaletest.analysis.saturation.backlog import pooled
from scaletest.model.saturation import Phase, SaturationPlan

PLATEAU_SHARE = 0.97
GAIN = 1.03
MOST_CORRECTIONS = 10


@dataclass(frozen=True, slots=True)
class Probe:
    """A level to measure next, and why."""

    level: float
    phase: Phase


@dataclass(frozen=True, slots=True)
class Trial:
    """What a step found. per_s: what succeeded. unfit: the tester was the bottleneck. growth: of the backlog."""

    level: float
    saturated: bool
    per_s: float
    unfit: bool = False
    growth: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Bracket:
    """low: the highest level that held, None when none did. high: the lowest that did not, None when none was met.

    plateau_per_s: of closed load. confirmed: the ends were measured again and said the same. steps: before that.
    unfit: at the high end the tester was the bottleneck, so nothing is known of the service there.
    """

    low: float | None
    high: float | None
    plateau_per_s: float | None = None
    confirmed: bool = False
    steps: int = 0
    unfit: bool = False


Search = Generator[Probe, Trial, Bracket]
Measure = Callable[[float, Phase], Generator[Probe, Trial, bool]]


def search(plan: SaturationPlan, start: float) -> Search:
    """The search of a plan. start: its first level."""
    if plan.mode == "sweep":
        return sweep(plan, start)
    return open_search(plan, start) if plan.open else closed_search(plan, round(start))


def open_search(plan: SaturationPlan, start: float) -> Search:
    """Of a rate."""
    tried: dict[float, list[Trial]] = {}

    def measure(level: float, phase: Phase) -> Generator[Probe, Trial, bool]:
        trial = yield Probe(level, phase)
        tried.setdefault(level, []).append(trial)
        return not (trial.saturated or trial.unfit)

    low, high = yield from _ramp(plan, start, measure)
    if high and tried[high][-1].unfit and not tried[high][-1].saturated:
        return Bracket(low, high, None, False, len(tried), True)  # bisecting would look for the tester's limit
    low, high = yield from _bisect(plan, low, high, tried, measure, plan.most_steps - len(tried))
    steps = sum(map(len, tried.values()))
    confirmed = False
    if low:
        low, high, confirmed = yield from _confirm(plan, low, high, tried, measure)
    unfit = high is not None and not _refuted(tried.get(high, []))
    return Bracket(low, high, None, confirmed, steps, unfit)


def _refuted(trials: list[Trial]) -> bool:
    """Whether a level did not hold with the tester in time, most times or all together; else nothing is known."""
    return 2 * sum(one.saturated and not one.unfit for one in trials) > len(trials) or grew(trials)


def _narrow(plan: SaturationPlan, low: float, high: float) -> bool:
    return high / low <= (1 + plan.precision) * 1.0001


def _bisect(
    plan: SaturationPlan,
    low: float | None,
    high: float | None,
    tried: dict[float, list[Trial]],
    measure: Measure,
    left: int,
) -> Generator[Probe, Trial, tuple[float | None, float | None]]:
    """Until the bracket is as narrow as wanted, with at most `left` steps."""
    jump = 0
    while low and high and not _narrow(plan, low, high) and left > 0:
        level = _between(low, high, tried[high][-1].per_s, plan.precision, jump)
        left -= 1
        if (yield from measure(level, Phase.BISECT)):
            low, jump = level, jump + 1
        else:
            high, jump = level, 0
    return low, high


def _ramp(
    plan: SaturationPlan, start: float, measure: Measure
) -> Generator[Probe, Trial, tuple[float | None, float | None]]:
    """Up until it is saturated; when the first level is already, down until it is not."""
    level = min(start, plan.highest)
    low = high = None
    steps = 0
    while steps < plan.most_steps:
        steps += 1
        if (yield from measure(level, Phase.RAMP)):
            low = level
            if high is not None or level >= plan.highest:
                break
            level = min(level + plan.increment if plan.increment else level * plan.factor, plan.highest)
        else:
            high = level
            if low is not None:
                break
            level = level / plan.factor
    return low, high


def _between(low: float, high: float, done_per_s: float, precision: float, jump: int) -> float:
    """The next level inside a bracket."""
    around = math.sqrt(1 + precision)
    for guess in (done_per_s / around, done_per_s * around):
        if low * 1.002 < guess < high / 1.002:
            return guess
    # what held lies above all that was completed: go up from it in growing steps
    middle = math.sqrt(low * high)
    return min(low * (1 + precision) ** (2**jump), middle) if jump and done_per_s <= low else middle


def _confirm(
    plan: SaturationPlan, low: float, high: float | None, tried: dict[float, list[Trial]], measure: Measure
) -> Generator[Probe, Trial, tuple[float | None, float | None, bool]]:
    """Measure both ends again; an end that does not say the same again, in most of its repeats, moves.

    It moves by the precision first, then twice as far each time. What that leaves too wide is bisected anew.
    """
    jump = 0
    for _ in range(MOST_CORRECTIONS):
        if not (yield from _holds(plan, low, tried, measure)):
            high, low = low, _moved(plan, low, tried, -jump - 1)
            jump += 1
            continue
        if high is None:
            return low, None, plan.confirm > 0
        if (yield from _holds(plan, high, tried, measure)):
            low, high = high, _moved(plan, high, tried, jump + 1) if high < plan.highest else None
            jump += 1
            continue
        if not jump or _narrow(plan, low, high):
            return low, high, plan.confirm > 0
        found = yield from _bisect(plan, low, high, tried, measure, plan.most_steps)
        low, high, jump = found[0] or low, found[1], 0
    return low, high, False


def _moved(plan: SaturationPlan, level: float, tried: dict[float, list[Trial]], jump: int) -> float:
    """A level lower (jump below 0) or higher, no farther than the next that was measured."""
    far = level * math.pow(1 + plan.precision, math.copysign(math.ldexp(1.0, abs(jump) - 1), jump))
    if jump < 0:
        return max([far, *(one for one in tried if far < one < level)])
    return min([far, plan.highest, *(one for one in tried if level < one < far)])


def _holds(
    plan: SaturationPlan, level: float, tried: dict[float, list[Trial]], measure: Measure
) -> Generator[Probe, Trial, bool]:
    """Whether most trials at this level held; it is measured until the majority of 1 + confirm is sure.

    Trials that each leave open whether the backlog grows may say together that it does: then the level did not hold.
    """
    wanted = 1 + plan.confirm
    while True:
        trials = tried.get(level, [])
        held = [not (one.saturated or one.unfit) for one in trials]
        if len(held) >= wanted or max(held.count(True), held.count(False)) > wanted / 2:
            return held.count(True) * 2 > len(held) and not grew(trials)
        yield from measure(level, Phase.CONFIRM)


def grew(trials: Sequence[Trial]) -> bool:
    """Whether the backlog grew over all trials of a level in which the tester was in time."""
    found = [one.growth for one in trials if one.growth is not None and not one.unfit]
    return bool(found) and pooled(found).low > 0


def closed_search(plan: SaturationPlan, start: int) -> Search:
    """Of a number in flight."""
    rates: dict[int, list[float]] = {}
    stopped: Trial | None = None
    level, flat = max(1, start), 0
    while len(rates) < plan.most_steps:
        trial = yield Probe(float(level), Phase.RAMP)
        if trial.saturated or trial.unfit:
            stopped = trial
            break
        before = _mean(rates[max(rates)]) if rates else 0.0
        rates[level] = [trial.per_s]
        flat = flat + 1 if before and trial.per_s < before * GAIN else 0
        if flat == 2 or level >= plan.highest:
            break
        following = level + round(plan.increment) if plan.increment else math.ceil(level * plan.factor)
        level = int(min(max(level + 1, following), plan.highest))
    steps = len(rates) + (stopped is not None)
    if not rates:
        return Bracket(None, stopped.level if stopped else None, None, False, steps, bool(stopped and stopped.unfit))
    steps += yield from _smallest(plan, rates, plan.most_steps - steps)
    confirmed = yield from _confirm_closed(plan, rates)
    plateau = max(map(_mean, rates.values()))
    reached = stopped is not None or flat == 2
    return Bracket(
        float(_first(rates)),
        stopped.level if stopped else None,
        plateau,
        confirmed and reached,
        steps,
        bool(stopped and stopped.unfit and flat < 1),
    )


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
        rates[middle] = [trial.per_s]
        used += 1
    return used


def _confirm_closed(plan: SaturationPlan, rates: dict[int, list[float]]) -> Generator[Probe, Trial, bool]:
    """Measure the number that was found and the best again, until both stay what they are."""
    for _ in range(plan.confirm):
        found, best = _first(rates), max(rates, key=lambda one: _mean(rates[one]))
        for level in dict.fromkeys((found, best)):
            trial = yield Probe(float(level), Phase.CONFIRM)
            rates[level].append(trial.per_s)
        if _first(rates) == found:
            return True
    return False


def _first(rates: dict[int, list[float]]) -> int:
    """The smallest number that reaches 97 % of the highest throughput."""
    best = max(map(_mean, rates.values()))
    return min(one for one, values in rates.items() if _mean(values) >= PLATEAU_SHARE * best)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def sweep(plan: SaturationPlan, start: float) -> Search:
    """Fixed levels, each as often as wanted; the highest before the first that was saturated in any repeat."""
    level, low, high, steps, best = start, None, None, 0, 0.0
    while True:
        held = True
        for _ in range(plan.repeats):
            trial = yield Probe(level, Phase.SWEEP)
            steps += 1
            held = held and not (trial.saturated or trial.unfit)
            best = max(best, trial.per_s)
        if held and high is None:
            low = level
        elif not held and high is None:
            high = level
        if not plan.increment or level + plan.increment > plan.highest:
            return Bracket(low, high, None if plan.open else best, plan.repeats > 1, steps)
        level += plan.increment
