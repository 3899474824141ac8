"""The web application: its paths and the functions that answer them."""

from __future__ import annotations

from collections.abc import Iterable
from threading import BoundedSemaphore
from typing import TYPE_CHECKING

from flask import Flask

from scaletest.http.server import checked_hosts
from scaletest.load import Steering
from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue
from scaletest.web import api, legacy_api, page, security

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


# Of foreign texts, such as errors.
LONGEST_TEXT = 500


def checked(prefix: str, hosts: Iterable[str]) -> tuple[str, frozenset[str]]:
    """Prefix and host names in the form in which they are compared; raises InvalidValue."""
    names = checked_hosts(hosts)
    prefix = prefix.rstrip("/")
    if prefix and not security.PREFIX.fullmatch(prefix):
        raise InvalidValue(
            f"the prefix is {prefix!r}",
            hint="write it as in /tester: letters, digits, '.', '_', '~', '-'",
        )
    return prefix, names


def printable(text: str) -> str:
    """A foreign text as one line of at most LONGEST_TEXT characters, escapes included."""
    return cut(" ".join(text.splitlines()), LONGEST_TEXT)


def make_app(
    steering: Steering,
    counts: security.HttpCounts,
    *,
    token: str = "",
    prefix: str = "",
    hosts: Iterable[str] = (),
    samples: api.SamplesAfter | None = None,
) -> Flask:
    """The application for one load.

    token: needed for every change; "" for none. prefix: the path below which it is shown, as in
    /tester.
    hosts: further host names that need no token. samples: returns samples of the queue's nodes.
    """
    prefix, names = checked(prefix, hosts)
    app = Flask("scaletest.web", static_folder="static", template_folder="templates")
    app.url_map.merge_slashes = False
    app.url_map.redirect_defaults = False
    app.config.update(
        STEERING=steering, COUNTS=counts, SAMPLES=samples, SEND_FILE_MAX_AGE_DEFAULT=3600
    )
    app.config["DOWNLOADS"] = BoundedSemaphore(api.DOWNLOADS)
    security.install(app, counts, token, prefix, names)
    for module in (legacy_api, api, page):
        for path, methods, view in module.ROUTES:
            app.add_url_rule(
                path, view.__name__, view, methods=methods, provide_automatic_options=False
            )
    app.jinja_env.filters["printable"] = printable
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    for name in app.jinja_env.list_templates():
        app.jinja_env.get_template(name)  # compiled now, so that the first page is fast
    if prefix:
        app.wsgi_app = _below(app.wsgi_app, prefix)  # type: ignore[assignment, method-assign]
    return app


def _below(inner: WSGIApplication, prefix: str) -> WSGIApplication:
    """Answer below the prefix too: some proxies strip it, and some do not."""

    def outer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == prefix or path.startswith(f"{prefix}/"):
            environ["PATH_INFO"] = path[len(prefix) :] or "/"
        return inner(environ, start)

    return outer
