"""A load's statistics at one moment, as pages, metrics and a final summary show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from scaletest.load.places import PlaceCount
from scaletest.model.histogram import DurationHistogram, DurationSummary, histogram_quantile
from scaletest.stats.failures import FailureGroup

SCHEMA_VERSION = 1


class Spread(NamedTuple):
    """Durations in one second, in seconds; None when too few requests ended in it."""

    p50_s: float | None
    p95_s: float | None
    high_s: float | None

    @classmethod
    def of(cls, times: DurationHistogram) -> Spread:
        """Return the spread of these durations; the median is known for any number of them."""
        if not times.count:
            return cls(None, None, None)
        middle_s = histogram_quantile(times.counts, 0.5) or 0.0
        return cls(min(times.high, middle_s), times.quantile("p95"), times.high)


class SeriesPoint(NamedTuple):
    """One second of a load."""

    seq: int  # its number since the load began, from 1 on
    at_s: float  # when it began, in seconds since the epoch
    succeeded: int
    failed: int
    in_flight: int  # the most in it
    asked: float | None  # the most that was asked for: in flight, or a second; None for a schedule
    wait: Spread
    run: Spread
    overhead: Spread
    total: Spread


@dataclass(frozen=True, slots=True)
class Gauges:
    """Current settings and counters of the load."""

    load: str  # its kind
    parallel: int
    maximum: int
    in_flight: int
    refused: int = 0
    resubmitted: int = 0
    # requests that shall start in a second; None where the load has no rate that can be set
    rate: float | None = None
    resume_with: float | None = None  # what was kept in flight, or the rate, before the last pause


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSnapshot(Gauges):
    """Counts since the last reset, except where noted."""

    queue: str
    now_s: float
    began_s: float
    elapsed_s: float  # since the first request; throughput is relative to it
    succeeded: int
    failed: int
    outcomes: Mapping[str, int]
    recent_per_s: float  # that succeeded, in the last ten whole seconds at most
    generation: int  # number of resets so far
    lifetime: Mapping[str, int]  # outcomes since the start, which a reset does not change
    lifetime_times: Mapping[str, DurationHistogram]
    # by measure, of requests that succeeded; `turn` and `late` are about the client itself
    times: Mapping[str, DurationSummary]
    places: tuple[PlaceCount, ...]
    other_places: tuple[int, int]
    failures: tuple[FailureGroup, ...]
    other_failures: int
    points: tuple[SeriesPoint, ...]
    record_seq: int
    first_record_seq: int

    @property
    def per_s(self) -> float:
        """Requests that succeeded per second, since the last reset."""
        return self.succeeded / self.elapsed_s if self.elapsed_s > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, schema version 1: base units, unknown is null."""
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
            "series_seq": self.points[-1].seq if self.points else 0,
            "record_seq": self.record_seq,
            "first_record_seq": self.first_record_seq,
            "refused": self.refused,
            "resubmitted": self.resubmitted,
        }
