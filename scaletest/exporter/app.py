"""Serve /metrics, /api/v1/queues, /healthz and /readyz.

Nothing can be changed here. It answers only under host names that no stranger can register; see
`scaletest.pages.security`.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from flask import Flask, Response, jsonify, request
from flask.typing import ResponseReturnValue
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from werkzeug.exceptions import NotFound, ServiceUnavailable

from scaletest.exporter import intel
from scaletest.exporter.metrics import families
from scaletest.exporter.view import ExporterView
from scaletest.model import wire
from scaletest.model.errors import Unreachable
from scaletest.pages.security import answer_error
from scaletest.pages.site import READ, Route, make_site
from scaletest.pages.turns import ReadingTurns

Read = Callable[[], ExporterView]


@dataclass(frozen=True, slots=True)
class _Queues(Collector):
    """All metrics for Prometheus, read again for each scrape."""

    read: Read
    intel_names: bool
    log_interval_s: int

    def collect(self) -> Iterator[Family]:
        """Yield all metrics, or `scaletest_up 0` alone while Redis is away."""
        try:
            view = self.read()
        except Unreachable:
            yield from families(None)
            return
        yield from families(view)
        if self.intel_names:
            yield from intel.families(view, self.log_interval_s)


def make_app(
    read: Read,
    alive: Callable[[], bool],
    *,
    hosts: Collection[str] = (),
    intel_names: bool = False,
    log_interval_s: int = 0,
) -> Flask:
    """Make the web application.

    read: reads all queues, raises Unreachable. alive: whether the background thread runs.
    hosts: further host names that are allowed.
    """
    turns = ReadingTurns()

    def read_in_turn() -> ExporterView:
        with turns.take():
            return read()

    collector = _Queues(read_in_turn, intel_names, log_interval_s)

    def metrics() -> Response:
        try:
            encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        except (ValueError, TypeError):  # the version that it accepts is none
            encode, content_type = choose_encoder("")
        return Response(encode(collector), content_type=content_type)

    def healthz() -> ResponseReturnValue:
        return ("ok\n", 200) if alive() else ("the background thread has ended\n", 500)

    def readyz() -> ResponseReturnValue:
        read_in_turn()
        return "ok\n"

    def queues_json() -> Response:
        view = read_in_turn()
        return jsonify(
            schema_version=wire.SCHEMA_VERSION,
            at_s=view.at_s,
            clients=view.clients,
            queues=[queue_view.to_dict() for queue_view in view.queues],
            unreadable=[name for name, _ in view.unreadable],
        )

    def queue_json(name: str) -> ResponseReturnValue:
        view = read_in_turn()
        for queue_view in view.queues:
            if queue_view.queue.name == name:
                return jsonify({**queue_view.to_dict(), "at_s": queue_view.queue.at_s})
        for unreadable, reason in view.unreadable:
            if unreadable == name:
                raise ServiceUnavailable(f"queue {name} cannot be read: {reason}")
        declared = ", ".join(queue_view.queue.name for queue_view in view.queues) or "none"
        raise NotFound(f"queue {name} is not declared (declared: {declared})")

    routes: list[Route] = [
        ("/metrics", READ, metrics),
        ("/healthz", READ, healthz),
        ("/readyz", READ, readyz),
        ("/api/v1/queues", READ, queues_json),
        ("/api/v1/queues/<path:name>", READ, queue_json),
    ]
    app = make_site("scaletest.exporter", routes, "exporter", hosts=hosts)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.register_error_handler(Unreachable, _answer_outage)
    return app


def _answer_outage(error: Unreachable) -> Response:
    return answer_error(ServiceUnavailable(f"{error.message}: {error.hint}"))
