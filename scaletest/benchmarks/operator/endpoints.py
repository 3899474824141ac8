"""HTTP endpoints of the operator, for both address families: a cluster may have IPv6 only."""

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

from aiohttp import web
from prometheus_client import CollectorRegistry, make_wsgi_app

from scaletest.pages.server import Server


@contextlib.contextmanager
def serve_metrics(port: int, registry: CollectorRegistry) -> Iterator[None]:
    """Serve metrics within the context; not at all when the port is 0."""
    if not port:
        yield
        return
    # an IPv6 socket accepts both families; a machine without IPv6 has only the other one
    host = "[::]" if socket.has_dualstack_ipv6() else "0.0.0.0"
    server = Server(make_wsgi_app(registry), f"{host}:{port}")
    try:
        yield
    finally:
        server.close()


@contextlib.asynccontextmanager
async def serve_health(port: int) -> AsyncIterator[None]:
    """Answer /healthz while this event loop runs; not at all when the port is 0.

    kopf has such an endpoint, but it listens on a single address.
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
        # without a host aiohttp opens one socket for each address family
        await web.TCPSite(runner, None, port).start()
        yield
    finally:
        await runner.cleanup()
