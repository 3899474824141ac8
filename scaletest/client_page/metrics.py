"""The metrics of a load for Prometheus. Counters are never reset; units are base units."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from scaletest.load.snapshot import LoadSnapshot
from scaletest.model import histogram
from scaletest.pages.security import HttpCounts

_DIGITS_AND_POWERS = itertools.product(range(-4, 4), ("1", "2.5", "5"))
BOUNDS = tuple(float(f"{digit}e{power}") for power, digit in _DIGITS_AND_POWERS)
HISTOGRAMS = {
    "wait": "Time from enqueue to start of requests that succeeded.",
    "run": "Time the workload ran, for requests that succeeded.",
    "overhead": "Total minus wait minus run, for requests that succeeded.",
    "total": "Time from the start, or intended start, to the reply, for requests that succeeded.",
}


@dataclass(frozen=True, slots=True)
class LoadMetrics(Collector):
    """The metrics of one snapshot."""

    snapshot: LoadSnapshot
    http: HttpCounts

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        snapshot, queue = self.snapshot, [self.snapshot.queue]
        requests = CounterMetricFamily(
            "scaletest_client_requests",
            "Requests that ended, by outcome.",
            labels=["queue", "outcome"],
        )
        for outcome, count in snapshot.lifetime.items():
            requests.add_metric([*queue, outcome], count)
        yield requests
        gauge, counter = GaugeMetricFamily, CounterMetricFamily
        for make, name, number, text in (
            (gauge, "in_flight", snapshot.in_flight, "Requests without a reply yet."),
            (gauge, "parallel", snapshot.parallel, "Requests that are kept in flight, at most."),
            (counter, "refused", snapshot.refused, "Times that a full queue refused a request."),
            (
                counter,
                "resubmitted",
                snapshot.resubmitted,
                "Requests submitted again after a crash of Redis.",
            ),
        ):
            family = make(f"scaletest_client_{name}", text, labels=["queue"])
            family.add_metric(queue, number)
            yield family
        for name, text in HISTOGRAMS.items():
            times = HistogramMetricFamily(
                f"scaletest_client_{name}_seconds", text, labels=["queue"]
            )
            counted = snapshot.lifetime_times[name]
            times.add_metric(queue, histogram.cumulative(counted.counts, BOUNDS), counted.total)
            yield times
        http = CounterMetricFamily(
            "scaletest_client_http_requests", "HTTP queries, by result.", labels=["result"]
        )
        http.add_metric(["completed"], self.http.completed)
        http.add_metric(["rejected"], self.http.rejected)
        yield http
