"""The web application: its paths and the functions that answer them."""

from collections.abc import Collection
from threading import BoundedSemaphore

from flask import Flask

from scaletest.client_page import api, legacy_api, page
from scaletest.load import Steering
from scaletest.pages import security
from scaletest.pages.site import UI_PAGES, make_site

# The pages of a client, in its navigation.
PAGES = (
    ("/", "Load"),
    ("/stats?type=html", "Statistics"),
    ("/nodes?type=html", "Nodes"),
    ("/pods?type=html", "Pods"),
)
# Endpoints that change something, and the parameter without which they only read; "": always.
CHANGING = {"reset": "", "parallel": "value", "parallelism": "value", "rate": "value"}


def make_app(
    steering: Steering,
    counts: security.HttpCounts,
    *,
    token: str = "",
    prefix: str = "",
    hosts: Collection[str] = (),
    samples: api.SamplesAfter | None = None,
    ui_url: str = "",
) -> Flask:
    """Make the application for one load; the options are those of `make_site`.

    samples: reads samples of the queue's nodes; None where there are none.
    ui_url: where `scaletest ui` answers, for the navigation; "" where that is unknown.
    """
    ui_pages = [(f"{ui_url.rstrip('/')}{path}", name) for path, name in UI_PAGES if ui_url]
    app = make_site(
        "scaletest.client_page",
        [*legacy_api.ROUTES, *api.ROUTES, *page.ROUTES],
        "client",
        token=token,
        prefix=prefix,
        hosts=hosts,
        counts=counts,
        changing=CHANGING,
        pages=[*ui_pages, *PAGES],
    )
    downloads = BoundedSemaphore(api.MOST_DOWNLOADS)
    app.config.update(STEERING=steering, COUNTS=counts, SAMPLES=samples, DOWNLOADS=downloads)
    return app
