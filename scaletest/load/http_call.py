"""One HTTP request as the tester sends it, and what an answer means. Plain data; no library of HTTP is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from scaletest.model.attempt import OK

# What a status says of an endpoint whose first call fails: the cause one would look for first, and where.
CAUSES: Mapping[str, tuple[str, str]] = {
    "400": ("the service does not understand the payload", "compare --payload with the schema of the service"),
    "401": ("the service wants credentials", "give --token-file FILE, or --header 'Authorization: ...'"),
    "403": ("the credentials do not suffice", "look which rights the token of --token-file has"),
    "404": ("there is nothing at this path", "look at the path of --url"),
    "405": ("the endpoint takes another method", "give --method, as in --method POST"),
    "411": ("the service wants a body", "give --payload FILE"),
    "413": ("the payload is too large for the service", "give a smaller --payload"),
    "415": ("the service wants another content type", "give --header 'Content-Type: ...'"),
    "422": ("the payload does not fit the schema", "compare --payload with the schema of the service"),
    "429": ("the service limits how often one client may call", "raise its limit for the test"),
    "500": ("the service failed on this request", "read its log: the payload may be wrong"),
    "502": ("a gateway reaches no pod that answers", "look at the readiness of the pods"),
    "503": ("no pod is ready, or the service is overloaded already", "look at the readiness of the pods"),
    "504": ("a gateway waited too long for a pod", "look at the pods; they may hang"),
    "refused": ("nothing listens at this address", "start the service, or look at host and port of --url"),
    "reset": ("the service closed the connection", "read its log; perhaps it wants TLS, or HTTP/2"),
    "timed out": ("no answer came in time", "look whether host and port are reachable, or give a longer --timeout"),
    "name unknown": ("the host name is not known here", "look at the host of --url"),
    "TLS": ("the certificate or the TLS handshake failed", "give --ca-file FILE, or look at https in --url"),
    "no HTTP": ("the answer is no HTTP of this version", "look at the port of --url, and at --http2"),
}


@dataclass(frozen=True, slots=True)
class HttpCall:
    """What is sent. headers: with credentials, so it is never written anywhere.

    connections: so many at most. server_header: where the service says its own time; pod_header: and who it is.
    ca_file: of the authority that signed the service's certificate.
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 30.0
    retries: int = 0
    connections: int = 1000
    http2: bool = False
    server_header: str = ""
    pod_header: str = ""
    ca_file: str = ""


class HttpResponse(NamedTuple):
    """outcome: ok, a status that is no success, or a word of model.attempt."""

    outcome: str
    size: int = 0
    server_s: float | None = None
    pod: str = ""


class Sender(Protocol):
    """A library of HTTP with its connections."""

    async def send(self, body: bytes | None) -> HttpResponse:
        """Send one request and read its answer to the end, keeping nothing. Never raises for what the service did."""

    async def close(self) -> None:
        """Close the connections."""


def read_response(call: HttpCall, status: int, size: int, headers: Mapping[str, str]) -> HttpResponse:
    """What an answer means: 2xx is success. A redirect is none: who is tested must be named."""
    outcome = OK if 200 <= status < 300 else str(status)
    server_s = server_time(headers.get(call.server_header, "")) if call.server_header else None
    return HttpResponse(outcome, size, server_s, headers.get(call.pod_header, "") if call.pod_header else "")


def server_time(text: str) -> float | None:
    """Seconds of a header: a number with or without ms, us or s, or Server-Timing's dur=MILLISECONDS; None if neither.

    A bare number counts as seconds when it holds a point, else as milliseconds: "0.012" and "12" are the same.
    """
    text = text.strip()
    factor = 1.0
    if "dur=" in text:
        text, factor = text.partition("dur=")[2].partition(",")[0].partition(";")[0], 1e-3
    else:
        for unit, scale in (("us", 1e-6), ("ms", 1e-3), ("s", 1.0)):
            if text.endswith(unit):
                text, factor = text[: -len(unit)], scale
                break
        else:
            factor = 1.0 if "." in text else 1e-3
    try:
        seconds = float(text) * factor
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e9 else None
