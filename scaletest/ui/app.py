"""The application of `scaletest ui`: its pages, each in a module with its routes."""

from __future__ import annotations

from collections.abc import Collection

from flask import Flask

from scaletest.pages.site import Route, make_site
from scaletest.ui import health, live, overview, queue, reports, runs
from scaletest.ui.reading import QueueReader
from scaletest.ui.sources import Sources


def make_app(
    sources: Sources, *, token: str = "", prefix: str = "", hosts: Collection[str] = ()
) -> Flask:
    """The application; the options are those of `make_site`."""
    routes: list[Route] = [*overview.ROUTES, *queue.ROUTES, *live.ROUTES]
    routes += [*runs.ROUTES, *reports.ROUTES, *health.ROUTES]
    app = make_site("scaletest.ui", routes, "ui", token=token, prefix=prefix, hosts=hosts)
    app.config["SOURCES"] = sources
    app.jinja_env.globals["is_of_command"] = sources.run is not None
    if sources.redis_url:
        app.extensions["queues"] = QueueReader(sources.redis_url)
    return app
