"""Failures in groups, so that a thousand of them read as three lines.

Memory is bounded, since a load may run for days.

Failures of a group have outcome, reason, exit code and the pattern of their error in common. A
group has one error as its example, counts where they occurred, and the first and the last time.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Protocol

from scaletest.model import Record
from scaletest.model.declared import Count, Positive
from scaletest.model.error_pattern import pattern_of
from scaletest.model.writing import Written
from scaletest.render.text import device_name

# Rows that are kept of each table: those that had no failure for longest go.
MOST_GROUPS, MOST_PLACES = 100, 50
# Characters of an error that are kept.
LONGEST_ERROR = 500
# What the failures of a group have in common: outcome, reason, exit code and pattern.
_Kind = tuple[str, str, int | None, str]


class FailedReply(Protocol):
    """The reply of a request that failed, or what a queue keeps of it."""

    @property
    def outcome(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def error(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def device(self) -> str: ...


@dataclass(frozen=True, slots=True)
class FailurePlace(Written):
    """Failures of a group on one device of a node. Names are empty where unknown."""

    node: str
    device: str
    count: Positive

    def device_label(self, with_node: bool) -> str:
        """The device's name, with that of its node."""
        name = device_name(self.device)
        return f"{name} of {self.node}" if with_node and self.node else name


@dataclass(frozen=True, slots=True)
class FailureGroup(Written):
    """Requests that failed alike."""

    outcome: str
    reason: str
    exit_code: int | None
    pattern: Annotated[
        str, "their error, with placeholders for pointers, numbers, paths, times and the like"
    ]
    error: Annotated[str, "the error of the first of them"]
    count: Positive
    places: Annotated[tuple[FailurePlace, ...], "where they ran, most first"]
    elsewhere: Annotated[Count, "how many of them ran at places too long ago to be listed"]
    first_s: Annotated[float, "when the first of them ended, on Redis's clock; 0 when none began"]
    last_s: Annotated[float, "Redis seconds of the first and the last failure, 0 when none began."]

    @property
    def nodes(self) -> Mapping[str, int]:
        """Counts by node."""
        return _sums((place.node, place.count) for place in self.places)

    @property
    def devices(self) -> Mapping[str, int]:
        """Counts by the last part of a device's path, of those that had a device; with its node
        where there are several.
        """
        several = len(self.nodes) > 1
        return _sums(
            (place.device_label(several), place.count) for place in self.places if place.device
        )


def _sums(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sums by name, the largest first."""
    sums: Counter[str] = Counter()
    for name, count in counts:
        sums[name] += count
    return dict(sums.most_common())


@dataclass(slots=True)
class _Counts:
    """Counts of a group. places: sorted by their last failure, oldest first."""

    error: str
    count: int = 0
    first_s: float = math.inf
    last_s: float = 0.0
    places: dict[tuple[str, str], int] = field(default_factory=dict)
    elsewhere: int = 0

    def add(self, place: tuple[str, str]) -> None:
        """Count a failure at this place."""
        self.count += 1
        before = self.places.pop(place, 0)
        if not before and len(self.places) >= MOST_PLACES:
            self.elsewhere += self.places.pop(next(iter(self.places)))
        self.places[place] = before + 1


class FailureTally:
    """Groups of failures; a new group replaces the one that had no failure for longest. Not safe
    for several threads at once.

    others: failures of groups that were replaced.
    """

    def __init__(self, most: int = MOST_GROUPS) -> None:
        self._most = most
        # Sorted by their last failure, oldest first.
        self._groups: dict[_Kind, _Counts] = {}
        self.others = 0

    def add(self, failure: FailedReply, at_s: float) -> None:
        """Count a failure. at_s: when it ended, 0 where that is unknown."""
        error = failure.error[:LONGEST_ERROR]
        kind = str(failure.outcome), str(failure.reason), failure.exit_code, pattern_of(error)
        counts = self._groups.pop(kind, None)
        if counts is None:
            counts = _Counts(error)
            if len(self._groups) >= self._most:
                self.others += self._groups.pop(next(iter(self._groups))).count
        self._groups[kind] = counts
        counts.add((failure.node, failure.device))
        if at_s > 0:
            counts.first_s = min(counts.first_s, at_s)
            counts.last_s = max(counts.last_s, at_s)

    def groups(self) -> tuple[FailureGroup, ...]:
        """Return the groups, the most frequent first."""
        groups = []
        for kind, counts in self._groups.items():
            places = sorted(counts.places.items(), key=lambda counted: (-counted[1], counted[0]))
            groups.append(
                FailureGroup(
                    *kind,
                    error=counts.error,
                    count=counts.count,
                    places=tuple(FailurePlace(*place, count) for place, count in places),
                    elsewhere=counts.elsewhere,
                    first_s=counts.first_s if counts.last_s else 0.0,
                    last_s=counts.last_s,
                )
            )
        return tuple(sorted(groups, key=lambda group: (-group.count, group.pattern)))


def group_failures(failures: Iterable[tuple[FailedReply, float]]) -> list[FailureGroup]:
    """The MOST_GROUPS most frequent groups of failures, the largest first. Each failure comes with
    the time when it ended, 0 where that is unknown.
    """
    known = list(failures)
    tally = FailureTally(most=len(known))
    for failure, at_s in known:
        tally.add(failure, at_s)
    return list(tally.groups())[:MOST_GROUPS]


def groups_of(records: Iterable[Record]) -> list[FailureGroup]:
    """Groups of the failures among these records."""
    return group_failures(
        (record.reply, record.reply.ended_s) for record in records if not record.ok
    )


def count_alike(texts: Iterable[str]) -> Counter[str]:
    """How often texts of one pattern occur, by the first text of each."""
    examples: dict[str, str] = {}
    return Counter(examples.setdefault(pattern_of(text), text) for text in texts)
