"""A snapshot of a load's statistics, immutable, for pages, metrics and a client's final summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.load.durations import DurationHistogram, DurationSummary
from scaletest.load.series import Bin
from scaletest.load.tally import FailureCount, PlaceCount

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class LoadSnapshot:
    """Counts since the last reset, except where noted.

    elapsed_s: since the first request after the last reset; throughput is relative to it.
    recent_per_s: requests that succeeded per second, in the last ten whole seconds at most.
    generation: number of resets so far.
    lifetime: outcomes since the start, which a reset does not change.
    times: by measure, of requests that succeeded; `turn` and `late` are about the client itself.
    """

    queue: str
    load: str
    parallel: int
    maximum: int
    in_flight: int
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
    failures: tuple[FailureCount, ...]
    other_failures: int
    bins: tuple[Bin, ...]
    record_seq: int
    first_record_seq: int
    refused: int
    resubmitted: int

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
            "places": [_place(counted) for counted in self.places],
            "other_places": dict(zip(("succeeded", "failed"), self.other_places, strict=True)),
            "failures": [_failure(counted) for counted in self.failures],
            "other_failures": self.other_failures,
            "series_seq": self.bins[-1].last + 1 if self.bins else 0,
            "record_seq": self.record_seq,
            "first_record_seq": self.first_record_seq,
            "refused": self.refused,
            "resubmitted": self.resubmitted,
        }


def _place(counted: PlaceCount) -> dict[str, Any]:
    counts = {"succeeded": counted.succeeded, "failed": counted.failed}
    return {
        **counted.place._asdict(),
        **counts,
        "run_mean_s": counted.run_mean_s,
        "run_max_s": counted.run_high_s,
    }


def _failure(counted: FailureCount) -> dict[str, Any]:
    return {
        **counted.kind._asdict(),
        "count": counted.seen,
        "first_s": counted.first_s,
        "last_s": counted.last_s,
    }
