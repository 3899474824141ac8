"""The API for programs: statistics, series and records as JSON, Prometheus metrics, and health.

Counters among the metrics are never reset; their units are base units.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import BoundedSemaphore

from flask import Response, current_app, request
from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from werkzeug.exceptions import BadRequest, NotFound, ServiceUnavailable

from scaletest.client_page.answers import NUMBER, as_json, counts, steering, with_http
from scaletest.load.snapshot import LoadSnapshot
from scaletest.load.statistics import MEASURES
from scaletest.model import NodeSample, Record, histogram
from scaletest.model.checks import cut_text
from scaletest.model.errors import Unreachable
from scaletest.pages.security import HttpCounts
from scaletest.pages.site import READ, answer_probe

# Of the buckets of histograms, in seconds: 0.1 ms to 5000 s.
BOUNDS = tuple(float(f"{digit}e{power}") for power in range(-4, 4) for digit in ("1", "2.5", "5"))
HISTOGRAMS = {
    "wait": "Time from enqueue to start of requests that succeeded.",
    "run": "Time the workload ran, for requests that succeeded.",
    "overhead": "Total minus wait minus run, for requests that succeeded.",
    "total": "Time from the start, or intended start, to the reply, for requests that succeeded.",
}
# Records that are written at a time.
RECORDS_AT_ONCE = 200
# Downloads of records at the same time. Each keeps a thread of the server busy until its reader is
# done; the other threads stay free.
MOST_DOWNLOADS = 2
SCHEMA_VERSION = 1
# Position -> next position and the samples between; "": the last position. Raises Unreachable.
SamplesAfter = Callable[[str], tuple[str, list[NodeSample]]]
_POSITION = re.compile(r"[0-9]{1,20}-[0-9]{1,20}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Metrics(Collector):
    """The metrics for Prometheus, from one snapshot of the load."""

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
        # single numbers of the queue
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
        # times of requests
        for name, text in HISTOGRAMS.items():
            times = HistogramMetricFamily(
                f"scaletest_client_{name}_seconds", text, labels=["queue"]
            )
            durations = snapshot.lifetime_times[name]
            buckets = histogram.cumulative_counts(durations.counts, BOUNDS)
            times.add_metric(queue, buckets, durations.total)
            yield times
        http = CounterMetricFamily(
            "scaletest_client_http_requests", "HTTP queries, by result.", labels=["result"]
        )
        http.add_metric(["completed"], self.http.completed)
        http.add_metric(["rejected"], self.http.rejected)
        yield http


def api_stats() -> Response:
    """Answer with all statistics except the series and the records."""
    return as_json(with_http(steering().snapshot().to_dict()))


def api_series() -> Response:
    """Answer with the points after number `since`.

    A new generation means that the load was reset, and that older points no longer count.
    """
    since = _since()
    snapshot = steering().snapshot()
    points = snapshot.points
    body = {
        "schema_version": SCHEMA_VERSION,
        "generation": snapshot.generation,
        "seq": points[-1].seq if points else since,
        "points": [
            {
                **point._asdict(),
                **{name: getattr(point, name)._asdict() for name in MEASURES},
            }
            for point in points
            if point.seq > since
        ],
    }
    return as_json(body)


def api_records() -> Response:
    """Answer with the records after number `since`, one a line.

    The header Scaletest-First-Seq has the number of the first one.
    """
    since = _since()
    downloads: BoundedSemaphore = current_app.config["DOWNLOADS"]
    if not downloads.acquire(blocking=False):
        raise ServiceUnavailable(
            f"{MOST_DOWNLOADS} downloads of records are running; try again later", retry_after=5
        )
    first, records = steering().statistics.records(since)
    response = Response(_record_lines(first, records), mimetype="application/x-ndjson")
    response.call_on_close(downloads.release)
    response.headers["Scaletest-First-Seq"] = str(first)
    response.headers["Content-Disposition"] = 'attachment; filename="records.jsonl"'
    return response


def api_samples() -> Response:
    """Answer with samples of the queue's nodes after a position, one a line.

    The header Scaletest-Samples-Position has the next position. Without a position there are no
    samples.
    """
    read_after: SamplesAfter | None = current_app.config["SAMPLES"]
    if read_after is None:
        raise NotFound("this client has no samples of nodes")
    since = request.args.get("since", "")
    if since and not _POSITION.fullmatch(since):
        raise BadRequest(
            f"since is {cut_text(since, 40)!r}, not a position as in the header"
            " Scaletest-Samples-Position"
        )
    try:
        position, samples = read_after(since)
    except Unreachable as error:
        raise ServiceUnavailable(error.message, retry_after=5) from error
    body = "".join(f"{sample.to_json()}\n" for sample in samples)
    response = Response(body, mimetype="application/x-ndjson")
    response.headers["Scaletest-Samples-Position"] = position
    return response


def prometheus() -> Response:
    """Answer with metrics for Prometheus."""
    metrics = generate_latest(_Metrics(steering().snapshot(), counts()))
    return Response(metrics, content_type=CONTENT_TYPE_LATEST)


def healthz() -> Response:
    """Answer 200 as long as the load runs."""
    return answer_probe("" if steering().loop.alive else "the load has ended")


def readyz() -> Response:
    """Answer 200 when requests can be submitted."""
    return answer_probe("" if steering().ready() else "Redis does not answer")


def _since() -> int:
    since = request.args.get("since", "0")
    if not NUMBER.fullmatch(since):
        raise BadRequest(f"since is {cut_text(since, 40)!r}, not a whole number from 0 on")
    return min(int(since), 2**62)


def _record_lines(first: int, records: list[Record]) -> Iterator[bytes]:
    """Yield records as JSON with their numbers, many at a time."""
    for start in range(0, len(records), RECORDS_AT_ONCE):
        numbered = enumerate(records[start : start + RECORDS_AT_ONCE], first + start)
        lines = (f'{{"seq":{number},{record.to_json()[1:]}\n' for number, record in numbered)
        yield "".join(lines).encode()


ROUTES = (
    ("/api/v1/stats", READ, api_stats),
    ("/api/v1/series", READ, api_series),
    ("/api/v1/records", READ, api_records),
    ("/api/v1/samples", READ, api_samples),
    ("/metrics", READ, prometheus),
    ("/healthz", READ, healthz),
    ("/readyz", READ, readyz),
)
