"""A web application with the common look and checks."""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flask import Flask, Response, request
from jinja2 import ChoiceLoader, FileSystemLoader

from scaletest import __version__
from scaletest.model.checks import cut_text
from scaletest.model.errors import InvalidValue
from scaletest.model.wording import as_options
from scaletest.pages import security
from scaletest.pages.security import check_hosts
from scaletest.render import numbers
from scaletest.render.style import STYLE
from scaletest.render.svg import draw_chart

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
# Of foreign texts, such as errors.
LONGEST_TEXT = 500
READ = ("GET", "HEAD")
# A path, its methods, and the view that answers it; its endpoint is the name of the view.
Route = tuple[str, Sequence[str], Callable[..., Any]]
# The pages of `scaletest ui`, which every navigation names alike: their addresses and names.
UI_PAGES = (
    ("/", "Overview"),
    ("/runs", "Runs"),
    ("/live", "Live"),
    ("/compare", "Compare"),
    ("/trend", "Trend"),
)


def check_prefix_and_hosts(prefix: str, hosts: Iterable[str]) -> tuple[str, frozenset[str]]:
    """Return prefix and host names as they are compared; InvalidValue where one is malformed."""
    names = check_hosts(hosts)
    prefix = prefix.rstrip("/")
    if prefix and not security.PREFIX.fullmatch(prefix):
        raise InvalidValue(
            f"the prefix is {prefix!r}",
            hint="write e.g. /tester: letters, digits, '.', '_', '~', '-'",
        )
    return prefix, names


def printable_line(text: str) -> str:
    """Return a foreign text as one line of at most LONGEST_TEXT characters, escapes included."""
    return cut_text(" ".join(text.splitlines()), LONGEST_TEXT)


def page_of(count: int, at_once: int) -> tuple[int, int]:
    """Return the number of the page that the query asks for, from 1 on, and how many there are.

    count: items of the list, of which a page shows `at_once`. In place of a page that does not
    exist it is the nearest one.
    """
    pages = max(1, math.ceil(count / at_once))
    return min(pages, max(1, request.args.get("page", 1, type=int))), pages


def make_site(
    package: str,
    routes: Iterable[Route],
    program: str,
    *,
    token: str = "",
    prefix: str = "",
    hosts: Collection[str] = (),
    counts: security.HttpCounts | None = None,
    changing: Mapping[str, str] | None = None,
    pages: Sequence[tuple[str, str]] = (),
    forms: Collection[str] = (),
) -> Flask:
    """Make the application of a package, whose templates are beside the common ones.

    program: what messages call it, as in client.
    token: needed for every change and for unknown host names; "" for none.
    prefix: the path below which it is shown, as in /tester.
    hosts: further host names that need no token.
    changing: endpoints that change something, and the parameter without which they only read; "":
    they always change something.
    pages: addresses and names of what stands in the navigation.
    forms: endpoints that take a body.
    """
    prefix, names = check_prefix_and_hosts(prefix, hosts)
    app = Flask(package, static_folder=str(STATIC), template_folder="templates")
    own_templates = app.jinja_loader
    assert own_templates is not None
    app.jinja_loader = ChoiceLoader([own_templates, FileSystemLoader(FOLDER / "templates")])
    app.url_map.merge_slashes = False
    app.url_map.redirect_defaults = False
    app.config["SEND_FILE_MAX_AGE_DEFAULT"] = 3600
    security.install_checks(
        app,
        counts or security.HttpCounts(),
        security.Access(program, token, prefix, names, changing or {}, forms),
    )
    for path, methods, view in (("/style.css", READ, style), *routes):
        app.add_url_rule(
            path, view.__name__, view, methods=methods, provide_automatic_options=False
        )
    app.jinja_env.filters.update(printable=printable_line, as_options=as_options, svg=draw_chart)
    app.jinja_env.globals.update(version=__version__, numbers=numbers, site_pages=pages)
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    if prefix:
        answer = app.wsgi_app

        def answer_below_prefix(environ: dict[str, Any], start: Any) -> Any:
            # some proxies strip the prefix, and some do not
            path = environ.get("PATH_INFO", "")
            if path == prefix or path.startswith(f"{prefix}/"):
                environ["PATH_INFO"] = path[len(prefix) :] or "/"
            return answer(environ, start)

        app.wsgi_app = answer_below_prefix  # type: ignore[assignment, method-assign]
    return app


def style() -> Response:
    """Serve the style sheet: what reports and pages have in common, then the rest of pages."""
    return Response(STYLE + (STATIC / "page.css").read_text("utf-8"), mimetype="text/css")


def answer_probe(trouble: str = "") -> Response:
    """Answer a probe: 200 without a trouble, and 503 with it."""
    body = {"status": "failed", "reason": trouble} if trouble else {"status": "ok"}
    return Response(json.dumps(body), 503 if trouble else 200, mimetype="application/json")
