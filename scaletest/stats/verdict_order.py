"""The one order in which every run type decides its verdict.

A judge collects the grounds of a run, whatever they speak for. The first rank that has one decides,
and within a rank the first ground. So no judge can put an interruption before a refuted bound, or
a refuted bound before a tester that was the limit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from scaletest.model.verdict import Verdict, VerdictKind


class Rank(IntEnum):
    """What a ground says about a run; the smallest decides."""

    # something else was measured, which can cause any number: the tester was the limit, records are
    # missing, a worker stalled
    NOT_THE_SUBJECT = 1
    # sound steps refute what was wanted, also where the run was interrupted later
    REFUTED = 2
    # it is incomplete, interrupted, unsteady or undecided
    OPEN = 3
    # what was wanted holds
    MET = 4


_KINDS = {
    Rank.NOT_THE_SUBJECT: VerdictKind.INVALID,
    Rank.REFUTED: VerdictKind.FAIL,
    Rank.OPEN: VerdictKind.INVALID,
    Rank.MET: VerdictKind.PASS,
}


@dataclass(frozen=True, slots=True)
class Ground:
    """One ground of a verdict."""

    rank: Rank
    reason: str  # in one line
    remedy: str = ""  # what to do next, "" for MET


def verdict_of_grounds(grounds: Iterable[Ground | None]) -> Verdict:
    """Return the verdict on a run with these grounds, the last of which is what it met.

    A judge gives None for each ground that the run does not have.
    """
    ground = min(filter(None, grounds), key=lambda ground: ground.rank)
    return Verdict(_KINDS[ground.rank], ground.reason, ground.remedy)
