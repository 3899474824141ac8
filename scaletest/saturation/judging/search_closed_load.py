"""The search under closed load, for the smallest number in flight that reaches the plateau.

It goes up a geometric ramp until throughput is flat, bisects, and ends when the smallest number is
known to a request or to the precision, and it and the best number stay what they are when they are
measured again.
"""

import math
from collections.abc import Generator
from statistics import fmean

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

# Throughput that is this part of the highest lies on the plateau.
PLATEAU_SHARE = 0.97
# Throughput is flat where a higher number in flight brings less than this factor.
LEAST_GAIN = 1.03
# Throughputs by number in flight.
Rates = dict[int, list[float]]


def search_closed_load(plan: SaturationPlan, start: int) -> Search:
    """Search the number in flight that saturates the service. start: the first number."""
    rates: Rates = {}  # of the numbers that held
    undecided: set[int] = set()
    # go up until throughput is flat twice, a number fails, or steps run out
    level, flat = max(1, start), 0
    failed: Trial | None = None
    for _ in range(MOST_STEPS):
        trial = yield Probe(float(level), Phase.RAMP)
        if trial.finding is Finding.FAILED:
            failed = trial
            break
        if trial.finding is Finding.OPEN:
            undecided.add(level)
        else:
            flat = flat + 1 if rates and trial.per_s < rates[max(rates)][0] * LEAST_GAIN else 0
            rates[level] = [trial.per_s]
        if flat == 2 or level >= plan.highest:
            break
        level = int(min(math.ceil(level * RAMP_FACTOR), plan.highest))
    steps = len(rates) + len(undecided) + (failed is not None)
    high, tester_was_late = (failed.level, failed.tester_was_late) if failed else (None, False)
    if not rates:
        levels = tuple(map(float, sorted(undecided)))
        return Bracket(None, high, steps=steps, tester_was_late=tester_was_late, undecided=levels)
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
    is_confirmed = yield from _confirm(rates, undecided)
    return Bracket(
        low=float(_smallest_on_plateau(rates)),
        high=high,
        plateau_per_s=max(map(fmean, rates.values())),
        confirmed=is_confirmed and (failed is not None or flat == 2),
        steps=steps,
        tester_was_late=tester_was_late and flat < 1,
        # a number in flight that holds lets lower ones hold as well
        undecided=tuple(float(number) for number in sorted(undecided) if number > max(rates)),
    )


def _confirm(rates: Rates, undecided: set[int]) -> Generator[Probe, Trial, bool]:
    """Measure the smallest number and the best one again, until both stay what they are.

    A number that does not hold again is dropped, as long as another is left. A step in which the
    tester was late shows nothing.
    """
    for _ in range(CONFIRMATIONS):
        smallest = _smallest_on_plateau(rates)
        best = max(rates, key=lambda number: fmean(rates[number]))
        all_held = True
        for level in dict.fromkeys((smallest, best)):
            trial = yield Probe(float(level), Phase.CONFIRM)
            if trial.finding is Finding.HELD:
                rates[level].append(trial.per_s)
                continue
            all_held = False
            if not trial.tester_was_late and len(rates) > 1:
                del rates[level]
                if trial.undecided:
                    undecided.add(level)
        if all_held and _smallest_on_plateau(rates) == smallest:
            return True
    return False


def _smallest_on_plateau(rates: Rates) -> int:
    """Return the smallest number that reaches 97 % of the highest throughput."""
    best_per_s = max(map(fmean, rates.values()))
    on_plateau = (
        level for level, values in rates.items() if fmean(values) >= PLATEAU_SHARE * best_per_s
    )
    return min(on_plateau)
