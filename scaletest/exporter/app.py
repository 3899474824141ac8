"""The exporter's HTTP: /metrics, /api/v1/queues, /healthz, /readyz and a page. GET only, read only.

It answers only under host names that no stranger can register; see `scaletest.http.server`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from flask import Flask, Response, jsonify, render_template, request
from flask.typing import ResponseReturnValue
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from scaletest import __version__
from scaletest.analysis.desired_workers import in_slots, within
from scaletest.compat import intel
from scaletest.exporter import metrics
from scaletest.exporter.view import ExporterView, QueueView
from scaletest.http.server import is_inner
from scaletest.model import wire
from scaletest.model.errors import Unreachable

Read = Callable[[], ExporterView]

# Requests that may read Redis at the same time, at most, and how long another one waits for its
# turn.
READS = 12
TURN_S = 0.2

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class _Queues(Collector):
    """Metrics of a scrape, read again each time."""

    read: Read
    intel_names: bool
    log_interval_s: int

    def collect(self) -> Iterator[Family]:
        """All families, or `scaletest_up 0` alone."""
        try:
            view = self.read()
        except Unreachable:
            yield from metrics.families(None)
            return
        yield from metrics.families(view)
        if self.intel_names:
            interval_s = in_slots(self.log_interval_s)
            queues = [_figures(queue, view.at_s, interval_s) for queue in view.queues]
            yield from intel.families(queues, interval_s)


def _figures(view: QueueView, at_s: float, interval_s: int) -> intel.QueueFigures:
    """Figures of a queue at `at_s`; maxima are of the interval, or with 0 of the window."""
    window = within(view.queue.slots, at_s, interval_s) if interval_s else view.window
    return intel.QueueFigures(
        view.queue.name,
        view.queue.waiting,
        view.queue.running,
        view.queue.counters,
        window.max_run_s,
        window.max_wait_s,
        window.max_total_s,
    )


def make_app(
    read: Read,
    alive: Callable[[], bool],
    *,
    hosts: Collection[str] = (),
    intel_names: bool = False,
    log_interval_s: int = 0,
) -> Flask:
    """The web application.

    read: reads all queues, raises Unreachable. alive: whether the background thread runs.
    hosts: further host names that are allowed.
    """
    read = _limited(read)
    app = Flask(__name__, static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    queues = _Queues(read, intel_names, log_interval_s)

    @app.get("/metrics")
    def scrape() -> Response:
        try:
            encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        except (ValueError, TypeError):  # not a version
            encode, content_type = choose_encoder("")
        return Response(encode(queues), content_type=content_type)

    @app.get("/healthz")
    def health() -> ResponseReturnValue:
        return ("ok\n", 200) if alive() else ("the background thread has ended\n", 500)

    @app.get("/readyz")
    def ready() -> ResponseReturnValue:
        read()
        return "ok\n"

    _add_api(app, read)

    @app.before_request
    def check_host() -> ResponseReturnValue | None:
        if is_inner(request.headers.get("Host", ""), hosts):
            return None
        return _error(
            403, "this host name is not allowed", "start the exporter with --allow-host NAME"
        )

    @app.after_request
    def headers(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    _add_errors(app)
    return app


def _error(status: int, message: str, hint: str) -> ResponseReturnValue:
    return jsonify(schema_version=wire.SCHEMA_VERSION, error=message, hint=hint), status


def _add_errors(app: Flask) -> None:
    @app.errorhandler(404)
    def missing(_: Exception) -> ResponseReturnValue:
        return _error(
            404,
            f"there is nothing at {request.path}",
            "see /, /metrics, /api/v1/queues, /healthz, /readyz",
        )

    @app.errorhandler(Unreachable)
    def away(error: Unreachable) -> ResponseReturnValue:
        return _error(503, error.message, error.hint)


def _limited(read: Read) -> Read:
    """At most READS at a time: when Redis hangs each takes seconds, and probes need threads too."""
    turns = threading.BoundedSemaphore(READS)

    def limited() -> ExporterView:
        if not turns.acquire(timeout=TURN_S):
            raise Unreachable(
                "Redis is slow, and too many requests wait for it", hint="try again later"
            )
        try:
            return read()
        finally:
            turns.release()

    return limited


def _add_api(app: Flask, read: Read) -> None:
    @app.get("/api/v1/queues")
    def queues() -> ResponseReturnValue:
        view = read()
        return jsonify(
            schema_version=wire.SCHEMA_VERSION,
            at_s=view.at_s,
            pages=view.pages,
            clients=view.clients,
            queues=[queue_view.to_dict() for queue_view in view.queues],
            unreadable=[name for name, _ in view.unreadable],
        )

    @app.get("/api/v1/queues/<path:name>")
    def queue(name: str) -> ResponseReturnValue:
        view = read()
        for queue_view in view.queues:
            if queue_view.queue.name == name:
                return jsonify({**queue_view.to_dict(), "at_s": queue_view.queue.at_s})
        for lost, why in view.unreadable:
            if lost == name:
                raise Unreachable(
                    f"queue {name} cannot be read: {why}", hint="check the content of its keys"
                )
        known = ", ".join(queue_view.queue.name for queue_view in view.queues) or "none"
        return _error(
            404,
            f"this queue is not declared (declared: {known})",
            "declare it with: scaletest queue add",
        )

    @app.get("/")
    def page() -> ResponseReturnValue:
        try:
            return render_template("page.html", view=read(), error=None, version=__version__)
        except Unreachable as error:
            return render_template("page.html", view=None, error=error, version=__version__), 503
