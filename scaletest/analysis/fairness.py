"""How evenly the throughput of a step is shared out between workers, nodes or devices.

Amounts are completions or rates of groups that had the same chance: count in one window, and pass a
group that did nothing as 0, since one that is absent would not count. Jain's index (Jain, Chiu,
Hawe 1984) is (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has everything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.estimate import finite


@dataclass(frozen=True, slots=True)
class GroupShare:
    """One group: its amount, and its part of the whole, from 0 to 1."""

    name: str
    amount: float
    share: float


@dataclass(frozen=True, slots=True)
class Fairness:
    """Shares, largest first. ratio: largest over smallest, infinity when a group did nothing."""

    shares: tuple[GroupShare, ...]
    ratio: float
    jain: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite ratio is null."""
        return {
            "groups": [
                {"name": group.name, "amount": group.amount, "share": group.share}
                for group in self.shares
            ],
            "ratio": finite(self.ratio),
            "jain": self.jain,
        }


def fairness(amounts: Mapping[str, float]) -> Fairness | None:
    """The shares of groups by name; None when there is no group or none of them did anything."""
    total = sum(amounts.values())
    if total <= 0:
        return None
    ordered = sorted(amounts.items(), key=lambda group: (-group[1], group[0]))
    most, least = ordered[0][1], ordered[-1][1]
    shares = tuple(GroupShare(name, amount, amount / total) for name, amount in ordered)
    return Fairness(
        shares=shares,
        ratio=most / least if least > 0 else math.inf,
        jain=1 / (len(shares) * sum(group.share**2 for group in shares)),
    )
