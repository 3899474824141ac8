"""Failures in groups, so that a thousand of them read as three lines: in bounded memory, as a load
needs it that runs for days.

Failures of a group have outcome, reason, exit code and the pattern of their error in common. A
group has one error as its example, and counts where and when they occurred. Times are divided into
bins that all groups share; when there are too many, each two neighbours become one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, Protocol

from scaletest.model import Record
from scaletest.model.declared import Count, Positive, Written
from scaletest.model.error_pattern import pattern_of
from scaletest.render import numbers
from scaletest.render.text import device_name

MOST_GROUPS, MOST_PLACES, MOST_BINS = 100, 50, 40
LONGEST_ERROR = 500


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
    begin_s: Annotated[float, "Redis seconds where the first bin begins"]
    bin_s: Annotated[float, "seconds of a bin"]
    bins: Annotated[tuple[Count, ...], "how many of them ended in each bin; of all groups alike"]

    @property
    def course(self) -> str:
        """How many they were, and how many at most in a bin, for who cannot see a spark line."""
        peak = max(self.bins, default=0)
        width = numbers.duration(self.bin_s) if self.bin_s > 60 else f"{self.bin_s:g} s"
        densest = f", at most {numbers.grouped(peak)} in {width}" if peak else ""
        return f"{numbers.plural(self.count, 'failure')}{densest}"

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


class _Kind(NamedTuple):
    """What the failures of a group have in common."""

    outcome: str
    reason: str
    exit_code: int | None
    pattern: str


@dataclass(slots=True)
class _Counts:
    """Counts of a group. places: sorted by their last failure, oldest first."""

    error: str
    count: int = 0
    first_s: float = math.inf
    last_s: float = 0.0
    places: dict[tuple[str, str], int] = field(default_factory=dict)
    elsewhere: int = 0
    bins: Counter[int] = field(default_factory=Counter)

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

    def __init__(self, begin_s: float, most: int = MOST_GROUPS) -> None:
        """begin_s: when the requests began, in seconds of the clock that `add` gets."""
        self._begin_s = begin_s
        self._bin_s = 1.0
        self._most = most
        # Sorted by their last failure, oldest first.
        self._groups: dict[_Kind, _Counts] = {}
        self.others = 0

    def add(self, failure: FailedReply, at_s: float) -> None:
        """Count a failure. at_s: when it ended, 0 where that is unknown."""
        error = failure.error[:LONGEST_ERROR]
        kind = _Kind(
            str(failure.outcome), str(failure.reason), failure.exit_code, pattern_of(error)
        )
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
            number = self._bin(at_s)
            counts.bins[number] += 1

    def _bin(self, at_s: float) -> int:
        """The number of a time's bin, after all bins were made as wide as that needs."""
        while (number := int(max(0.0, at_s - self._begin_s) / self._bin_s)) >= MOST_BINS:
            self._bin_s *= 2
            for counts in self._groups.values():
                halves = counts.bins
                counts.bins = Counter()
                for half, count in halves.items():
                    counts.bins[half // 2] += count
        return number

    def groups(self, until_s: float = 0.0) -> tuple[FailureGroup, ...]:
        """The groups, the most frequent first. until_s: until when failures would have been added;
        bins reach until then.
        """
        last_s = max([until_s, *(counts.last_s for counts in self._groups.values())])
        bins = range(self._bin(last_s) + 1)
        groups = [self._group(kind, counts, bins) for kind, counts in self._groups.items()]
        return tuple(sorted(groups, key=lambda group: (-group.count, group.pattern)))

    def _group(self, kind: _Kind, counts: _Counts, bins: Iterable[int]) -> FailureGroup:
        return FailureGroup(
            *kind,
            error=counts.error,
            count=counts.count,
            places=_places(counts.places),
            elsewhere=counts.elsewhere,
            first_s=counts.first_s if counts.last_s else 0.0,
            last_s=counts.last_s,
            begin_s=self._begin_s,
            bin_s=self._bin_s,
            bins=tuple(counts.bins[number] for number in bins),
        )


def _places(counts: Mapping[tuple[str, str], int]) -> tuple[FailurePlace, ...]:
    ordered = sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))
    return tuple(FailurePlace(*place, count) for place, count in ordered)


def grouped(
    failures: Iterable[tuple[FailedReply, float]], begin_s: float, until_s: float
) -> list[FailureGroup]:
    """The MOST_GROUPS most frequent groups of failures, the largest first. Each comes with the time
    when it ended, 0 where that is unknown; bins reach from begin_s to until_s.
    """
    known = list(failures)
    tally = FailureTally(begin_s, most=len(known))
    for failure, at_s in known:
        tally.add(failure, at_s)
    return list(tally.groups(until_s))[:MOST_GROUPS]


def groups_of(records: Iterable[Record]) -> list[FailureGroup]:
    """Groups of the failures among these records. Their bins reach from the first end of a request
    to the last.
    """
    failed = []
    begin_s, until_s = math.inf, 0.0
    for record in records:
        if ended_s := record.reply.ended_s:
            begin_s, until_s = min(begin_s, ended_s), max(until_s, ended_s)
        if not record.ok:
            failed.append((record.reply, ended_s))
    return grouped(failed, begin_s if until_s else 0.0, until_s)


def counted_alike(texts: Iterable[str]) -> Counter[str]:
    """How often texts of one pattern occur, by the first text of each."""
    examples: dict[str, str] = {}
    return Counter(examples.setdefault(pattern_of(text), text) for text in texts)
