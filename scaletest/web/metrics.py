"""Prometheus metrics of a client. Counters are never reset; units are base units."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from scaletest.load.durations import DurationHistogram
from scaletest.load.snapshot import LoadSnapshot
from scaletest.model import histogram
from scaletest.web.security import HttpCounts

_DIGITS_AND_POWERS = itertools.product(range(-4, 4), ("1", "2.5", "5"))
BOUNDS = tuple(float(f"{digit}e{power}") for power, digit in _DIGITS_AND_POWERS)
HISTOGRAMS = {
    "wait": "Time from enqueue to start of requests that succeeded.",
    "run": "Time the workload ran, for requests that succeeded.",
    "overhead": "Total minus wait minus run, for requests that succeeded.",
    "total": "Time from the start, or intended start, to the reply, for requests that succeeded.",
}


def render(snapshot: LoadSnapshot, http: HttpCounts) -> tuple[bytes, str]:
    """The text and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(snapshot, http))
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Collector:
    """The metrics of one snapshot."""

    def __init__(self, snapshot: LoadSnapshot, http: HttpCounts) -> None:
        self._snapshot = snapshot
        self._http = http

    def describe(self) -> Iterable[Metric]:
        """Nothing, because names cannot clash in a registry with one collector."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        snapshot, queue = self._snapshot, [self._snapshot.queue]
        requests = CounterMetricFamily(
            "scaletest_client_requests",
            "Requests that ended, by outcome.",
            labels=["queue", "outcome"],
        )
        for outcome, count in snapshot.lifetime.items():
            requests.add_metric([*queue, outcome], count)
        yield requests
        for name, number, text in (
            ("in_flight", snapshot.in_flight, "Requests without a reply yet."),
            ("parallel", snapshot.parallel, "Requests that are kept in flight, at most."),
        ):
            gauge = GaugeMetricFamily(f"scaletest_client_{name}", text, labels=["queue"])
            gauge.add_metric(queue, number)
            yield gauge
        for name, number, text in (
            ("refused", snapshot.refused, "Times that a full queue refused a request."),
            (
                "resubmitted",
                snapshot.resubmitted,
                "Requests submitted again after a crash of Redis.",
            ),
        ):
            counter = CounterMetricFamily(f"scaletest_client_{name}", text, labels=["queue"])
            counter.add_metric(queue, number)
            yield counter
        for name, text in HISTOGRAMS.items():
            times = HistogramMetricFamily(
                f"scaletest_client_{name}_seconds", text, labels=["queue"]
            )
            counted = snapshot.lifetime_times[name]
            times.add_metric(queue, _buckets(counted), counted.total)
            yield times
        http = CounterMetricFamily(
            "scaletest_client_http_requests", "HTTP queries, by result.", labels=["result"]
        )
        http.add_metric(["completed"], self._http.completed)
        http.add_metric(["rejected"], self._http.rejected)
        yield http


def _buckets(times: DurationHistogram) -> list[tuple[str, float]]:
    """Cumulative counts; a duration counts by the middle of its bucket, within 1 %."""
    counts = [0] * (len(BOUNDS) + 1)
    at = 0
    for index in sorted(times.counts):
        middle_s = histogram.middle(index)
        while at < len(BOUNDS) and middle_s > BOUNDS[at]:
            at += 1
        counts[at] += times.counts[index]
    names = [*(repr(bound) for bound in BOUNDS), "+Inf"]
    return [(name, float(count)) for name, count in zip(names, accumulate(counts), strict=True)]
