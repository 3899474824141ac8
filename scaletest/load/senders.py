"""HTTP libraries: aiohttp for HTTP/1.1, httpx for HTTP/2, both with reused connections.

Each is imported only when it is used. Errors become constants of model.attempt, so that no other
module knows a library. httpx needs six times as much CPU per request as aiohttp;
docs/how-to/saturate.md says what one process reaches.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator
from typing import Any

from scaletest.load.http_call import HttpCall, HttpResponse, Sender, read_response
from scaletest.model import attempt
from scaletest.model.errors import UsageError

_RESET = (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED)


def sender(call: HttpCall) -> Sender:
    """The sender for this call, in a running event loop. UsageError without its library."""
    return _Http2(call) if call.http2 else _Http1(call)


def context(call: HttpCall) -> ssl.SSLContext:
    """TLS context with the machine's authorities or the call's; UsageError if unreadable."""
    try:
        return ssl.create_default_context(cafile=call.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"--ca-file {call.ca_file} cannot be used: {error}", hint="give a PEM file"
        ) from error


class _Http1:
    def __init__(self, call: HttpCall) -> None:
        import aiohttp

        self._aiohttp = aiohttp
        self._call = call
        # no proxy, redirect or second attempt: each request is sent exactly once
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0, ssl=context(call)),
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
        """As Sender says."""
        try:
            async with self._session.request(
                self._call.method, self._call.url, data=body, allow_redirects=False
            ) as response:
                size = await _size(response.content.iter_any())
                return read_response(self._call, response.status, size, response.headers)
        except TimeoutError:
            return HttpResponse(attempt.TIMED_OUT)
        except (self._aiohttp.ClientError, OSError) as error:
            return HttpResponse(self._word(error))

    def _word(self, error: BaseException) -> str:
        client = self._aiohttp
        if isinstance(error, client.ClientSSLError | ssl.SSLError):
            return attempt.TLS
        if isinstance(error, client.ClientConnectorDNSError):
            return attempt.DNS
        if isinstance(error, client.ServerDisconnectedError | client.ClientPayloadError):
            return attempt.RESET
        if isinstance(error, client.ClientResponseError):
            return attempt.PROTOCOL
        return _of_socket(error)

    async def close(self) -> None:
        """As Sender says."""
        await self._session.close()
        await asyncio.sleep(0)


class _Http2:
    def __init__(self, call: HttpCall) -> None:
        try:
            import h2  # noqa: F401
            import httpx
        except ImportError as error:
            raise UsageError(
                "--http2 needs httpx and h2, which are not installed",
                hint="install them: pip install 'scaletest[http2]'",
            ) from error
        self._httpx: Any = httpx
        self._call = call
        limits = httpx.Limits(
            max_connections=call.connections, max_keepalive_connections=call.connections
        )
        # without TLS the version cannot be negotiated, so it must be known before
        self._client = httpx.AsyncClient(
            http2=True,
            http1=call.url.startswith("https:"),
            verify=context(call),
            timeout=None,
            limits=limits,
            headers=dict(call.headers),
            trust_env=False,
        )

    async def send(self, body: bytes | None) -> HttpResponse:
        """As Sender says."""
        try:
            async with (
                asyncio.timeout(self._call.timeout_s),
                self._client.stream(self._call.method, self._call.url, content=body) as response,
            ):
                if response.http_version != "HTTP/2":
                    return HttpResponse(attempt.PROTOCOL)
                size = await _size(response.aiter_raw())
                return read_response(self._call, response.status_code, size, response.headers)
        except TimeoutError:
            return HttpResponse(attempt.TIMED_OUT)
        except (self._httpx.HTTPError, OSError) as error:
            return HttpResponse(self._word(error))

    def _word(self, error: BaseException) -> str:
        if isinstance(error, self._httpx.TimeoutException):
            return attempt.TIMED_OUT
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLError):
                return attempt.TLS
            if isinstance(cause, OSError):
                return _of_socket(cause)
            cause = cause.__cause__ or cause.__context__
        if isinstance(error, self._httpx.RemoteProtocolError):
            return attempt.PROTOCOL
        return attempt.RESET

    async def close(self) -> None:
        """As Sender says."""
        await self._client.aclose()


async def _size(blocks: AsyncIterator[bytes]) -> int:
    """Read a response to its end; its size in bytes. Nothing is kept, because it may be large."""
    size = 0
    async for block in blocks:
        size += len(block)
    return size


def _of_socket(error: BaseException) -> str:
    """The outcome by error number; of several addresses the last one's error counts."""
    import socket

    cause = getattr(error, "os_error", error)
    if isinstance(cause, socket.gaierror):
        return attempt.DNS
    number = getattr(cause, "errno", None)
    if number in _RESET:
        return attempt.RESET
    if number in (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH):
        return attempt.TIMED_OUT
    if number == errno.ECONNREFUSED:
        return attempt.REFUSED
    return attempt.RESET
