"""Failures in groups, so that a thousand of them read as three lines.

Failures of a group have outcome, reason, exit code and the pattern of their error in common. A
group has one error as its example, counts where they occurred, and the first and the last time.
Memory is bounded, since a load may run for days.
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

# Of more groups, or more places of a group, those go that had no failure for longest.
MOST_GROUPS = 100
MOST_PLACES = 50
# Characters of an error that are kept.
LONGEST_ERROR = 500
# What the failures of a group have in common: outcome, reason, exit code and pattern.
_GroupKey = tuple[str, str, int | None, str]


class FailedReply(Protocol):
    """The reply of a request that failed, or what a queue keeps of it."""

    @property
    def outcome(self) -> str:
        """How it ended."""

    @property
    def reason(self) -> str:
        """Why it failed."""

    @property
    def exit_code(self) -> int | None:
        """The exit code of its program, None without one."""

    @property
    def error(self) -> str:
        """What went wrong, with the end of the program's output."""

    @property
    def node(self) -> str:
        """Where it ran, "" where that is unknown."""

    @property
    def device(self) -> str:
        """The device of its worker, "" without one."""


@dataclass(frozen=True, slots=True)
class FailurePlace(Written):
    """Failures of a group on one device of a node. Names are empty where unknown."""

    node: str
    device: str
    count: Positive


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
        """Failures by node, the most first."""
        sums: Counter[str] = Counter()
        for place in self.places:
            sums[place.node] += place.count
        return dict(sums.most_common())

    @property
    def devices(self) -> Mapping[str, int]:
        """Failures by the short name of the device, the most first.

        Those without a device are left out. With several nodes the name tells the node, too.
        """
        has_several_nodes = len(self.nodes) > 1
        sums: Counter[str] = Counter()
        for place in self.places:
            if place.device:
                suffix = f" of {place.node}" if has_several_nodes and place.node else ""
                sums[device_name(place.device) + suffix] += place.count
        return dict(sums.most_common())


@dataclass(slots=True)
class _Counts:
    """The counts of one group."""

    error: str
    count: int = 0
    first_s: float = math.inf
    last_s: float = 0.0
    # by node and device, sorted by the last failure there, oldest first
    places: dict[tuple[str, str], int] = field(default_factory=dict)
    elsewhere: int = 0

    def add(self, place: tuple[str, str]) -> None:
        """Count a failure at this place."""
        self.count += 1
        # taken out and put back, so that it becomes the last
        count_before = self.places.pop(place, 0)
        if not count_before and len(self.places) >= MOST_PLACES:
            self.elsewhere += self.places.pop(next(iter(self.places)))
        self.places[place] = count_before + 1


class FailureTally:
    """Counts failures by group; a new group replaces the one that had no failure for longest.

    Not safe for several threads at once.
    """

    def __init__(self, most: int = MOST_GROUPS) -> None:
        self._most = most
        # sorted by their last failure, oldest first
        self._groups: dict[_GroupKey, _Counts] = {}
        self.others = 0  # failures of groups that were replaced

    def add(self, failure: FailedReply, at_s: float) -> None:
        """Count a failure. at_s: when it ended, 0 where that is unknown."""
        error = failure.error[:LONGEST_ERROR]
        key = str(failure.outcome), str(failure.reason), failure.exit_code, pattern_of(error)
        # taken out and put back, so that it becomes the last
        counts = self._groups.pop(key, None)
        if counts is None:
            counts = _Counts(error)
            if len(self._groups) >= self._most:
                self.others += self._groups.pop(next(iter(self._groups))).count
        self._groups[key] = counts
        counts.add((failure.node, failure.device))
        if at_s > 0:
            counts.first_s = min(counts.first_s, at_s)
            counts.last_s = max(counts.last_s, at_s)

    def groups(self) -> tuple[FailureGroup, ...]:
        """Return the groups, the most frequent first."""
        groups = []
        for key, counts in self._groups.items():
            places = sorted(counts.places.items(), key=lambda counted: (-counted[1], counted[0]))
            groups.append(
                FailureGroup(
                    *key,
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
    """Return the most frequent groups of failures, at most MOST_GROUPS, the largest first.

    Each failure comes with the time when it ended, 0 where that is unknown.
    """
    timed_failures = list(failures)
    tally = FailureTally(most=len(timed_failures))
    for failure, at_s in timed_failures:
        tally.add(failure, at_s)
    return list(tally.groups())[:MOST_GROUPS]


def groups_of(records: Iterable[Record]) -> list[FailureGroup]:
    """Group the failures among these records."""
    return group_failures(
        (record.reply, record.reply.ended_s) for record in records if not record.ok
    )


def count_alike(texts: Iterable[str]) -> Counter[str]:
    """Count texts of one pattern together, under the first text of each."""
    examples: dict[str, str] = {}
    return Counter(examples.setdefault(pattern_of(text), text) for text in texts)
