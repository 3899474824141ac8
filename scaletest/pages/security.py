"""Checks of every HTTP request, and security headers of every response. Refusals have a reason.

* bodies are not accepted, but of forms that say so: every value is in the query, as scripts have
  always sent it
* request lines have at most 2 KiB
* host names that a stranger may register are refused, except with the token. Such a
  name may point at this server's address (DNS rebinding), and then a browser lets the stranger's
  page read the server's pages. So it answers only under a name that neither a stranger
  can register nor a neighbour can announce, or that its user has allowed
* a change is refused when a page of another site or a prefetching browser asks for it. Browsers
  send Sec-Fetch-Site only over TLS and to this machine, and Origin not with a GET; a browser that
  sends neither must come from the application's own page
* a change needs the token where one is set
"""

import hmac
import ipaddress
import json
import logging
import re
import socket
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from flask import Flask, Response, g, make_response, render_template, request
from werkzeug.datastructures import WWWAuthenticate
from werkzeug.exceptions import (
    BadRequest,
    Forbidden,
    HTTPException,
    MethodNotAllowed,
    NotFound,
    RequestURITooLarge,
    Unauthorized,
)

from scaletest.model.errors import InvalidValue
from scaletest.model.wording import as_options

HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
# Hosts that always mean this machine, whoever asks.
LOOPBACK = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]+)?")
# Endings that nobody can register, and that no neighbour on the network can announce by mDNS or
# DHCP as he can any name in .local or without a dot.
INNER = (".localhost", ".internal", ".svc", ".svc.cluster.local")

logger = logging.getLogger("scaletest.pages")

LONGEST_URI = 2048
PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+){1,16}")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class HttpCounts:
    """Counts queries that were answered and refused, for all threads together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.completed = 0
        self.rejected = 0

    def count(self, status: int) -> None:
        """Count an answer: as rejected from status 400 on."""
        with self._lock:
            self.completed += status < 400
            self.rejected += status >= 400


@dataclass(frozen=True, slots=True)
class Access:
    """Who may do what with an application; see `site.make_site`."""

    program: str  # what messages call the application
    token: str  # "" for none
    prefix: str
    hosts: Collection[str]  # names that need no token
    changing: Mapping[str, str]  # endpoints that change something
    forms: Collection[str] = ()  # endpoints that take a body


def install_checks(app: Flask, counts: HttpCounts, access: Access) -> None:
    """Check all requests of the application, and add headers to all responses."""

    @app.before_request
    def check() -> None:
        # what every link begins with: the path under which a proxy shows the page
        forwarded = request.headers.get("X-Forwarded-Prefix", "").rstrip("/")
        g.root = forwarded if PREFIX.fullmatch(forwarded) else access.prefix
        if len(request.environ.get("REQUEST_URI", request.full_path)) > LONGEST_URI:
            raise RequestURITooLarge(f"the address is longer than {LONGEST_URI} characters")
        has_body = request.content_length or "Transfer-Encoding" in request.headers
        if has_body and request.endpoint not in access.forms:
            raise BadRequest("a body is not accepted; put values into the query, e.g. ?value=4")
        _check_host(access)
        if access.changing.get(request.endpoint or "", "\0") in ("", *request.args):
            _check_change(access)

    @app.after_request
    def add_headers(response: Response) -> Response:
        counts.count(response.status_code)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if request.endpoint not in ("static", "style"):  # a browser may keep these
            response.headers["Cache-Control"] = "no-store"
        return response

    app.register_error_handler(HTTPException, answer_error)
    app.register_error_handler(Exception, _report_bug)


def answer_error(error: HTTPException) -> Response:
    """Answer a request with an error, in the form that it asks for."""
    if error.response is not None:
        return make_response(error.response)
    form = answer_form()
    is_unknown = error.description == NotFound.description
    description = "there is nothing at this address" if is_unknown else error.description
    reason = as_options(description or error.name)
    if form == "plain":
        response = Response(f"ERROR: {reason}\n", mimetype="text/plain")
    elif form == "json":
        response = Response(
            json.dumps({"result": "ERROR", "info": reason}), mimetype="application/json"
        )
    else:
        sentence = f"{reason[:1].upper()}{reason[1:].rstrip('.')}."
        response = make_response(render_template("message.html", title=error.name, text=sentence))
    response.status_code = error.code or 500
    for name, value in error.get_headers():
        if name.lower() not in ("content-type", "content-length"):
            response.headers[name] = value
    return response


def answer_form() -> str:
    """Return what the `type` of the query asks for: plain, json, page (back to it) or html."""
    wanted = request.args.get("type", "")
    if request.path.startswith("/api/"):
        return "json"
    return wanted if wanted in ("plain", "json", "page") else "html"


def _report_bug(error: Exception) -> Response:
    logger.exception("a request could not be answered", exc_info=error)
    return answer_error(
        HTTPException("this is a bug of scaletest: please report it with the lines in its log")
    )


def _check_host(access: Access) -> None:
    """Refuse a request under a host name that a stranger may have pointed at this server."""
    if is_inner(request.headers.get("Host", ""), access.hosts) or _has_token(access.token):
        return
    if access.token:
        raise _ask_for_token(access)  # so that a browser asks for it
    raise Forbidden(
        f"this host name is not allowed without a token; start the {access.program} with"
        " <allow_host> NAME"
    )


def _check_change(access: Access) -> None:
    """Refuse a change that the user of the page did not ask for, or that lacks the token."""
    if request.method == "HEAD":
        raise MethodNotAllowed(["GET", "POST"], "this changes something: use GET or POST")
    # what a page of another site asked for
    headers = request.headers
    site, origin, host = map(headers.get, ("Sec-Fetch-Site", "Origin", "Host"))
    if site is not None:
        if site not in ("same-origin", "none"):
            raise Forbidden("a page of another site asked for this; nothing was changed")
    elif origin is not None:
        if _host_of(origin) != host:
            raise Forbidden("a page of another origin asked for this; nothing was changed")
    elif (
        # a browser that sends neither must come from a page of ours
        headers.get("User-Agent", "").startswith("Mozilla/")
        and _host_of(headers.get("Referer", "")) != host
    ):
        raise Forbidden(
            "a browser asked for this, perhaps for another site's page; nothing was changed. Use"
            f" the {access.program}'s page"
        )
    # what a browser asked for because its user might want it next
    if any("prefetch" in headers.get(name, "") for name in ("Sec-Purpose", "Purpose")):
        raise Forbidden("a browser asked for this in advance (prefetch); nothing was changed")
    if access.token and not _has_token(access.token):
        raise _ask_for_token(access)


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _ask_for_token(access: Access) -> Unauthorized:
    realm: dict[str, str | None] = {"realm": f"scaletest {access.program}", "charset": "UTF-8"}
    return Unauthorized(
        f"this needs the token of the {access.program}: Authorization: Bearer TOKEN, or any user"
        " with it as password",
        www_authenticate=WWWAuthenticate("basic", realm),
    )


def _has_token(token: str) -> bool:
    if not token:
        return False
    # a proxy that uses Authorization itself, as Kubernetes' does, forwards this header
    text = request.headers.get("Scaletest-Token")
    authorization = request.authorization
    if text is None and authorization is not None:
        text = authorization.token if authorization.type == "bearer" else authorization.password
    return hmac.compare_digest(
        (text or "").encode("utf-8", "replace"), token.encode("utf-8", "replace")
    )


def check_hosts(names: Iterable[str]) -> frozenset[str]:
    """Return allowed names in the form in which they are compared; InvalidValue for others."""
    hosts = frozenset(name.lower().rstrip(".") for name in names)
    for host in hosts:
        if not HOST.fullmatch(host):
            raise InvalidValue(
                f"the host name is {host!r}",
                hint="write it without a port, e.g. client.validation",
            )
    return hosts


def is_inner(host: str, allowed: Collection[str] = ()) -> bool:
    """Return whether a Host header has a name that no stranger can register.

    Such are IP addresses, localhost, this machine, names of a cluster, and allowed ones.
    """
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
        return True
    except ValueError:
        here = socket.gethostname().lower()
        # HTTP/1.0 has no Host, and no browser sends it
        return name in ("", "localhost", here, *allowed) or name.endswith(INNER)
