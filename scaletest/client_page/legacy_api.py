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
    """Answer with how many requests failed since the last reset."""
    return _answer_number(steering().snapshot().failed, "request failures")


def reqs_per_sec() -> Response:
    """Answer with how many requests succeeded per second, since the last reset."""
    return _answer_number(round(steering().snapshot().per_s, 6), "requests per second")


def parallel() -> Response:
    """Read or set how many requests are kept in flight; the statistics continue."""
    return _answer_parallel(reset=False)


def parallelism() -> Response:
    """Read or set how many requests are kept in flight; setting it resets the statistics."""
    return _answer_parallel(reset=True)


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
        raise Conflict(f"this client's rate cannot be set: {control.load}")
    return _answer_number(control.rate, "requests per second are started")


def reset() -> Response:
    """Reset the statistics."""
    steering().reset()
    return _answer_number("Reseted", "")


def stats() -> Response:
    """Answer with the overall statistics as text, or as JSON where it is asked for."""
    snapshot = steering().snapshot()
    if answer_form() == "json":
        return as_json(with_http(snapshot.to_dict()))
    http = counts()
    body = text.overall_text(snapshot, http.completed, http.rejected)
    if answer_form() == "plain":
        return _answer_text(body)
    return make_response(render_template("text.html", title="Statistics", text=body))


def nodes() -> Response:
    """Answer with successes and failures by node and device, with the errors there."""
    return _answer_counts(text.nodes_text, "Nodes and devices")


def pods() -> Response:
    """Answer with successes by node and pod."""
    return _answer_counts(text.pods_text, "Nodes and pods")


def _answer_parallel(*, reset: bool) -> Response:
    """Answer with the requests in flight, after setting them where a value is given.

    reset: whether setting them resets the statistics.
    """
    if "value" not in request.args:
        return _answer_number(steering().parallel, "requests in parallel")
    written = request.args["value"]
    if not NUMBER.fullmatch(written):
        raise BadRequest(f"value is {cut_text(written, 40)!r}, not a whole number from 0 on")
    try:
        wanted = steering().set_parallel(int(written), reset=reset)
    except NotSteerable as error:
        raise Conflict(error.message) from error
    return _answer_number(wanted, "requests in parallel")


def _answer_number(number: float | str, info: str) -> Response:
    """Answer with one value in the form that the query asks for; info: what it is."""
    form = answer_form()
    written = f"{number:.6f}" if isinstance(number, float) else str(number)
    if form == "json":
        return as_json({"result": number, "info": info})
    if form == "plain":
        return _answer_text(f"{written}\n")
    if form == "page":
        return make_response(redirect(f"{g.root}/", 303))
    sentence = f"{written} {info}".strip() + "."
    return make_response(render_template("message.html", title=info or written, text=sentence))


def _answer_text(body: str) -> Response:
    return Response(body, mimetype="text/plain")


def _answer_counts(render: Callable[[LoadSnapshot], str], title: str) -> Response:
    """Answer with counts by node.

    Without a type it is plain text, as scripts have always got it from these two paths.
    """
    snapshot = steering().snapshot()
    form = answer_form()
    if form == "json":
        statistics = snapshot.to_dict()
        names = ("schema_version", "queue", "places", "other_places", "failures", "other_failures")
        return as_json({name: statistics[name] for name in names})
    if form == "html" and "type" in request.args:
        return make_response(render_template("text.html", title=title, text=render(snapshot)))
    return _answer_text(render(snapshot))


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
