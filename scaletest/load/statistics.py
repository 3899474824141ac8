"""Live statistics of a load, for runs of days: memory does not grow with time.

The loop's thread adds records, and any thread takes snapshots. Adding a record takes a few
microseconds, and waits only while a snapshot adds up counts. A snapshot is immutable: pages,
metrics and a client's final summary are made from it. Its charts reach back ten minutes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from scaletest.load.places import LoadTally, highest_known
from scaletest.load.snapshot import Gauges, LoadSnapshot, SeriesPoint, Spread
from scaletest.model import Outcome, Record
from scaletest.model.histogram import DurationHistogram

# Durations of requests that succeeded.
MEASURES = ("wait", "run", "overhead", "total")
KEPT_RECORDS = 10_000
# Seconds of the charts, and of the recent throughput.
MOST_POINTS = 600
RECENT_S = 10


@dataclass(frozen=True, slots=True)
class _Counts:
    """Requests that ended in some time, and their durations."""

    outcomes: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    # of requests that succeeded, and of the client itself
    times: dict[str, DurationHistogram] = field(
        default_factory=lambda: {name: DurationHistogram() for name in (*MEASURES, "turn", "late")}
    )

    def plus(self, other: _Counts) -> _Counts:
        """Return the sum of both."""
        return _Counts(
            {name: count + other.outcomes[name] for name, count in self.outcomes.items()},
            {name: times.plus(other.times[name]) for name, times in self.times.items()},
        )

    @property
    def succeeded(self) -> int:
        """How many requests succeeded."""
        return self.outcomes[Outcome.SUCCEEDED]

    @property
    def failed(self) -> int:
        """How many requests did not succeed."""
        return sum(self.outcomes.values()) - self.succeeded


class Statistics:
    """Counts, percentiles, places and failures, the last ten minutes, and the last records."""

    def __init__(
        self,
        queue: str,
        *,
        keep: int = KEPT_RECORDS,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.queue = queue
        self._clock = clock
        self._lock = threading.Lock()
        self._gauges: Callable[[], Gauges] = lambda: Gauges("none", 0, 0, 0)
        self._epoch = clock()
        self._epoch_s = wall()
        self._records: deque[Record] = deque(maxlen=keep)
        self._record_seq = 0  # the number of the last record
        self._generation = 0  # number of resets so far
        self._asked: float | None = None  # in flight, or a second
        self._points: deque[SeriesPoint] = deque(maxlen=MOST_POINTS)
        # before the last reset, since then until this second, and in this second
        self._before, self._since, self._now = _Counts(), _Counts(), _Counts()
        self._tally = LoadTally()
        self._first_at: float | None = None  # when the first request began, since the last reset
        # this second: its number, the most that was in flight (None before a turn of the loop), and
        # the most that was asked for
        self._second = 0
        self._in_flight: int | None = None
        self._most_asked: float | None = None

    def read_gauges_by(self, gauges: Callable[[], Gauges]) -> None:
        """Use this function to read the load's settings and counters."""
        self._gauges = gauges

    def add(self, record: Record) -> None:
        """Count a record."""
        reply = record.reply
        with self._lock:
            now = self._close_seconds()
            self._records.append(record)
            self._record_seq += 1
            outcome = reply.outcome
            self._now.outcomes[outcome] += 1
            if outcome is not Outcome.SUCCEEDED:
                self._tally.add_failure(reply, reply.ended_s or self._epoch_s + now)
                return
            times = self._now.times
            times["wait"].add(reply.wait_s)
            times["run"].add(reply.run_s)
            times["overhead"].add(record.overhead_s)
            times["total"].add(record.total_s)
            self._tally.add_success(reply)

    def note_turn(self, busy_s: float, in_flight: int) -> None:
        """Note a turn of the loop: how long it took, and how many requests are in flight."""
        with self._lock:
            self._close_seconds()
            self._now.times["turn"].add(busy_s)
            if self._in_flight is None or in_flight > self._in_flight:
                self._in_flight = in_flight

    def note_lateness(self, seconds: float) -> None:
        """Note that a request was submitted this long after its intended start."""
        with self._lock:
            now = self._close_seconds()
            if self._first_at is None:
                self._first_at = now - seconds
            self._now.times["late"].add(seconds)

    def note_asked(self, wanted: float) -> None:
        """Note what is asked for from now on: in flight, or a second."""
        with self._lock:
            self._close_seconds()
            self._asked = wanted
            self._most_asked = highest_known((self._most_asked, wanted))

    def reset(self) -> None:
        """Start again; lifetime counts, kept records and the numbers of seconds are not reset."""
        with self._lock:
            now = self._close_seconds()
            self._before = self._before.plus(self._since).plus(self._now)
            self._since = _Counts()
            self._tally = LoadTally()
            self._points.clear()
            self._generation += 1
            self._begin_second(self._second)
            self._first_at = now if self._gauges().in_flight else None

    def records(self, since: int) -> tuple[int, list[Record]]:
        """Return all kept records after number `since`, and the number of the first of them."""
        with self._lock:
            records = list(self._records)
            oldest = self._record_seq - len(records) + 1
        skipped = min(len(records), max(0, since - oldest + 1))
        return oldest + skipped, records[skipped:]

    def snapshot(self) -> LoadSnapshot:
        """Return all statistics at this moment."""
        gauges = self._gauges()
        with self._lock:
            now = self._close_seconds()
            counts = self._since.plus(self._now)
            before, first_at, points = self._before, self._first_at, tuple(self._points)
            tables: dict[str, Any] = {
                "places": self._tally.places(),
                "other_places": (self._tally.other_succeeded, self._tally.other_failed),
                "failures": self._tally.failures.groups(),
                "other_failures": self._tally.failures.others,
                "record_seq": self._record_seq,
                "first_record_seq": self._record_seq - len(self._records) + 1,
                "generation": self._generation,
            }
        lifetime = before.plus(counts)
        recent = points[-RECENT_S:]
        return LoadSnapshot(
            queue=self.queue,
            **asdict(gauges),
            **tables,
            now_s=self._epoch_s + now,
            began_s=self._epoch_s,
            elapsed_s=0.0 if first_at is None else max(0.0, now - first_at),
            succeeded=counts.succeeded,
            failed=counts.failed,
            outcomes=_by_name(counts.outcomes),
            lifetime=_by_name(lifetime.outcomes),
            lifetime_times=lifetime.times,
            times={name: durations.summary() for name, durations in counts.times.items()},
            points=points,
            recent_per_s=sum(point.succeeded for point in recent) / max(1, len(recent)),
        )

    def _close_seconds(self) -> float:
        """Close the seconds that are over; return the time since the load began."""
        now = self._clock() - self._epoch
        second = int(now)
        if second > self._second:
            self._points.append(self._present_point())
            self._since = self._since.plus(self._now)
            # after a long silence the older seconds would be dropped at once
            for number in range(max(self._second + 1, second - MOST_POINTS), second):
                self._begin_second(number)
                self._points.append(self._present_point())
            self._begin_second(second)
        return now

    def _begin_second(self, number: int) -> None:
        """Count from nothing in this second."""
        self._second = number
        self._now = _Counts()
        self._in_flight = None
        self._most_asked = self._asked

    def _present_point(self) -> SeriesPoint:
        """Return the present second."""
        counts, in_flight = self._now, self._in_flight
        return SeriesPoint(
            self._second + 1,
            self._epoch_s + self._second,
            counts.succeeded,
            counts.failed,
            # without a turn of the loop nothing has changed
            self._gauges().in_flight if in_flight is None else in_flight,
            self._most_asked,
            *(Spread.of(counts.times[name]) for name in MEASURES),
        )


def _by_name(counts: Mapping[Outcome, int]) -> dict[str, int]:
    return {outcome.value: count for outcome, count in counts.items()}
