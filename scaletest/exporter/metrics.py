"""Define all metrics, from which text for Prometheus and docs/reference/metrics.md come.

Units are base units. Counters end in _total and never go down while the queue is declared, since
Redis keeps them. scaletest's fine buckets become a few Prometheus buckets, which are cheap to keep
for years.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family

from scaletest.exporter.view import ExporterView, QueueView
from scaletest.model import histogram
from scaletest.model.node_sample import CONTAINER, DEVICE, MEMORY, PRESSURE
from scaletest.model.record import Outcome

# Upper bounds in seconds: of parts of a second, of seconds, and of minutes to a day.
BOUNDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
    *(60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 86400.0),
)

# Label values after the queue, and the value.
Rows = Iterable[tuple[tuple[str, ...], float]]
QUEUE = ("queue",)
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
# Metrics without a queue: name, kind, help.
GLOBAL_METRICS = (
    (
        "scaletest_up",
        GAUGE,
        "1 when Redis answered this scrape. When it is 0, no other metric is present.",
    ),
    ("scaletest_clients", GAUGE, "Live clients."),
    (
        "scaletest_queues_unreadable",
        GAUGE,
        (
            "Declared queues that are left out, because their keys contain foreign data; the log"
            " names them."
        ),
    ),
    ("scaletest_exporter_read_seconds", GAUGE, "Time that reading everything from Redis took."),
)


@dataclass(frozen=True, slots=True)
class QueueMetric:
    """A metric that every queue has: its name and help, and how it is read from a view."""

    name: str
    kind: str
    help: str
    rows: Callable[[QueueView], Rows] = lambda view: ()
    labels: tuple[str, ...] = ()  # beside the queue
    counts: Callable[[QueueView], dict[int, int]] | None = None  # buckets of a histogram


def _single(value: Callable[[QueueView], float | None]) -> Callable[[QueueView], Rows]:
    """Return a function that reads one value of a queue, where it is known."""
    return lambda view: _known([((), value(view))])


def _counter(name: str) -> Callable[[QueueView], Rows]:
    return _single(lambda view: view.queue.counter(name))


def _of_nodes(resource: str, name: str) -> Callable[[QueueView], Rows]:
    """Return a function that reads one value of every node that has it."""
    return lambda view: _known(
        ((sample.node,), sample.value(resource, name)) for sample in view.nodes
    )


def _of_devices(name: str) -> Callable[[QueueView], Rows]:
    """Return a function that reads one value of every device that has it."""
    return lambda view: _known(
        ((sample.node, device), values.get(name))
        for sample in view.nodes
        for device, values in sample.of_kind(DEVICE).items()
    )


def _known(rows: Iterable[tuple[tuple[str, ...], float | None]]) -> Rows:
    """Return the rows without those whose value is unknown: a missing metric, not a zero."""
    return [(labels, value) for labels, value in rows if value is not None]


QUEUE_METRICS = (
    QueueMetric(
        "scaletest_queue_waiting",
        GAUGE,
        "Requests that wait for a worker.",
        _single(lambda v: v.queue.waiting),
    ),
    QueueMetric(
        "scaletest_queue_running",
        GAUGE,
        "Requests that workers run now.",
        _single(lambda v: v.queue.running),
    ),
    QueueMetric(
        "scaletest_queue_demand",
        GAUGE,
        "Requests that wait or run.",
        _single(lambda v: v.queue.waiting + v.queue.running),
    ),
    QueueMetric(
        "scaletest_queue_desired_workers",
        GAUGE,
        "Workers that the queue needs: the highest need during the window.",
        _single(lambda v: v.desired),
    ),
    QueueMetric(
        "scaletest_queue_oldest_waiting_seconds",
        GAUGE,
        "Age of the oldest waiting request, 0 when none waits; missing when only stock RQ"
        " enqueued it.",
        _single(lambda v: v.queue.longest_wait_s),
    ),
    QueueMetric(
        "scaletest_queue_maximum",
        GAUGE,
        "Most requests that may wait; 0 when there is no limit.",
        _single(lambda v: v.queue.maximum),
    ),
    QueueMetric(
        "scaletest_queue_paused",
        GAUGE,
        "1 while workers take nothing.",
        _single(lambda v: float(v.queue.paused)),
    ),
    QueueMetric(
        "scaletest_queue_submitted_per_second",
        GAUGE,
        "Rate at which requests were submitted during the window.",
        _single(lambda v: v.window.submitted_per_s),
    ),
    QueueMetric(
        "scaletest_queue_run_mean_seconds",
        GAUGE,
        "Mean run time of requests that ended in the window, else the last known mean; missing"
        " before the first end.",
        _single(lambda v: v.window.mean_run_s),
    ),
    QueueMetric(
        "scaletest_queue_wait_max_seconds",
        GAUGE,
        "Longest wait of a request that ended in the window.",
        _single(lambda v: v.window.max_wait_s),
    ),
    QueueMetric(
        "scaletest_queue_run_max_seconds",
        GAUGE,
        "Longest run of a request that ended in the window.",
        _single(lambda v: v.window.max_run_s),
    ),
    QueueMetric(
        "scaletest_queue_total_max_seconds",
        GAUGE,
        "Longest sum of wait and run of a request that ended in the window.",
        _single(lambda v: v.window.max_total_s),
    ),
    QueueMetric(
        "scaletest_workers",
        GAUGE,
        "Live workers by state; requests of a suspect worker fail immediately.",
        lambda v: [((state,), number) for state, number in v.queue.states.items()],
        labels=("state",),
    ),
    QueueMetric(
        "scaletest_queue_wait_seconds",
        HISTOGRAM,
        "Time from submission to start of requests that ended.",
        counts=lambda v: v.queue.ended.wait,
    ),
    QueueMetric(
        "scaletest_request_run_seconds",
        HISTOGRAM,
        "Run time of requests that ended.",
        counts=lambda v: v.queue.ended.run,
    ),
    QueueMetric(
        "scaletest_requests_total",
        COUNTER,
        "Requests that ended, by outcome.",
        lambda v: [((str(outcome),), v.queue.counter(outcome)) for outcome in Outcome],
        labels=("outcome",),
    ),
    QueueMetric(
        "scaletest_requests_submitted_total",
        COUNTER,
        "Requests that were accepted.",
        _counter("submitted"),
    ),
    QueueMetric(
        "scaletest_requests_rejected_total",
        COUNTER,
        "Requests that were refused because the queue was full.",
        _counter("rejected"),
    ),
    QueueMetric(
        "scaletest_requests_abandoned_total",
        COUNTER,
        "Requests whose client was gone: dropped before they ran, or run without a receiver of the"
        " reply.",
        _single(lambda v: v.queue.abandoned),
    ),
    QueueMetric(
        "scaletest_requests_requeued_total",
        COUNTER,
        "Times that a request went back to its queue because its worker died.",
        _counter("requeued"),
    ),
    QueueMetric(
        "scaletest_requests_lost_total",
        COUNTER,
        "Failed requests whose workers died at every attempt.",
        _counter("lost"),
    ),
    QueueMetric(
        "scaletest_requests_poison_total",
        COUNTER,
        "Failed requests that could not be read and were never run.",
        _counter("poison"),
    ),
    QueueMetric(
        "scaletest_results_stale_total",
        COUNTER,
        "Results dropped because another worker had taken the request again.",
        _counter("stale"),
    ),
    QueueMetric(
        "scaletest_node_cpu_busy_ratio",
        GAUGE,
        "Fraction of a worker node's CPU time that was used, while the queue has work.",
        lambda v: _known([((sample.node,), sample.cpu_busy) for sample in v.nodes]),
        labels=("node",),
    ),
    QueueMetric(
        "scaletest_node_cpu_pressure_ratio",
        GAUGE,
        "Fraction of the time in which some thread of the node waited for a CPU.",
        _of_nodes(PRESSURE, "cpu_some"),
        labels=("node",),
    ),
    QueueMetric(
        "scaletest_node_memory_pressure_ratio",
        GAUGE,
        "Fraction of the time in which some thread of the node waited for memory.",
        _of_nodes(PRESSURE, "memory_some"),
        labels=("node",),
    ),
    QueueMetric(
        "scaletest_node_io_pressure_ratio",
        GAUGE,
        "Fraction of the time in which some thread of the node waited for storage.",
        _of_nodes(PRESSURE, "io_some"),
        labels=("node",),
    ),
    QueueMetric(
        "scaletest_node_memory_available_bytes",
        GAUGE,
        "Memory of the node that is available to programs.",
        _of_nodes(MEMORY, "available"),
        labels=("node",),
    ),
    QueueMetric(
        "scaletest_node_container_throttled_ratio",
        GAUGE,
        "Fraction of the periods in which its CPU limit throttled the sampling worker's container;"
        " missing without one.",
        _of_nodes(CONTAINER, "throttled_periods"),
        labels=("node",),
    ),
    QueueMetric(
        "scaletest_device_busy_ratio",
        GAUGE,
        "Fraction of the time in which a device's busiest engine worked, or what its driver calls"
        " utilisation.",
        _of_devices("busy"),
        labels=("node", "device"),
    ),
    QueueMetric(
        "scaletest_device_memory_used_bytes",
        GAUGE,
        "Memory of the device that is in use.",
        _of_devices("memory_used"),
        labels=("node", "device"),
    ),
    QueueMetric(
        "scaletest_device_energy_joules_total",
        COUNTER,
        "Energy that the device used, as its driver counts it.",
        _of_devices("energy_j"),
        labels=("node", "device"),
    ),
)


def families(view: ExporterView | None) -> Iterator[Family]:
    """Yield all metrics of a view; only `scaletest_up 0` without one."""
    values = [0.0]
    if view:
        values = [1.0, view.clients, len(view.unreadable), view.read_s]
    for (name, _, text), value in zip(GLOBAL_METRICS, values, strict=False):
        yield GaugeMetricFamily(name, text, value=value)
    if not view:
        return
    for metric in QUEUE_METRICS:
        if metric.counts is not None:
            buckets = HistogramMetricFamily(metric.name, metric.help, labels=QUEUE)
            for queue in view.queues:
                counts = metric.counts(queue)
                buckets.add_metric(
                    (queue.queue.name,),
                    histogram.cumulative_counts(counts, BOUNDS),
                    histogram.total_s(counts),
                )
            yield buckets
            continue
        make = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
        family: CounterMetricFamily | GaugeMetricFamily = make(
            metric.name, metric.help, labels=QUEUE + metric.labels
        )
        for queue in view.queues:
            for labels, value in metric.rows(queue):
                family.add_metric((queue.queue.name, *labels), value)
        yield family
