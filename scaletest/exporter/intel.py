"""The metric names of the tester that came before, for HPA rules and dashboards that know them (--intel-names).

The values mean what they meant, but the maxima are those of a window, not of the time since somebody's last scrape.
With a log interval they are of that interval, as they were, in the ten-second slots that Redis keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from scaletest.analysis.recent_window import in_slots, within
from scaletest.exporter.view import QueueView, View


@dataclass(frozen=True, slots=True)
class Alias:
    """An old name, ours, and the value for a queue."""

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
    Alias("hpa_queue_failure_total", 'scaletest_requests_total{outcome=~"failed|timed_out"}', _failed),
    Alias(
        "hpa_queue_disconnect_total",
        'scaletest_requests_total{outcome="client_gone"}',
        lambda v: v.counter("client_gone"),
    ),
    Alias("hpa_queue_maxrun_seconds", "scaletest_queue_run_max_seconds", lambda v: v.window.max_run_s),
    Alias("hpa_queue_maxwait_seconds", "scaletest_queue_wait_max_seconds", lambda v: v.window.max_wait_s),
    Alias("hpa_queue_maxtotal_seconds", "scaletest_queue_total_max_seconds", lambda v: v.window.max_total_s),
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
        'sum(scaletest_requests_total{outcome=~"succeeded|failed|timed_out"}) + sum(scaletest_requests_requeued_total)',
        _taken,
    ),
)


def families(view: View, log_interval_s: int) -> Iterator[Family]:
    """Every old metric. With a log interval the maxima are of that interval in whole slots, which their label names."""
    for alias in TOTALS:
        value = sum(alias.value(row) for row in view.queues)
        yield CounterMetricFamily(alias.name, f"As {alias.ours}.", value=value)
    for alias in QUEUES:
        yield _of_interval(alias, view, log_interval_s) if log_interval_s and alias.longest else _of_now(alias, view)


def _of_now(alias: Alias, view: View) -> Family:
    make = CounterMetricFamily if alias.counts else GaugeMetricFamily
    family: CounterMetricFamily | GaugeMetricFamily = make(alias.name, f"As {alias.ours}.", labels=("name",))
    for row in view.queues:
        family.add_metric((row.queue.name,), alias.value(row))
    return family


def _of_interval(alias: Alias, view: View, log_interval_s: int) -> Family:
    interval_s = in_slots(log_interval_s)
    text = f"As {alias.ours}, of what ended in the last {interval_s} s at most."
    family = GaugeMetricFamily(alias.name, text, labels=("name", "interval"))
    for row in view.queues:
        recent = within(row.queue.slots, view.at_s, interval_s)
        family.add_metric((row.queue.name, f"{interval_s}s"), alias.value(replace(row, window=recent)))
    return family
