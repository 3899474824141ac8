"""Live statistics of a load, for runs of days: memory does not grow with time.

The loop's thread adds records, and any thread takes snapshots. Adding a record takes a few
microseconds, and waits only while a snapshot copies counts; longer computations use the copy. A
snapshot is immutable: pages, metrics and a client's final summary are made from it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.failures import FailureGroup
from scaletest.load.bounded_counts import (
    MEASURES,
    Bin,
    DurationHistogram,
    DurationSummary,
    LoadChange,
    LoadChanges,
    LoadTally,
    Packed,
    PlaceCount,
    Series,
    highest,
)
from scaletest.model import Outcome, Record

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Gauges:
    """Current settings and counters of the load.

    rate: requests that shall start in a second; None where the load has no rate that can be set.
    resume_with: what was kept in flight, or the rate, before the last pause.
    """

    load: str
    parallel: int
    maximum: int
    in_flight: int
    refused: int = 0
    resubmitted: int = 0
    rate: float | None = None
    resume_with: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSnapshot(Gauges):
    """Counts since the last reset, except where noted.

    elapsed_s: since the first request after the last reset; throughput is relative to it.
    recent_per_s: requests that succeeded per second, in the last ten whole seconds at most.
    generation: number of resets so far.
    lifetime: outcomes since the start, which a reset does not change.
    times: by measure, of requests that succeeded; `turn` and `late` are about the client itself.
    """

    queue: str
    now_s: float
    began_s: float
    elapsed_s: float
    succeeded: int
    failed: int
    outcomes: Mapping[str, int]
    recent_per_s: float
    generation: int
    lifetime: Mapping[str, int]
    lifetime_times: Mapping[str, DurationHistogram]
    times: Mapping[str, DurationSummary]
    places: tuple[PlaceCount, ...]
    other_places: tuple[int, int]
    failures: tuple[FailureGroup, ...]
    other_failures: int
    bins: tuple[Bin, ...]
    record_seq: int
    first_record_seq: int
    changes: tuple[LoadChange, ...]

    @property
    def per_s(self) -> float:
        """Requests that succeeded per second, since the last reset."""
        if self.elapsed_s > 0:
            return self.succeeded / self.elapsed_s
        return 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, schema version 1: base units, unknown is null."""
        return {
            "schema_version": SCHEMA_VERSION,
            "queue": self.queue,
            "load": self.load,
            "parallel": self.parallel,
            "max_parallel": self.maximum,
            "rate_per_s": self.rate,
            "resume_with": self.resume_with,
            "in_flight": self.in_flight,
            "now_s": self.now_s,
            "began_s": self.began_s,
            "elapsed_s": self.elapsed_s,
            "generation": self.generation,
            "succeeded": self.succeeded,
            "failed": self.failed,
            "outcomes": dict(self.outcomes),
            "throughput_per_s": self.per_s,
            "recent_throughput_per_s": self.recent_per_s,
            "times": {name: summary.to_dict() for name, summary in self.times.items()},
            "places": [
                {
                    **counted.place._asdict(),
                    "succeeded": counted.succeeded,
                    "failed": counted.failed,
                    "run_mean_s": counted.run_mean_s,
                    "run_max_s": counted.run_high_s,
                }
                for counted in self.places
            ],
            "other_places": dict(zip(("succeeded", "failed"), self.other_places, strict=True)),
            "failures": [group.to_dict() for group in self.failures],
            "other_failures": self.other_failures,
            "series_seq": self.bins[-1].last + 1 if self.bins else 0,
            "record_seq": self.record_seq,
            "first_record_seq": self.first_record_seq,
            "refused": self.refused,
            "resubmitted": self.resubmitted,
        }


KEPT_RECORDS = 10_000
RECENT_S = 10
# lowest and highest number in flight before the first turn of the loop
NO_TURN = (1 << 60, -1)


class Statistics:
    """Counts, percentiles, places, failures, a thinned series and the last records."""

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
        self._record_seq = 0
        self._generation = 0
        self._lifetime = dict.fromkeys(Outcome, 0)
        self._old_times = {name: DurationHistogram() for name in MEASURES}
        self._second = 0
        self._first_at: float | None = None
        self._changes = LoadChanges()
        self._asked: float | None = None
        self._bin_asked: float | None = None
        self._in_flight_low = self._in_flight_high = 0
        self._begin()

    def watch(self, gauges: Callable[[], Gauges]) -> None:
        """Use this function to read the load's settings and counters."""
        self._gauges = gauges

    def add(self, record: Record) -> None:
        """Count a record."""
        reply = record.reply
        with self._lock:
            now = self._clock() - self._epoch
            if now >= self._second_ends:
                self._roll(int(now))
            self._records.append(record)
            self._record_seq += 1
            outcome = reply.outcome
            self._outcomes[outcome] += 1
            if outcome is not Outcome.SUCCEEDED:
                self._bin_failed += 1
                self._tally.failed(reply, reply.ended_s or self._epoch_s + now)
                return
            self._second_count += 1
            self._wait.add(reply.wait_s)
            self._run.add(reply.run_s)
            self._overhead.add(record.overhead_s)
            self._total.add(record.total_s)
            self._tally.succeeded(reply)

    def turn(self, busy_s: float, in_flight: int) -> None:
        """Note a turn of the loop: how long it took, and how many requests are in flight."""
        with self._lock:
            now = self._clock() - self._epoch
            if now >= self._second_ends:
                self._roll(int(now))
            self._turns.add(busy_s)
            if in_flight > self._in_flight_high:
                self._in_flight_high = in_flight
            if in_flight < self._in_flight_low:
                self._in_flight_low = in_flight

    def late(self, seconds: float) -> None:
        """Note that a request was submitted this long after its intended start."""
        if self._first_at is None:
            self._first_at = self._clock() - self._epoch - seconds
        self._late.add(seconds)

    def ask(self, kind: str, wanted: float) -> None:
        """Note what is asked for from now on; a change unless it is the first. kind: as in
        `LoadChange`.
        """
        with self._lock:
            now = self._clock() - self._epoch
            self._roll(int(now))
            if self._asked is not None:
                self._changes.add(LoadChange(self._epoch_s + now, kind, self._asked, wanted))
            self._asked = wanted
            self._bin_asked = highest((self._bin_asked, wanted))

    def reset(self) -> None:
        """Start again; lifetime counts, kept records, changes of the load and the numbers of
        seconds are not reset.
        """
        with self._lock:
            now = self._clock() - self._epoch
            self._roll(int(now))
            self._changes.add(LoadChange(self._epoch_s + now, "reset", 0.0, 0.0))
            self._add_up()
            for name in MEASURES:
                self._old_times[name].merge(self._sums[name])
            for outcome, count in self._outcomes.items():
                self._lifetime[outcome] += count
            self._generation += 1
            self._begin()
            if self._gauges().in_flight:
                self._first_at = self._clock() - self._epoch

    def records(self, since: int) -> tuple[int, list[Record]]:
        """All kept records after number `since`, and the number of the first of them."""
        with self._lock:
            records = list(self._records)
            oldest = self._record_seq - len(records) + 1
        skipped = min(len(records), max(0, since - oldest + 1))
        return oldest + skipped, records[skipped:]

    def snapshot(self) -> LoadSnapshot:
        """All statistics at this moment."""
        gauges = self._gauges()
        with self._lock:
            now = self._clock() - self._epoch
            if now >= self._second_ends:
                self._roll(int(now))
            times, lifetime_times = self._copy_times()
            client = {"turn": self._turns.copy(), "late": self._late.copy()}
            outcomes = dict(self._outcomes)
            lifetime = {name: count + outcomes[name] for name, count in self._lifetime.items()}
            first_at = self._first_at
            tables = self._copy_tables(self._epoch_s + now)
        for name, merged in lifetime_times.items():
            merged.merge(times[name])
        succeeded = outcomes[Outcome.SUCCEEDED]
        return LoadSnapshot(
            queue=self.queue,
            **asdict(gauges),
            now_s=self._epoch_s + now,
            began_s=self._epoch_s,
            elapsed_s=0.0 if first_at is None else max(0.0, now - first_at),
            succeeded=succeeded,
            failed=sum(outcomes.values()) - succeeded,
            outcomes=_named(outcomes),
            lifetime=_named(lifetime),
            lifetime_times=lifetime_times,
            times={name: durations.summary() for name, durations in {**times, **client}.items()},
            **tables,
        )

    def _copy_times(self) -> tuple[dict[str, DurationHistogram], dict[str, DurationHistogram]]:
        """Times since the last reset, and those before it."""
        times = {name: sums.copy() for name, sums in self._sums.items()}
        for name, current in self._current.items():
            times[name].merge(current)
        return times, {name: old.copy() for name, old in self._old_times.items()}

    def _copy_tables(self, now_s: float) -> dict[str, Any]:
        return {
            "places": self._tally.places(),
            "other_places": (self._tally.other_succeeded, self._tally.other_failed),
            "failures": self._tally.failures(now_s),
            "other_failures": self._tally.other_failures,
            "bins": self._series.bins(),
            "record_seq": self._record_seq,
            "first_record_seq": self._record_seq - len(self._records) + 1,
            "recent_per_s": sum(self._recent) / len(self._recent) if self._recent else 0.0,
            "generation": self._generation,
            "changes": self._changes.all(),
        }

    def _begin(self) -> None:
        """Empty counts of a new generation."""
        self._outcomes = dict.fromkeys(Outcome, 0)
        self._sums = {name: DurationHistogram() for name in MEASURES}
        self._turns = DurationHistogram()
        self._late = DurationHistogram()
        self._tally = LoadTally(self._epoch_s + self._clock() - self._epoch)
        self._series = Series()
        self._recent: deque[int] = deque(maxlen=RECENT_S)
        self._first_at = None
        self._second_count = 0
        self._begin_bin()

    def _begin_bin(self) -> None:
        self._second_ends = self._second + 1
        self._bin_first = self._second
        self._bin_succeeded = self._bin_failed = 0
        self._bin_rates: list[int] = []
        self._in_flight_low, self._in_flight_high = NO_TURN
        self._bin_asked = self._asked
        self._current = {name: DurationHistogram() for name in MEASURES}
        self._wait, self._run, self._overhead, self._total = (
            self._current[name] for name in MEASURES
        )

    def _roll(self, second: int) -> None:
        """Close all seconds before number `second`, in one turn for each bin."""
        while self._second < second:
            upto = min(second, self._bin_first + self._series.width)
            empty = upto - self._second - 1
            self._recent.append(self._second_count)
            self._recent.extend([0] * min(empty, RECENT_S))
            self._bin_succeeded += self._second_count
            self._bin_rates += [self._second_count] + [0] * bool(empty)
            self._bin_rates = [min(self._bin_rates), max(self._bin_rates)]
            self._second_count = 0
            self._second = upto
            self._second_ends = upto + 1
            if upto == self._bin_first + self._series.width:
                self._end_bin()

    def _end_bin(self) -> None:
        packed = tuple(Packed.of(self._current[name]) for name in MEASURES)
        low, high = self._bin_rates
        in_flight = (self._in_flight_low, self._in_flight_high)
        if in_flight == NO_TURN:
            in_flight = (self._gauges().in_flight,) * 2
        self._series.append(
            Bin(
                self._bin_first,
                self._second - 1,
                self._bin_succeeded,
                self._bin_failed,
                (low, high),
                in_flight,
                packed,
                self._bin_asked,
            )
        )
        self._add_up()
        self._begin_bin()

    def _add_up(self) -> None:
        for name, current in self._current.items():
            self._sums[name].merge(current)


def _named(counts: Mapping[Outcome, int]) -> dict[str, int]:
    return {outcome.value: count for outcome, count in counts.items()}
