"""The application of `scaletest ui`: pages, each in a module with its routes, and probes."""

from collections.abc import Collection

from flask import Flask, Response

from scaletest.model.errors import Unreachable
from scaletest.pages.site import READ, UI_PAGES, Route, answer_probe, make_site
from scaletest.runs.progress import time_left
from scaletest.ui import live, queues, reports, runs, start
from scaletest.ui.reading import QueueReader, reader
from scaletest.ui.sources import Sources
from scaletest.ui.start import Starter


def make_app(
    sources: Sources,
    *,
    token: str = "",
    prefix: str = "",
    hosts: Collection[str] = (),
    starter: Starter | None = None,
) -> Flask:
    """Make the application; the options are those of `make_site`.

    starter: starts runs for its user; None where the pages only read.
    """
    routes: list[Route] = [
        *queues.ROUTES,
        *live.ROUTES,
        *runs.ROUTES,
        *reports.ROUTES,
        *(start.ROUTES if starter else ()),
        ("/healthz", READ, healthz),
        ("/readyz", READ, readyz),
    ]
    app = make_site(
        "scaletest.ui",
        routes,
        "ui",
        token=token,
        prefix=prefix,
        hosts=hosts,
        pages=(*UI_PAGES, *([("/start", "Start")] if starter else [])),
        forms=("start", "stop"),
    )
    app.config["SOURCES"] = sources
    app.jinja_env.globals["is_of_command"] = sources.run is not None
    app.extensions["starter"] = starter
    app.jinja_env.globals.update(starter=starter, time_left=time_left)
    if sources.redis_url:
        app.extensions["queues"] = QueueReader(sources.redis_url)
    return app


def healthz() -> Response:
    """Answer 200 as long as it serves, also while Redis is away: a new process would not help."""
    return answer_probe()


def readyz() -> Response:
    """Answer 200 when pages can be shown; 503 while the Redis that was named cannot be read."""
    if reader() is not None:
        try:
            reader().read()
        except Unreachable as error:
            return answer_probe(error.message)
    return answer_probe()
