"""Serve /metrics, /api/v1/queues, /healthz and /readyz.

Nothing can be changed here. It answers only under host names that no stranger can register; see
`scaletest.pages.security`. Whatever is refused is refused in JSON, for programs.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from flask import Flask, Response, jsonify, request
from flask.typing import ResponseReturnValue
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from werkzeug.exceptions import Forbidden, HTTPException, NotFound

from scaletest.exporter import intel
from scaletest.exporter.metrics import families
from scaletest.exporter.view import ExporterView
from scaletest.model import wire
from scaletest.model.errors import Unreachable
from scaletest.model.wording import as_options
from scaletest.pages.site import READ, Route, make_site
from scaletest.pages.turns import ReadingTurns

Read = Callable[[], ExporterView]


@dataclass(frozen=True, slots=True)
class _Queues(Collector):
    """The metrics, read again for each scrape."""

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
                raise Unreachable(
                    f"queue {name} cannot be read: {reason}", hint="check the content of its keys"
                )
        declared = ", ".join(queue_view.queue.name for queue_view in view.queues) or "none"
        return _error(
            404,
            f"this queue is not declared (declared: {declared})",
            "declare it with: scaletest queue add",
        )

    routes: list[Route] = [
        ("/metrics", READ, metrics),
        ("/healthz", READ, healthz),
        ("/readyz", READ, readyz),
        ("/api/v1/queues", READ, queues_json),
        ("/api/v1/queues/<path:name>", READ, queue_json),
    ]
    app = make_site("scaletest.exporter", routes, "exporter", hosts=hosts)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.register_error_handler(HTTPException, _answer_refusal)
    app.register_error_handler(Unreachable, lambda error: _error(503, error.message, error.hint))
    return app


def _error(status: int, message: str, hint: str) -> tuple[Response, int]:
    return jsonify(schema_version=wire.SCHEMA_VERSION, error=message, hint=as_options(hint)), status


def _answer_refusal(error: HTTPException) -> ResponseReturnValue:
    """Answer a request for what is not served, or not to this reader."""
    served = "see /metrics, /api/v1/queues, /healthz, /readyz"
    if isinstance(error, NotFound):
        return _error(404, f"there is nothing at {request.path}", served)
    if isinstance(error, Forbidden):
        return _error(
            403, "this host name is not allowed", "start the exporter with <allow_host> NAME"
        )
    allowed = {name: text for name, text in error.get_headers() if name == "Allow"}
    return *_error(error.code or 500, error.description or error.name, served), allowed
