"""The points that each scaling law needs, and what would supply them.

A law with k parameters needs n >= k + 2 points, since corrected AIC divides by n - k - 1, and
points at several numbers of workers: repeats at the same ones show the noise, and not the curve
between and beyond.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

LAWS = ("linear", "amdahl", "usl", "capped")
PARAMETERS = {"linear": 1, "amdahl": 2, "usl": 3, "capped": 2}
# Different numbers of workers that a law needs to differ from a simpler one, whatever the repeats.
STEPS = {"linear": 1, "amdahl": 2, "usl": 3, "capped": 3}


@dataclass(frozen=True, slots=True)
class MissingPoints:
    """Points that a law needs and does not have.

    steps: further numbers of workers that suffice. repeats: of every step, None where no number
    suffices.
    """

    steps: int
    repeats: int | None

    @property
    def remedy(self) -> str:
        """What to do, in words."""
        remedy = f"measure {self.steps} more steps"
        if self.steps == 1:
            remedy = "measure 1 more step"
        if self.repeats:
            remedy += f", or each step {self.repeats} times"
        return remedy


def lacking(workers: Sequence[float]) -> dict[str, MissingPoints]:
    """The laws for which these points are too few, with the points that are missing.

    workers: the number of workers of each point, so that every repeat is listed.
    """
    distinct = len(set(workers))
    repeats = repeats_needed(distinct)
    missing = {}
    for name in LAWS:
        steps = max(PARAMETERS[name] + 2 - len(workers), STEPS[name] - distinct)
        if steps > 0:
            missing[name] = MissingPoints(steps, repeats[name])
    return missing


def repeats_needed(distinct: int) -> dict[str, int | None]:
    """Repeats of `distinct` numbers of workers that a law needs; None if it needs more steps."""
    repeats: dict[str, int | None] = dict.fromkeys(LAWS)
    for name in LAWS:
        if distinct >= STEPS[name]:
            repeats[name] = math.ceil((PARAMETERS[name] + 2) / distinct)
    return repeats
