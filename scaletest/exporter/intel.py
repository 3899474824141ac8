"""Offer the metric names of Intel's device scalability tester, for rules and dashboards.

The values have the same meaning, except that maxima cover a window, not the time since the last
scrape. With a log interval the maxima cover that interval, in the ten-second slots of Redis.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from scaletest.exporter.view import ExporterView, QueueView
from scaletest.model.time_slots import window_within


@dataclass(frozen=True, slots=True)
class Alias:
    """A metric by its name there and its name here, and its value for a queue."""

    name: str
    ours: str
    value: Callable[[QueueView], float]


def _count(view: QueueView, *counters: str) -> int:
    return sum(map(view.queue.counter, counters))


QUEUE_ALIASES = (
    Alias("hpa_queue_all", "scaletest_queue_demand", lambda v: v.queue.waiting + v.queue.running),
    Alias("hpa_queue_waiting", "scaletest_queue_waiting", lambda v: v.queue.waiting),
    Alias("hpa_queue_running", "scaletest_queue_running", lambda v: v.queue.running),
    Alias(
        "hpa_queue_success_total",
        'scaletest_requests_total{outcome="succeeded"}',
        lambda v: _count(v, "succeeded"),
    ),
    Alias(
        "hpa_queue_failure_total",
        'scaletest_requests_total{outcome=~"failed|timed_out"}',
        lambda v: _count(v, "failed", "timed_out"),
    ),
    Alias(
        "hpa_queue_disconnect_total",
        'scaletest_requests_total{outcome="client_gone"}',
        lambda v: _count(v, "client_gone"),
    ),
    Alias(
        "hpa_queue_maxrun_seconds", "scaletest_queue_run_max_seconds", lambda v: v.window.max_run_s
    ),
    Alias(
        "hpa_queue_maxwait_seconds",
        "scaletest_queue_wait_max_seconds",
        lambda v: v.window.max_wait_s,
    ),
    Alias(
        "hpa_queue_maxtotal_seconds",
        "scaletest_queue_total_max_seconds",
        lambda v: v.window.max_total_s,
    ),
)

# Each request was a connection of its own.
TOTAL_ALIASES = (
    Alias(
        "hpa_client_connections_total",
        "sum(scaletest_requests_submitted_total) + sum(scaletest_requests_rejected_total)",
        lambda v: _count(v, "submitted", "rejected"),
    ),
    Alias(
        "hpa_worker_connections_total",
        'sum(scaletest_requests_total{outcome=~"succeeded|failed|timed_out"}) +'
        " sum(scaletest_requests_requeued_total)",
        lambda v: _count(v, "succeeded", "failed", "timed_out", "requeued"),
    ),
)


def families(view: ExporterView, interval_s: int = 0) -> Iterator[Family]:
    """Yield all metrics by the names of that tester.

    interval_s: the log interval in whole slots that the maxima cover, which a label names; 0 for
    the window.
    """
    views = list(view.queues)
    if interval_s:
        views = [
            replace(queue, window=window_within(queue.queue.slots, view.at_s, interval_s))
            for queue in views
        ]
    for alias in TOTAL_ALIASES:
        yield CounterMetricFamily(
            alias.name, f"As {alias.ours}.", value=sum(map(alias.value, views))
        )
    for alias in QUEUE_ALIASES:
        text = f"As {alias.ours}."
        labels = {}
        if interval_s and "_max" in alias.name:
            text = f"As {alias.ours}, for requests that ended in the last {interval_s} s at most."
            labels = {"interval": f"{interval_s}s"}
        make = CounterMetricFamily if alias.name.endswith("_total") else GaugeMetricFamily
        family: CounterMetricFamily | GaugeMetricFamily = make(
            alias.name, text, labels=("name", *labels)
        )
        for queue in views:
            family.add_metric((queue.queue.name, *labels.values()), alias.value(queue))
        yield family
