"""How evenly the throughput of a step is shared out between workers, nodes or devices.

Amounts are completions or rates of groups that had the same chance: count in one window, and pass a
group that did nothing as 0, since one that is absent would not count.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model import Record
from scaletest.model.declared import Unbounded, named_in_documents
from scaletest.model.writing import Written

GROUPS = ("worker", "pod", "node", "device")


@dataclass(frozen=True, slots=True)
class GroupShare(Written):
    """One group: its amount, and its part of the whole, from 0 to 1."""

    name: str
    amount: float
    share: Annotated[float, "part of the whole"]


@dataclass(frozen=True, slots=True)
class Fairness(Written):
    """Shares, largest first."""

    shares: Annotated[tuple[GroupShare, ...], named_in_documents("groups"), "most first"]
    ratio: Annotated[Unbounded, "largest over smallest"]


def fairness(amounts: Mapping[str, float]) -> Fairness | None:
    """Return the shares of groups by name; None when no group did anything."""
    total = sum(amounts.values())
    if total <= 0:
        return None
    ordered = sorted(amounts.items(), key=lambda group: (-group[1], group[0]))
    most, least = ordered[0][1], ordered[-1][1]
    shares = tuple(GroupShare(name, amount, amount / total) for name, amount in ordered)
    return Fairness(shares, most / least if least > 0 else math.inf)


def fairness_by_group(records: Sequence[Record]) -> dict[str, Fairness]:
    """Return shares of workers, and of pods, nodes and devices per worker there.

    So three workers on two devices are fair. Each way starts and ends workers, so workers and pods
    count in the first one only; nodes and devices count in all.
    """
    by_group = {}
    for group in GROUPS:
        counts: Counter[str] = Counter()
        workers: dict[str, set[str]] = defaultdict(set)
        for record in records:
            name = getattr(record.reply, group)
            if name and (group in ("node", "device") or record.repeat == records[0].repeat):
                counts[name] += 1
                workers[name].add(record.reply.worker)
        if len(counts) > 1:
            shares = fairness({name: count / len(workers[name]) for name, count in counts.items()})
            if shares:
                by_group[group] = shares
    return by_group
