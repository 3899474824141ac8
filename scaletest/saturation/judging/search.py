"""The search for the saturating level, under open and under closed load.

It goes up a geometric ramp until the service is saturated, bisects, and confirms.

A search yields the level to measure next and receives the outcome. Open load looks for a bracket:
the highest level that held and the lowest that did not, within `precision` of each other. The
throughput of a saturated step is near the capacity, so the first guess lies just below it and the
second just above. Where that fails (a service that does less when overloaded) or shows nothing (the
level failed by its latency alone) the middle of the logarithms is taken.

A level whose latency limit stayed undecided is no end of the bracket. It lies inside, and both its
sides are searched.

Closed load looks for the smallest number in flight that reaches 97 % of the plateau.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from scaletest.saturation.judging.step import pooled
from scaletest.saturation.plan import Phase, SaturationPlan
from scaletest.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Probe:
    """A level to measure next, and why."""

    level: float
    phase: Phase


class Finding(StrEnum):
    """The finding of a trial. open: neither that the level holds nor that it does not."""

    HELD = "held"
    FAILED = "failed"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of one step.

    per_s: successful requests a second. unfit: the tester was the bottleneck. growth: of the
    backlog. slow: it was saturated by its latency alone. undecided: whether the latency limit holds
    is unknown.
    """

    level: float
    saturated: bool
    per_s: float
    unfit: bool = False
    growth: Estimate | None = None
    slow: bool = False
    undecided: bool = False

    @property
    def finding(self) -> Finding:
        """Whether the level held."""
        if self.saturated or self.unfit:
            return Finding.FAILED
        return Finding.OPEN if self.undecided else Finding.HELD


@dataclass(frozen=True, slots=True)
class Bracket:
    """The levels between which the saturation point lies.

    low: the highest level that held, None when none did. high: the lowest that did not, None
    without one. plateau_per_s: of closed load. confirmed: the ends were measured again with the
    same findings. steps: before that. unfit: at the high end the tester was the bottleneck, so the
    service may take more. undecided: levels above the low end and below the high one whose latency
    limit was neither shown nor refuted.
    """

    low: float | None
    high: float | None
    plateau_per_s: float | None = None
    confirmed: bool = False
    steps: int = 0
    unfit: bool = False
    undecided: tuple[float, ...] = ()


Search = Generator[Probe, Trial, Bracket]


# From one level of the ramp to the next.
RAMP_FACTOR = 2.0
# Steps of a search before its bracket is confirmed, and how often its ends are measured again.
MOST_STEPS = 12
CONFIRMATIONS = 2
PLATEAU_SHARE = 0.97
# Throughput is flat where a higher number in flight brings less than this factor.
GAIN = 1.03


# Throughputs by number in flight.
Rates = dict[int, list[float]]


def closed_search(plan: SaturationPlan, start: int) -> Search:
    """Search the number in flight that saturates the service. start: the first number."""
    rates: Rates = {}
    doubts: set[int] = set()
    failed, flat = yield from _climb(plan, max(1, start), rates, doubts)
    steps = len(rates) + len(doubts) + (failed is not None)
    high, unfit = (failed.level, failed.unfit) if failed else (None, False)
    if not rates:
        return Bracket(None, high, None, False, steps, unfit, _levels(doubts))
    steps += yield from _smallest(plan, rates, MOST_STEPS - steps)
    confirmed = yield from _confirm_closed(rates, doubts)
    reached = failed is not None or flat == 2
    # a number in flight that holds lets lower ones hold as well
    undecided = _levels(level for level in doubts if level > max(rates))
    plateau = max(map(fmean, rates.values()))
    confirmed, unfit = confirmed and reached, unfit and flat < 1
    return Bracket(float(_first(rates)), high, plateau, confirmed, steps, unfit, undecided)


def _climb(
    plan: SaturationPlan, level: int, rates: Rates, doubts: set[int]
) -> Generator[Probe, Trial, tuple[Trial | None, int]]:
    """Go up until throughput is flat twice, a number fails, or steps run out.

    The trial that failed, and how often in a row throughput was flat. rates, doubts: take the
    numbers that held, and the undecided ones.
    """
    flat = 0
    for _ in range(MOST_STEPS):
        trial = yield Probe(float(level), Phase.RAMP)
        if trial.finding is Finding.FAILED:
            return trial, flat
        if trial.finding is Finding.OPEN:
            doubts.add(level)
        else:
            flat = flat + 1 if rates and trial.per_s < rates[max(rates)][0] * GAIN else 0
            rates[level] = [trial.per_s]
        if flat == 2 or level >= plan.highest:
            break
        level = int(min(math.ceil(level * RAMP_FACTOR), plan.highest))
    return None, flat


def _levels(numbers: Iterable[int]) -> tuple[float, ...]:
    return tuple(map(float, sorted(numbers)))


def _smallest(plan: SaturationPlan, rates: Rates, left: int) -> Generator[Probe, Trial, int]:
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


def _confirm_closed(rates: Rates, doubts: set[int]) -> Generator[Probe, Trial, bool]:
    """Measure the smallest number and the best one again, until both stay what they are.

    A number that does not hold again is dropped, as long as another is left. A step in which the
    tester was late shows nothing.
    """
    for _ in range(CONFIRMATIONS):
        smallest, best = _first(rates), max(rates, key=lambda number: fmean(rates[number]))
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


def _first(rates: Rates) -> int:
    """The smallest number that reaches 97 % of the highest throughput."""
    best = max(map(fmean, rates.values()))
    return min(level for level, values in rates.items() if fmean(values) >= PLATEAU_SHARE * best)


# Trials of each end of the bracket, of which most must agree.
TRIALS = 1 + CONFIRMATIONS
# Confirmation may move the ends of the bracket this often, and takes at most this many steps under
# open load.
MOST_CORRECTIONS = 10
MOST_CORRECTING_STEPS = 2 * MOST_STEPS + 2 * TRIALS


Tried = dict[float, list[Trial]]
Measure = Callable[[float, Phase], Generator[Probe, Trial, Finding]]


def search(plan: SaturationPlan, start: float) -> Search:
    """The search of a plan. start: its first level."""
    return open_search(plan, start) if plan.open else closed_search(plan, round(start))


def most_measured(plan: SaturationPlan) -> int:
    """The most steps of a search, without those that the tester spoils or that are extended."""
    return MOST_STEPS + (MOST_CORRECTING_STEPS if plan.open else 2 * CONFIRMATIONS)


def open_search(plan: SaturationPlan, start: float) -> Search:
    """Search the saturating request rate (open load). start: the first rate."""
    tried: Tried = {}

    def measure(level: float, phase: Phase) -> Generator[Probe, Trial, Finding]:
        trial = yield Probe(level, phase)
        tried.setdefault(level, []).append(trial)
        return trial.finding

    low, high = yield from _ramp(plan, start, tried, measure)
    if high and tried[high][-1].unfit and not tried[high][-1].saturated:
        # bisecting would search the tester's limit
        return Bracket(low, high, None, False, len(tried), True, _doubts(tried, low, high))
    low, high = yield from _bisect(plan, low, high, tried, measure, MOST_STEPS - len(tried))
    steps = _measured(tried)
    confirmed = False
    if low:
        low, high, confirmed = yield from _confirm(plan, low, high, tried, measure)
    unfit = high is not None and not _refuted(tried.get(high, []))
    return Bracket(low, high, None, confirmed, steps, unfit, _doubts(tried, low, high))


def _doubts(tried: Tried, low: float | None, high: float | None) -> tuple[float, ...]:
    """The levels inside the bracket that are undecided, in order."""
    inside = [level for level in tried if (low or 0.0) < level < (high or math.inf)]
    return tuple(sorted(level for level in inside if tried[level][-1].finding is Finding.OPEN))


def _refuted(trials: list[Trial]) -> bool:
    """Whether a level failed with the tester in time, most times or in all trials together."""
    return 2 * sum(trial.saturated and not trial.unfit for trial in trials) > len(trials) or grew(
        trials
    )


def _narrow(plan: SaturationPlan, low: float, high: float) -> bool:
    return high / low <= (1 + plan.precision) * 1.0001


def _bisect(
    plan: SaturationPlan,
    low: float | None,
    high: float | None,
    tried: Tried,
    measure: Measure,
    left: int,
) -> Generator[Probe, Trial, tuple[float | None, float | None]]:
    """Bisect until the bracket is as narrow as wanted, with at most `left` steps."""
    jump = 0
    while low and high and left > 0:
        level = _inside(plan, low, high, tried, jump)
        if level is None:
            break
        left -= 1
        finding = yield from measure(level, Phase.BISECT)
        if finding is Finding.HELD:
            low, jump = level, jump + 1
        elif finding is Finding.FAILED:
            high, jump = level, 0
    return low, high


def _inside(plan: SaturationPlan, low: float, high: float, tried: Tried, jump: int) -> float | None:
    """The next level inside a bracket; None when it is narrow or undecided levels fill it."""
    doubts = _doubts(tried, low, high)
    if not doubts:
        if _narrow(plan, low, high):
            return None
        return _between(low, high, tried[high][-1], plan.precision, jump)
    for bottom, top in ((low, doubts[0]), (doubts[-1], high)):
        if not _narrow(plan, bottom, top):
            return math.sqrt(bottom * top)
    return None


def _ramp(
    plan: SaturationPlan, start: float, tried: Tried, measure: Measure
) -> Generator[Probe, Trial, tuple[float | None, float | None]]:
    """Go up until a level fails; when none held until then, go down until one does."""
    level = min(start, plan.highest)
    low = high = None
    for _ in range(MOST_STEPS):
        finding = yield from measure(level, Phase.RAMP)
        if finding is Finding.FAILED:
            high = level
            if low is not None:
                break
            level = min(tried) / RAMP_FACTOR
            continue
        if finding is Finding.HELD:
            low = level
        if high is not None or level >= plan.highest:
            break
        level = min(level * RAMP_FACTOR, plan.highest)
    return low, high


def _between(low: float, high: float, failed: Trial, precision: float, jump: int) -> float:
    """The next level inside a bracket. failed: the last trial of its high end."""
    if failed.slow:
        return math.sqrt(low * high)  # it completed all requests, so its capacity is unknown
    done_per_s = failed.per_s
    around = math.sqrt(1 + precision)
    for guess in (done_per_s / around, done_per_s * around):
        if low * 1.002 < guess < high / 1.002:
            return guess
    # the level that held lies above the failed one's throughput: go up from it in growing steps
    middle = math.sqrt(low * high)
    if jump and done_per_s <= low:
        return min(low * math.pow(1 + precision, 2**jump), middle)
    return middle


def _confirm(
    plan: SaturationPlan, low: float, high: float | None, tried: Tried, measure: Measure
) -> Generator[Probe, Trial, tuple[float | None, float | None, bool]]:
    """Measure both ends again; an end that does not turn out the same, in most of its repeats,
    moves.

    One that turns out the contrary becomes the other end; an undecided one is an end no more. The
    new end is off by the precision first, then twice as far each time. A bracket that is too wide
    then is bisected again.
    """
    jump, before = 0, _measured(tried)
    for _ in range(MOST_CORRECTIONS):
        if _measured(tried) - before + 2 * TRIALS > MOST_CORRECTING_STEPS:
            break
        finding = yield from _repeated(low, tried, measure)
        if finding is not Finding.HELD:
            high = low if finding is Finding.FAILED else high
            low, jump = _moved(plan, low, tried, -jump - 1), jump + 1
            continue
        if high is None:
            return low, None, True
        finding = yield from _repeated(high, tried, measure)
        if finding is not Finding.FAILED:
            low = high if finding is Finding.HELD else low
            high, jump = (
                _moved(plan, high, tried, jump + 1) if high < plan.highest else None,
                jump + 1,
            )
            continue
        if not jump or _inside(plan, low, high, tried, 0) is None:
            return low, high, True
        bisected = yield from _bisect(
            plan,
            low,
            high,
            tried,
            measure,
            min(MOST_STEPS, MOST_CORRECTING_STEPS - (_measured(tried) - before)),
        )
        low, high, jump = bisected[0] or low, bisected[1], 0
    return low, high, False


def _measured(tried: Tried) -> int:
    """How many steps were measured."""
    return sum(map(len, tried.values()))


def _moved(plan: SaturationPlan, level: float, tried: Tried, jump: int) -> float:
    """A level lower (jump below 0) or higher, no farther than the next level that is decided."""
    far = level * math.pow(1 + plan.precision, math.copysign(math.ldexp(1.0, abs(jump) - 1), jump))
    decided = [tested for tested, trials in tried.items() if trials[-1].finding is not Finding.OPEN]
    if jump < 0:
        return max([far, *(tested for tested in decided if far < tested < level)])
    return min([far, plan.highest, *(tested for tested in decided if level < tested < far)])


def _repeated(level: float, tried: Tried, measure: Measure) -> Generator[Probe, Trial, Finding]:
    """The finding of most trials of this level; it is measured until that majority is sure.

    Trials that each leave open whether the backlog grows may show together that it does: then the
    level did not hold. For a latency limit the last trial knows all that is known.
    """
    while True:
        trials = tried.get(level, [])
        if trials and trials[-1].finding is Finding.OPEN:
            return Finding.OPEN
        findings = [trial.finding for trial in trials]
        successes, failures = findings.count(Finding.HELD), findings.count(Finding.FAILED)
        if successes + failures >= TRIALS or max(successes, failures) > TRIALS / 2:
            holds = successes > failures and not grew(trials)
            return Finding.HELD if holds else Finding.FAILED
        yield from measure(level, Phase.CONFIRM)


def grew(trials: Sequence[Trial]) -> bool:
    """Whether the backlog grew over all trials of a level in which the tester was in time."""
    growths = [trial.growth for trial in trials if trial.growth is not None and not trial.unfit]
    return bool(growths) and pooled(growths).low > 0
