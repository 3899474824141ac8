"""The knee: the number of workers from which more workers bring less.

It lies where the curve is farthest above the straight line between its ends (Kneedle, Satopaa et
al. 2011). It depends on the numbers tested, and a straight line has none. The crossing of two
fitted straight lines is not offered: it finds a knee in every third straight line.
"""

import itertools
from collections.abc import Sequence

from scaletest.stats.scaling import MeasuredThroughput

_ROUNDING = 1e-9


def kneedle(rates: Sequence[MeasuredThroughput]) -> int | None:
    """Return the first knee of a concave increasing curve, offline, unsmoothed; None without one.

    Both axes are scaled to [0, 1]; the knee is a local maximum of y - x from which the difference
    falls by the mean distance of neighbouring x before it rises again.
    """
    if len(rates) < 3 or len({rate.per_s for rate in rates}) == 1:
        return None
    xs = _unit([float(rate.workers) for rate in rates])
    ys = _unit([rate.per_s for rate in rates])
    above = [y - x for x, y in zip(xs, ys, strict=True)]
    fall = 1.0 / (len(rates) - 1)
    candidate = None
    for before, here in itertools.pairwise(range(len(rates) - 1)):
        neighbours = (above[before], above[here + 1])
        if above[here] >= max(neighbours):
            candidate = here
        elif above[here] <= min(neighbours):
            candidate = None
        if candidate is not None and above[here + 1] < above[candidate] - fall - _ROUNDING:
            return rates[candidate].workers
    return None


def _unit(numbers: Sequence[float]) -> list[float]:
    """Scale numbers to the range from 0 to 1."""
    least, most = min(numbers), max(numbers)
    return [(number - least) / (most - least) for number in numbers]
