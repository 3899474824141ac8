"""Who did how much: the requests of one step by worker, node, pod and device."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from scaletest.analysis.steps import Rows, Step, failed
from scaletest.model import Record

KINDS = ("worker", "node", "pod", "device")
# Each repeat has others of these, and it may be longer than the next: only those of one repeat
# compare.
RESTARTED = ("worker", "pod")
# More members than this are shown from both ends: the busiest and the idlest.
MOST_MEMBERS = 24


@dataclass(frozen=True, slots=True)
class Member:
    """One worker, node, pod or device. share: of the successful requests; run_s: their mean."""

    name: str
    done: int
    share: float
    run_s: float | None
    failed: int


@dataclass(frozen=True, slots=True)
class Group:
    """All members of a kind, the busiest first; left_out: how many of the middle are missing."""

    kind: str
    members: list[Member]
    left_out: int


def groups(step: Step, records: Rows) -> list[Group]:
    """The kinds in which a step had more than one member; a pod that is its node says nothing.

    Of several repeats workers and pods are those of the first, since every repeat starts its own.
    """
    repeats = [records.get(one.measurement.key, ()) for one in step.samples]
    found = []
    seen: list[set[str]] = []
    for kind in KINDS:
        by: dict[str, list[Record]] = defaultdict(list)
        for row in chain.from_iterable(repeats[:1] if kind in RESTARTED else repeats):
            by[getattr(row.reply, kind)].append(row)
        by.pop("", None)
        if len(by) > 1 and set(by) not in seen:
            seen.append(set(by))
            found.append(_group(kind, by))
    return found


def _group(kind: str, by: dict[str, list[Record]]) -> Group:
    total = sum(row.ok for rows in by.values() for row in rows)
    members = sorted(
        (_member(name, rows, total) for name, rows in by.items()),
        key=lambda one: (-one.done, one.name),
    )
    left_out = max(0, len(members) - MOST_MEMBERS)
    if left_out:
        half = MOST_MEMBERS // 2
        members = [*members[:half], *members[-half:]]
    return Group(kind, members, left_out)


def _member(name: str, rows: Sequence[Record], total: int) -> Member:
    good = [row.reply.run_s for row in rows if row.ok]
    mean = statistics.fmean(good) if good else None
    return Member(
        name, len(good), len(good) / total if total else 0.0, mean, sum(map(failed, rows))
    )
