"""What the operator answers over HTTP, on all addresses of both families: a cluster may have IPv6 alone."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

from aiohttp import web
from prometheus_client import CollectorRegistry, make_wsgi_app

from scaletest.http.server import Server


@contextlib.contextmanager
def metrics(port: int, registry: CollectorRegistry) -> Iterator[None]:
    """Serve metrics meanwhile; nowhere when the port is 0."""
    if not port:
        yield
        return
    # a socket of IPv6 hears both families; a machine without it has but one
    host = "[::]" if socket.has_dualstack_ipv6() else "0.0.0.0"
    server = Server(make_wsgi_app(registry), f"{host}:{port}")
    try:
        yield
    finally:
        server.close()


@contextlib.asynccontextmanager
async def health(port: int) -> AsyncIterator[None]:
    """Answer /healthz for as long as this loop turns; nowhere when the port is 0.

    kopf's own endpoint has a single address.
    """
    if not port:
        yield
        return

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/healthz", answer)
    runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, None, port).start()  # no host: one socket a family
        yield
    finally:
        await runner.cleanup()
