"""How evenly the throughput of a step is shared out between workers, pods, nodes or devices."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model import Record
from scaletest.model.writing import Written

GROUPS = ("worker", "pod", "node", "device")


@dataclass(frozen=True, slots=True)
class GroupAmount(Written):
    """One worker, pod, node or device."""

    name: str
    amount: float  # requests, of a pod, node or device for each of its workers


@dataclass(frozen=True, slots=True)
class Fairness(Written):
    """What all groups of one kind did."""

    groups: Annotated[tuple[GroupAmount, ...], "most first"]
    ratio: Annotated[float, "largest over smallest"]


def fairness(amounts: Mapping[str, float]) -> Fairness:
    """Return how evenly groups shared the work. amounts: by name, one or more, each above 0."""
    ordered = sorted(amounts.items(), key=lambda group: (-group[1], group[0]))
    groups = tuple(GroupAmount(name, amount) for name, amount in ordered)
    return Fairness(groups, ratio=groups[0].amount / groups[-1].amount)


def fairness_by_group(records: Sequence[Record]) -> dict[str, Fairness]:
    """Return how evenly workers, pods, nodes and devices shared the requests.

    Pods, nodes and devices count per worker, so that three workers on two devices are fair. Workers
    and pods count in the first pass alone, since each pass starts new ones. A group with a single
    member is left out.
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
            by_group[group] = fairness(
                {name: count / len(workers[name]) for name, count in counts.items()}
            )
    return by_group
