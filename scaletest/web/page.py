"""The page for people: made on the server, useful without script; with script it keeps itself up to date."""

from __future__ import annotations

from flask import Response, g, make_response, render_template

from scaletest.web.values import READ, counts, steering


def index() -> Response:
    """The whole page."""
    return make_response(render_template("page.html", root=g.root, snapshot=steering().snapshot(), http=counts()))


ROUTES = (("/", READ, index),)
