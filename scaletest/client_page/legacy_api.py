"""The API of the original Go client: one value per response, and the statistics as text.

/fails, /reqs-per-sec, /parallel, /reset and others have the paths, parameters and bodies on which
scripts rely; /rate is like /parallel, for open load. See docs/reference/http.md.
"""

from collections.abc import Callable

from flask import Response, g, make_response, redirect, render_template, request
from werkzeug.exceptions import BadRequest, Conflict

from scaletest.client_page import text
from scaletest.client_page.answers import NUMBER, as_json, counts, steering, with_http
from scaletest.load import LoadSnapshot
from scaletest.load.pace import parse_rate
from scaletest.load.steering import NotSteerable
from scaletest.model.checks import cut_text
from scaletest.model.errors import InvalidValue
from scaletest.pages.security import answer_form
from scaletest.pages.site import READ

CHANGE = ("GET", "POST")


def fails() -> Response:
    """Failed requests since the last reset."""
    return _single(steering().snapshot().failed, "request failures")


def reqs_per_sec() -> Response:
    """Requests that succeeded per second, since the last reset."""
    return _single(round(steering().snapshot().per_s, 6), "requests per second")


def parallel() -> Response:
    """Read or set how many requests are kept in flight; the statistics continue."""
    return _parallel(reset=False)


def parallelism() -> Response:
    """Read or set how many requests are kept in flight; setting it resets the statistics."""
    return _parallel(reset=True)


def rate() -> Response:
    """Read or set how many requests start in a second; the statistics continue."""
    control = steering()
    if "value" in request.args:
        try:
            control.set_rate(parse_rate(request.args["value"]))
        except NotSteerable as error:
            raise Conflict(error.message) from error
        except InvalidValue as error:
            raise BadRequest(f"{error.message}: {error.hint}") from error
    if control.rate is None:
        raise Conflict(f"this client has no rate that can be set: {control.load}")
    return _single(control.rate, "requests per second are started")


def reset() -> Response:
    """Reset the statistics."""
    steering().reset()
    return _single("Reseted", "")


def stats() -> Response:
    """The overall statistics."""
    snapshot = steering().snapshot()
    if answer_form() == "json":
        return as_json(with_http(snapshot.to_dict()))
    queries = counts()
    body = text.stats(snapshot, queries.completed, queries.rejected)
    if answer_form() == "plain":
        return _plain(body)
    return make_response(render_template("text.html", title="Statistics", text=body))


def nodes() -> Response:
    """Counts by node and device."""
    return _spread(text.nodes, "Nodes and devices")


def pods() -> Response:
    """Counts by node and pod."""
    return _spread(text.pods, "Nodes and pods")


def _parallel(*, reset: bool) -> Response:
    if "value" not in request.args:
        return _single(steering().parallel, "requests in parallel")
    written = request.args["value"]
    if not NUMBER.fullmatch(written):
        raise BadRequest(f"value is {cut_text(written, 40)!r}, not a whole number from 0 on")
    try:
        wanted = steering().set_parallel(int(written), reset=reset)
    except NotSteerable as error:
        raise Conflict(error.message) from error
    return _single(wanted, "requests in parallel")


def _single(number: float | str, info: str) -> Response:
    form = answer_form()
    shown = f"{number:.6f}" if isinstance(number, float) else str(number)
    if form == "json":
        return as_json({"result": number, "info": info})
    if form == "plain":
        return _plain(f"{shown}\n")
    if form == "page":
        return make_response(redirect(f"{g.root}/", 303))
    return make_response(
        render_template("message.html", title=info or shown, text=f"{shown} {info}".strip() + ".")
    )


def _plain(body: str) -> Response:
    return Response(body, mimetype="text/plain")


def _spread(render: Callable[[LoadSnapshot], str], title: str) -> Response:
    """Statistics by node; without a type plain text, as these two paths have always been."""
    snapshot = steering().snapshot()
    form = answer_form()
    if form == "json":
        whole = snapshot.to_dict()
        names = ("schema_version", "queue", "places", "other_places", "failures", "other_failures")
        return as_json({name: whole[name] for name in names})
    if form == "html" and "type" in request.args:
        return make_response(render_template("text.html", title=title, text=render(snapshot)))
    return _plain(render(snapshot))


ROUTES = (
    ("/fails", READ, fails),
    ("/reqs-per-sec", READ, reqs_per_sec),
    ("/reqs-per-seq", READ, reqs_per_sec),
    ("/parallel", CHANGE, parallel),
    ("/parallelism", CHANGE, parallelism),
    ("/rate", CHANGE, rate),
    ("/reset", CHANGE, reset),
    ("/stats", READ, stats),
    ("/nodes", READ, nodes),
    ("/pods", READ, pods),
)
