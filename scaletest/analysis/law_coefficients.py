"""Contention and coherency with their intervals, for thresholds, whichever law the points prefer.

A run that scales linearly has no contention in its law, and still a threshold may ask that it be
below 5 %. So the interval is that of the chosen law when it has the coefficient, else of the
simplest good one that has it: Amdahl's or the Universal Scalability Law for contention, the latter
for coherency. Under a ceiling neither is a true description; the contention is then large, as it
should be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scaletest.analysis.law import EQUALLY_GOOD, Choice, Point, choose, fit
from scaletest.analysis.law_interval import Chance, law_interval
from scaletest.analysis.student_t import t95

LAWS_WITH = {"contention": ("amdahl", "usl"), "coherency": ("usl",)}
_NORMAL = t95(1e9)


def coefficients(
    points: Sequence[Point], chance: Chance, spreads: Sequence[float] | None = None
) -> dict[str, tuple[float, float, float]]:
    """(low, value, high) by name; one is missing where the points are too few for every law that
    has it.

    spreads: relative standard deviation of each point, where known, as for `choose`.
    """
    choice = choose(points, spreads)
    if choice is None:
        return {}
    relative = None
    if spreads:
        relative = [spread * _NORMAL for spread in spreads]
    estimates: dict[str, tuple[float, float, float]] = {}
    for name, laws in LAWS_WITH.items():
        law = _best(laws, choice)
        if not law:
            continue
        # a fit that ends at 0 is called linear; its interval is wanted all the same
        fitted = replace(fit(law, points), name=law)
        interval = law_interval(fitted, points, chance, relative=relative)
        estimate = getattr(interval, name, None)
        if estimate is not None:
            estimates[name] = (estimate.low, estimate.value, estimate.high)
    return estimates


def _best(laws: Sequence[str], choice: Choice) -> str:
    """The chosen law if it is one of these, else the first that is as good; "" for none."""
    if choice.law.name in laws:
        return choice.law.name
    fitted = {law: choice.criteria[law] for law in laws if law in choice.criteria}
    limit = min(fitted.values(), default=0.0) + EQUALLY_GOOD
    return next((law for law, criterion in fitted.items() if criterion <= limit), "")
