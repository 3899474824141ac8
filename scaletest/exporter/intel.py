"""Metric names of Intel's device scalability tester, for HPA rules and dashboards that use them.

The values have the same meaning, except that maxima cover a window, not the time since the last
scrape. With a log interval the maxima cover that interval, in the ten-second slots of Redis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """What the names tell of a queue. counters: by the names of docs/reference/redis.md.

    max_run_s, max_wait_s, max_total_s: of the window, or of the log interval.
    """

    name: str
    waiting: int
    running: int
    counters: Mapping[str, int]
    max_run_s: float
    max_wait_s: float
    max_total_s: float

    def count(self, *names: str) -> int:
        """The sum of these counters."""
        return sum(self.counters.get(name, 0) for name in names)


@dataclass(frozen=True, slots=True)
class Alias:
    """An old metric name, the current name, and the value for a queue."""

    name: str
    ours: str
    value: Callable[[QueueFigures], float]

    @property
    def counts(self) -> bool:
        """Whether it is a counter."""
        return self.name.endswith("_total")

    @property
    def longest(self) -> bool:
        """Whether it is the longest duration of a window."""
        return "_max" in self.name


QUEUES = (
    Alias("hpa_queue_all", "scaletest_queue_demand", lambda q: q.waiting + q.running),
    Alias("hpa_queue_waiting", "scaletest_queue_waiting", lambda q: q.waiting),
    Alias("hpa_queue_running", "scaletest_queue_running", lambda q: q.running),
    Alias(
        "hpa_queue_success_total",
        'scaletest_requests_total{outcome="succeeded"}',
        lambda q: q.count("succeeded"),
    ),
    Alias(
        "hpa_queue_failure_total",
        'scaletest_requests_total{outcome=~"failed|timed_out"}',
        lambda q: q.count("failed", "timed_out"),
    ),
    Alias(
        "hpa_queue_disconnect_total",
        'scaletest_requests_total{outcome="client_gone"}',
        lambda q: q.count("client_gone"),
    ),
    Alias("hpa_queue_maxrun_seconds", "scaletest_queue_run_max_seconds", lambda q: q.max_run_s),
    Alias("hpa_queue_maxwait_seconds", "scaletest_queue_wait_max_seconds", lambda q: q.max_wait_s),
    Alias(
        "hpa_queue_maxtotal_seconds", "scaletest_queue_total_max_seconds", lambda q: q.max_total_s
    ),
)

# Each request was a connection of its own.
TOTALS = (
    Alias(
        "hpa_client_connections_total",
        "sum(scaletest_requests_submitted_total) + sum(scaletest_requests_rejected_total)",
        lambda q: q.count("submitted", "rejected"),
    ),
    Alias(
        "hpa_worker_connections_total",
        'sum(scaletest_requests_total{outcome=~"succeeded|failed|timed_out"}) +'
        " sum(scaletest_requests_requeued_total)",
        lambda q: q.count("succeeded", "failed", "timed_out", "requeued"),
    ),
)


def families(queues: Sequence[QueueFigures], interval_s: int = 0) -> Iterator[Family]:
    """All old metrics. interval_s: the log interval in whole slots that the maxima cover, which a
    label names; 0 for the window.
    """
    for alias in TOTALS:
        yield CounterMetricFamily(
            alias.name, f"As {alias.ours}.", value=sum(map(alias.value, queues))
        )
    for alias in QUEUES:
        text, labels = f"As {alias.ours}.", {}
        if interval_s and alias.longest:
            text = f"As {alias.ours}, for requests that ended in the last {interval_s} s at most."
            labels = {"interval": f"{interval_s}s"}
        make = CounterMetricFamily if alias.counts else GaugeMetricFamily
        family: CounterMetricFamily | GaugeMetricFamily = make(
            alias.name, text, labels=("name", *labels)
        )
        for queue in queues:
            family.add_metric((queue.name, *labels.values()), alias.value(queue))
        yield family
