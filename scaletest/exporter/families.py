"""All metrics of a view, as the families that Prometheus' client writes."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family

from scaletest.exporter.metrics import BOUNDS, COUNTER, METRICS, OWN, QUEUE, QueueMetric
from scaletest.exporter.view import ExporterView, QueueView
from scaletest.model import histogram


def families(view: ExporterView | None) -> Iterator[Family]:
    """Yield all metrics of a view; only `scaletest_up 0` without one."""
    figures = [0.0]
    if view:
        figures = [1.0, view.clients, len(view.unreadable), view.read_s]
    for (name, _, text), figure in zip(OWN, figures, strict=False):
        yield GaugeMetricFamily(name, text, value=figure)
    if view:
        for metric in METRICS:
            yield _family_of(metric, view.queues)


def _family_of(metric: QueueMetric, queues: Sequence[QueueView]) -> Family:
    if metric.counts is not None:
        buckets = HistogramMetricFamily(metric.name, metric.help, labels=QUEUE)
        for queue in queues:
            counts = metric.counts(queue)
            cumulative = histogram.cumulative(counts, BOUNDS)
            buckets.add_metric((queue.queue.name,), cumulative, histogram.total_s(counts))
        return buckets
    make = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
    family: CounterMetricFamily | GaugeMetricFamily = make(
        metric.name, metric.help, labels=QUEUE + metric.labels
    )
    for queue in queues:
        for labels, number in metric.rows(queue):
            family.add_metric((queue.queue.name, *labels), number)
    return family
