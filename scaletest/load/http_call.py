"""One HTTP call, the meaning of its response, and what sends it.

aiohttp sends it over HTTP/1.1 with reused connections, and is imported only then. Its errors become
constants of model.attempt, so that no other module knows the library.
"""

import asyncio
import errno
import itertools
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scaletest.load.streams import StreamReader
from scaletest.model import attempt
from scaletest.model.errors import UsageError
from scaletest.model.quantities import in_base_units

# The likely cause when the first call to an endpoint fails, and what to do, by status or outcome.
CAUSES: Mapping[str, tuple[str, str]] = {
    "400": (
        "the service does not understand the payload",
        "compare <payload> with the schema of the service",
    ),
    "401": (
        "the service needs credentials",
        "give <header> 'Authorization: ...', or <header> @FILE",
    ),
    "403": ("the credentials do not suffice", "check their rights"),
    "404": ("there is nothing at this path", "check the path of the URL"),
    "405": ("the endpoint needs another method", "give <method>, e.g. <method> POST"),
    "411": ("the service needs a body", "give <payload> FILE"),
    "413": ("the payload is too large for the service", "give a smaller <payload>"),
    "415": ("the service needs another content type", "give <header> 'Content-Type: ...'"),
    "422": (
        "the payload does not fit the schema",
        "compare <payload> with the schema of the service",
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
        "start the service, or check host and port of the URL",
    ),
    "reset": (
        "the service closed the connection",
        "read its log; it may need TLS, or speak HTTP/2 only",
    ),
    "timed out": (
        "no response came in time",
        "check that the host is reachable, or give a longer <timeout>",
    ),
    "name unknown": ("the host name cannot be resolved", "check the host of the URL"),
    "TLS": (
        "the certificate or the TLS handshake failed",
        "name its authority in the variable SSL_CERT_FILE, or check https in the URL",
    ),
    "no HTTP": ("the response is not HTTP/1.1", "check the port of the URL"),
    attempt.INCOMPLETE: (
        "the answer was no whole stream of events that ends with [DONE]",
        "read the log of the service; check whether this path can stream",
    ),
}
# The cause and what to do for any other outcome.
OTHER_CAUSE = ("the service does not serve this request", "read its log")
# Outcomes of errors of sockets.
_BY_NUMBER: Mapping[int | None, str] = {
    errno.ETIMEDOUT: attempt.TIMED_OUT,
    errno.EHOSTUNREACH: attempt.TIMED_OUT,
    errno.ENETUNREACH: attempt.TIMED_OUT,
    errno.ECONNREFUSED: attempt.REFUSED,
}


def explain_outcome(outcome: str) -> tuple[str, str]:
    """Return a failed call's outcome with its likely cause, in words, and what to do."""
    cause, remedy = CAUSES.get(outcome, OTHER_CAUSE)
    shown = f"HTTP {outcome}" if outcome.isdigit() else outcome or "no answer"
    return f"({shown}): {cause}", remedy


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A call of the tested service."""

    url: str
    method: str = "GET"
    # they may contain credentials, so they are never written
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 30.0
    connections: int = 1000  # at most
    server_header: str = ""  # response header with the service's own time
    ca_file: str = ""  # of the authority that signed the certificate of the cluster's API server
    is_stream: bool = False  # whether the answer is a stream of tokens
    replica_header: str = ""  # response header with the name of the replica
    # its address at each replica by name, to which requests go in turn instead of to `url`
    direct: Mapping[str, str] = field(default_factory=dict)


class HttpResponse(NamedTuple):
    """The response to one call, or what became of the call without one."""

    outcome: str  # ok, a status that is not a success, or a constant of model.attempt
    size: int = 0
    server_s: float | None = None
    replica: str = ""
    stream: StreamReader | None = None


def server_time(text: str) -> float | None:
    """Parse the seconds in a header, None for any other text.

    The header is a number with or without ms, us or s, or Server-Timing's dur=MILLISECONDS. A bare
    number means seconds when it has a decimal point, else milliseconds: "0.012" equals "12".
    """
    if "dur=" in text:
        text = text.partition("dur=")[2].partition(",")[0].partition(";")[0].strip() + "ms"
    bare = 1.0 if "." in text else 1e-3
    seconds = in_base_units(text, {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": bare})
    return seconds if seconds is not None and seconds < 1e9 else None


def tls_context(call: HttpCall) -> ssl.SSLContext:
    """Make a TLS context of the machine's authorities or the call's; UsageError if unreadable."""
    try:
        return ssl.create_default_context(cafile=call.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"the certificate authority {call.ca_file} cannot be used: {error}",
            hint="look at the kubeconfig",
        ) from error


class Sender:
    """aiohttp with its connections, which belong to the event loop that runs now."""

    def __init__(self, call: HttpCall) -> None:
        import aiohttp

        self._aiohttp = aiohttp
        self._call = call
        self._targets = itertools.cycle(call.direct.items() or [("", call.url)])
        # no proxy, redirect or second attempt: each request is sent exactly once
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0, ssl=tls_context(call)),
            timeout=aiohttp.ClientTimeout(total=call.timeout_s),
            headers=dict(call.headers),
            skip_auto_headers=("User-Agent",),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        # aiohttp would repeat a GET by itself when a reused connection turns out to be closed, and
        # both attempts would count as one
        self._session._retry_connection = False

    async def send(self, body: bytes | None) -> HttpResponse:
        """Send one request and read the response to its end; never raises for a failing service."""
        call, client = self._call, self._aiohttp
        stream = StreamReader() if call.is_stream else None
        replica, url = next(self._targets)
        try:
            async with self._session.request(
                call.method, url, data=body, allow_redirects=False
            ) as response:
                size = 0
                async for block in response.content.iter_any():
                    size += len(block)  # nothing is kept, because it may be large
                    if stream is not None:
                        stream.feed(block)
        except TimeoutError:
            return HttpResponse(attempt.TIMED_OUT)
        except (client.ClientError, OSError) as error:
            # the first that fits, as some are kinds of others
            outcomes: dict[Any, str] = {
                client.ClientSSLError | ssl.SSLError: attempt.TLS,
                client.ClientConnectorDNSError: attempt.DNS,
                client.ServerDisconnectedError | client.ClientPayloadError: attempt.RESET,
                client.ClientResponseError: attempt.PROTOCOL,
            }
            for kind, outcome in outcomes.items():
                if isinstance(error, kind):
                    return HttpResponse(outcome)
            # of several addresses the last one's error counts
            cause = getattr(error, "os_error", error)
            if isinstance(cause, socket.gaierror):
                return HttpResponse(attempt.DNS)
            return HttpResponse(_BY_NUMBER.get(getattr(cause, "errno", None), attempt.RESET))
        # 2xx is success; a redirect is not, it names another service
        outcome = attempt.OK if 200 <= response.status < 300 else str(response.status)
        server_s = None
        if call.server_header:
            server_s = server_time(response.headers.get(call.server_header, ""))
        if outcome == attempt.OK and stream is not None and not stream.is_success:
            outcome = attempt.INCOMPLETE
        if call.replica_header:
            replica = response.headers.get(call.replica_header, "")[:100]
        return HttpResponse(outcome, size, server_s, replica, stream)

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()
        await asyncio.sleep(0)


async def open_sender(call: HttpCall) -> Sender:
    """Make the sender for this call in the running event loop."""
    return Sender(call)
