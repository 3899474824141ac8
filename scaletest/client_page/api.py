"""The API for programs: statistics, series and records as JSON, Prometheus metrics, and health."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from threading import BoundedSemaphore
from typing import Any

from flask import Response, current_app, request
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from werkzeug.exceptions import BadRequest, NotFound, ServiceUnavailable

from scaletest.client_page.answers import NUMBER, as_json, counts, steering, with_http
from scaletest.client_page.metrics import LoadMetrics
from scaletest.load.snapshot import SeriesPoint
from scaletest.load.statistics import MEASURES
from scaletest.model import NodeSample
from scaletest.model.checks import cut
from scaletest.model.errors import Unreachable
from scaletest.pages.health import state
from scaletest.pages.site import READ

# Records that are written at once.
CHUNK = 200
# Each keeps a thread of the server busy until its reader is done; the other threads stay free.
DOWNLOADS = 2
SCHEMA_VERSION = 1
# Position -> next position and the samples between; "": the last position. Raises Unreachable.
SamplesAfter = Callable[[str], tuple[str, list[NodeSample]]]
_POSITION = re.compile(r"[0-9]{1,20}-[0-9]{1,20}", re.ASCII)


def api_stats() -> Response:
    """All statistics except the series and the records."""
    return as_json(with_http(steering().snapshot().to_dict()))


def api_series() -> Response:
    """Points after number `since`. A new generation means a reset: drop the older points."""
    since = _since()
    snapshot = steering().snapshot()
    points = snapshot.points
    body = {
        "schema_version": SCHEMA_VERSION,
        "generation": snapshot.generation,
        "seq": points[-1].seq if points else since,
        "points": [point_row(point) for point in points if point.seq > since],
    }
    return as_json(body)


def api_records() -> Response:
    """Records after number `since`, one a line; header Scaletest-First-Seq: the first number."""
    since = _since()
    downloads: BoundedSemaphore = current_app.config["DOWNLOADS"]
    if not downloads.acquire(blocking=False):
        raise ServiceUnavailable(
            f"{DOWNLOADS} downloads of records are running; try again later", retry_after=5
        )
    first, records = steering().statistics.records(since)

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(records), CHUNK):
            lines = [
                f'{{"seq":{number},{record.to_json()[1:]}\n'
                for number, record in enumerate(records[start : start + CHUNK], first + start)
            ]
            yield "".join(lines).encode()

    response = Response(chunks(), mimetype="application/x-ndjson")
    response.call_on_close(downloads.release)
    response.headers["Scaletest-First-Seq"] = str(first)
    response.headers["Content-Disposition"] = 'attachment; filename="records.jsonl"'
    return response


def api_samples() -> Response:
    """Samples of the queue's nodes after a position, one a line; the next position is in a header.

    Without a position it only returns the current position.
    """
    after: SamplesAfter | None = current_app.config["SAMPLES"]
    if after is None:
        raise NotFound("this client has no samples of nodes")
    since = request.args.get("since", "")
    if since and not _POSITION.fullmatch(since):
        raise BadRequest(
            f"since is {cut(since, 40)!r}, not a position as in the header"
            " Scaletest-Samples-Position"
        )
    try:
        position, samples = after(since)
    except Unreachable as error:
        raise ServiceUnavailable(error.message, retry_after=5) from error
    body = "".join(f"{sample.to_json()}\n" for sample in samples)
    response = Response(body, mimetype="application/x-ndjson")
    response.headers["Scaletest-Samples-Position"] = position
    return response


def prometheus() -> Response:
    """Metrics for Prometheus."""
    metrics = LoadMetrics(steering().snapshot(), counts())
    return Response(generate_latest(metrics), content_type=CONTENT_TYPE_LATEST)


def healthz() -> Response:
    """200 as long as the load runs."""
    return state("" if steering().loop.alive else "the load has ended")


def readyz() -> Response:
    """200 when requests can be submitted."""
    return state("" if steering().ready() else "Redis does not answer")


def point_row(point: SeriesPoint) -> dict[str, Any]:
    """Return a point as a dictionary with names."""
    names = point._asdict()
    for name in MEASURES:
        names[name] = names[name]._asdict()
    return names


def _since() -> int:
    since = request.args.get("since", "0")
    if not NUMBER.fullmatch(since):
        raise BadRequest(f"since is {cut(since, 40)!r}, not a whole number from 0 on")
    return min(int(since), 2**62)


ROUTES = (
    ("/api/v1/stats", READ, api_stats),
    ("/api/v1/series", READ, api_series),
    ("/api/v1/records", READ, api_records),
    ("/api/v1/samples", READ, api_samples),
    ("/metrics", READ, prometheus),
    ("/healthz", READ, healthz),
    ("/readyz", READ, readyz),
)
