"""The search under closed load, for the smallest number in flight that reaches 97 % of the plateau.

It goes up a geometric ramp until throughput is flat, bisects, and confirms.
"""

import math
from collections.abc import Generator, Iterable
from statistics import fmean

from scaletest.saturation.judging.bracket import (
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

# Throughput that is this part of the highest lies on the plateau.
PLATEAU_SHARE = 0.97
# Throughput is flat where a higher number in flight brings less than this factor.
GAIN = 1.03
# Throughputs by number in flight.
Rates = dict[int, list[float]]


def closed_search(plan: SaturationPlan, start: int) -> Search:
    """Search the number in flight that saturates the service. start: the first number."""
    rates: Rates = {}  # of the numbers that held
    doubts: set[int] = set()  # numbers that are undecided
    # go up until throughput is flat twice, a number fails, or steps run out
    level, flat = max(1, start), 0
    failed: Trial | None = None
    for _ in range(MOST_STEPS):
        trial = yield Probe(float(level), Phase.RAMP)
        if trial.finding is Finding.FAILED:
            failed = trial
            break
        if trial.finding is Finding.OPEN:
            doubts.add(level)
        else:
            flat = flat + 1 if rates and trial.per_s < rates[max(rates)][0] * GAIN else 0
            rates[level] = [trial.per_s]
        if flat == 2 or level >= plan.highest:
            break
        level = int(min(math.ceil(level * RAMP_FACTOR), plan.highest))
    steps = len(rates) + len(doubts) + (failed is not None)
    high, unfit = (failed.level, failed.unfit) if failed else (None, False)
    if not rates:
        return Bracket(None, high, steps=steps, unfit=unfit, undecided=_levels(doubts))
    # bisect to the smallest number that reaches the plateau
    while steps < MOST_STEPS:
        upper = _smallest_on_plateau(rates)
        lower = max((number for number in rates if number < upper), default=0)
        if upper - lower <= 1 or (lower and upper / lower <= 1 + plan.precision):
            break
        middle = (lower + upper) // 2
        trial = yield Probe(float(middle), Phase.BISECT)
        rates[middle] = [0.0 if trial.saturated else trial.per_s]
        steps += 1
    confirmed = yield from _confirm(rates, doubts)
    return Bracket(
        low=float(_smallest_on_plateau(rates)),
        high=high,
        plateau_per_s=max(map(fmean, rates.values())),
        confirmed=confirmed and (failed is not None or flat == 2),
        steps=steps,
        unfit=unfit and flat < 1,
        # a number in flight that holds lets lower ones hold as well
        undecided=_levels(number for number in doubts if number > max(rates)),
    )


def _levels(numbers: Iterable[int]) -> tuple[float, ...]:
    return tuple(map(float, sorted(numbers)))


def _confirm(rates: Rates, doubts: set[int]) -> Generator[Probe, Trial, bool]:
    """Measure the smallest number and the best one again, until both stay what they are.

    A number that does not hold again is dropped, as long as another is left. A step in which the
    tester was late shows nothing.
    """
    for _ in range(CONFIRMATIONS):
        smallest, best = (
            _smallest_on_plateau(rates),
            max(rates, key=lambda number: fmean(rates[number])),
        )
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
        if same and _smallest_on_plateau(rates) == smallest:
            return True
    return False


def _smallest_on_plateau(rates: Rates) -> int:
    """Return the smallest number that reaches 97 % of the highest throughput."""
    best = max(map(fmean, rates.values()))
    return min(level for level, values in rates.items() if fmean(values) >= PLATEAU_SHARE * best)
