"""An HTTP request of the tester, and the meaning of its response; without HTTP libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from scaletest.model.attempt import OK

# The likely cause when the first call to an endpoint fails, and what to do, by status or outcome.
CAUSES: Mapping[str, tuple[str, str]] = {
    "400": (
        "the service does not understand the payload",
        "compare --payload with the schema of the service",
    ),
    "401": (
        "the service needs credentials",
        "give --token-file FILE, or --header 'Authorization: ...'",
    ),
    "403": ("the credentials do not suffice", "check the rights of the token in --token-file"),
    "404": ("there is nothing at this path", "check the path of --url"),
    "405": ("the endpoint needs another method", "give --method, as in --method POST"),
    "411": ("the service needs a body", "give --payload FILE"),
    "413": ("the payload is too large for the service", "give a smaller --payload"),
    "415": ("the service needs another content type", "give --header 'Content-Type: ...'"),
    "422": (
        "the payload does not fit the schema",
        "compare --payload with the schema of the service",
    ),
    "429": ("the service limits how often one client may call", "raise its limit for the test"),
    "500": ("the service failed on this request", "read its log: the payload may be wrong"),
    "502": ("a gateway reaches no pod that answers", "check whether the pods are ready"),
    "503": (
        "no pod is ready, or the service is overloaded already",
        "check whether the pods are ready",
    ),
    "504": ("a gateway waited too long for a pod", "check the pods; they may hang"),
    "refused": (
        "nothing listens at this address",
        "start the service, or check host and port of --url",
    ),
    "reset": ("the service closed the connection", "read its log; it may need TLS or HTTP/2"),
    "timed out": (
        "no response came in time",
        "check that the host is reachable, or give a longer --timeout",
    ),
    "name unknown": ("the host name cannot be resolved", "check the host of --url"),
    "TLS": (
        "the certificate or the TLS handshake failed",
        "give --ca-file FILE, or check https in --url",
    ),
    "no HTTP": ("the response is not HTTP of this version", "check the port of --url, and --http2"),
}


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A call of the tested service. headers: may contain credentials, so they are never written.

    connections: at most this many. server_header: response header with the service's own time.
    pod_header: response header with the pod's name.
    ca_file: certificate of the authority that signed the service's certificate.
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
    """A response. outcome: ok, a status that is not a success, or a constant of model.attempt."""

    outcome: str
    size: int = 0
    server_s: float | None = None
    pod: str = ""


class Sender(Protocol):
    """An HTTP library with its connections."""

    async def send(self, body: bytes | None) -> HttpResponse:
        """Send one request and read the response to its end; never raises for a failing service."""

    async def close(self) -> None:
        """Close the connections."""


def read_response(
    call: HttpCall, status: int, size: int, headers: Mapping[str, str]
) -> HttpResponse:
    """The outcome of a response: 2xx is success; a redirect is not, it names another service."""
    outcome = OK if 200 <= status < 300 else str(status)
    server_s = server_time(headers.get(call.server_header, "")) if call.server_header else None
    return HttpResponse(
        outcome, size, server_s, headers.get(call.pod_header, "") if call.pod_header else ""
    )


def server_time(text: str) -> float | None:
    """Seconds in a header, None for any other text.

    The header is a number with or without ms, us or s, or Server-Timing's dur=MILLISECONDS. A bare
    number means seconds when it has a decimal point, else milliseconds: "0.012" equals "12".
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
