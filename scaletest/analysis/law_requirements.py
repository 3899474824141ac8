"""How many points each scaling law needs, and what would supply them.

A law with k parameters needs n >= k + 2 points, since corrected AIC divides by n - k - 1, and points at several numbers
of workers: repeats at the same ones tell how noisy they are and nothing of the curve between and beyond.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

LAWS = ("linear", "amdahl", "usl", "capped")
PARAMETERS = {"linear": 1, "amdahl": 2, "usl": 3, "capped": 2}
# Different numbers of workers without which a law cannot be told from a simpler one, however often each is measured.
STEPS = {"linear": 1, "amdahl": 2, "usl": 3, "capped": 3}


@dataclass(frozen=True, slots=True)
class MissingPoints:
    """What a law lacks. steps: further numbers of workers that would do. repeats: of every step, None where none do."""

    steps: int
    repeats: int | None

    @property
    def remedy(self) -> str:
        """What to do, in words."""
        more = "1 more step" if self.steps == 1 else f"{self.steps} more steps"
        return f"measure {more}" + (f", or each step {self.repeats} times" if self.repeats else "")


def lacking(workers: Sequence[float]) -> dict[str, MissingPoints]:
    """The laws that points at these numbers of workers (every repeat listed) are too few for, and what would do."""
    distinct = len(set(workers))
    repeats = repeats_needed(distinct)
    missing = {name: max(PARAMETERS[name] + 2 - len(workers), STEPS[name] - distinct) for name in LAWS}
    return {name: MissingPoints(steps, repeats[name]) for name, steps in missing.items() if steps > 0}


def repeats_needed(distinct: int) -> dict[str, int | None]:
    """How often each of `distinct` numbers of workers must be measured for a law; None where only more steps help."""
    return {name: math.ceil((PARAMETERS[name] + 2) / distinct) if distinct >= STEPS[name] else None for name in LAWS}
