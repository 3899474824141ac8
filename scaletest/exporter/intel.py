"""Metric names of the original tester, for HPA rules and dashboards that use them (--intel-names).

The values have the same meaning, except that maxima cover a window, not the time since the last
scrape. With a log interval the maxima cover that interval, in the ten-second slots of Redis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from scaletest.analysis.recent_window import in_slots, within
from scaletest.exporter.view import ExporterView, QueueView


@dataclass(frozen=True, slots=True)
class Alias:
    """An old metric name, the current name, and the value for a queue."""

    name: str
    ours: str
    value: Callable[[QueueView], float]

    @property
    def counts(self) -> bool:
        """Whether it is a counter."""
        return self.name.endswith("_total")

    @property
    def longest(self) -> bool:
        """Whether it is the longest duration of a window."""
        return "_max" in self.name


def _taken(view: QueueView) -> int:
    return view.counter("succeeded") + _failed(view) + view.counter("requeued")


def _failed(view: QueueView) -> int:
    return view.counter("failed") + view.counter("timed_out")


QUEUES = (
    Alias("hpa_queue_all", "scaletest_queue_demand", lambda v: v.queue.waiting + v.queue.running),
    Alias("hpa_queue_waiting", "scaletest_queue_waiting", lambda v: v.queue.waiting),
    Alias("hpa_queue_running", "scaletest_queue_running", lambda v: v.queue.running),
    Alias(
        "hpa_queue_success_total",
        'scaletest_requests_total{outcome="succeeded"}',
        lambda v: v.counter("succeeded"),
    ),
    Alias(
        "hpa_queue_failure_total", 'scaletest_requests_total{outcome=~"failed|timed_out"}', _failed
    ),
    Alias(
        "hpa_queue_disconnect_total",
        'scaletest_requests_total{outcome="client_gone"}',
        lambda v: v.counter("client_gone"),
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
TOTALS = (
    Alias(
        "hpa_client_connections_total",
        "sum(scaletest_requests_submitted_total) + sum(scaletest_requests_rejected_total)",
        lambda v: v.counter("submitted") + v.counter("rejected"),
    ),
    Alias(
        "hpa_worker_connections_total",
        'sum(scaletest_requests_total{outcome=~"succeeded|failed|timed_out"}) +'
        " sum(scaletest_requests_requeued_total)",
        _taken,
    ),
)


def families(view: ExporterView, log_interval_s: int) -> Iterator[Family]:
    """All old metrics. With a log interval, maxima cover that interval in whole slots; a label
    names it.
    """
    for alias in TOTALS:
        total = sum(alias.value(queue) for queue in view.queues)
        yield CounterMetricFamily(alias.name, f"As {alias.ours}.", value=total)
    for alias in QUEUES:
        if log_interval_s and alias.longest:
            yield _of_interval(alias, view, log_interval_s)
        else:
            yield _of_now(alias, view)


def _of_now(alias: Alias, view: ExporterView) -> Family:
    make = CounterMetricFamily if alias.counts else GaugeMetricFamily
    family: CounterMetricFamily | GaugeMetricFamily = make(
        alias.name, f"As {alias.ours}.", labels=("name",)
    )
    for queue in view.queues:
        family.add_metric((queue.queue.name,), alias.value(queue))
    return family


def _of_interval(alias: Alias, view: ExporterView, log_interval_s: int) -> Family:
    interval_s = in_slots(log_interval_s)
    text = f"As {alias.ours}, for requests that ended in the last {interval_s} s at most."
    family = GaugeMetricFamily(alias.name, text, labels=("name", "interval"))
    for queue in view.queues:
        recent = within(queue.queue.slots, view.at_s, interval_s)
        family.add_metric(
            (queue.queue.name, f"{interval_s}s"), alias.value(replace(queue, window=recent))
        )
    return family
