"""Metrics of this machine's simulated devices over HTTP: one page, read anew for every scrape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from scaletest.kinds.fakedev import VENDORS, exposition
from scaletest.model.errors import UsageError
from workers.workloads.fakedev import all_uses, folder


def server(host: str, port: int, vendors: Sequence[str] = ()) -> ThreadingHTTPServer:
    """A server that is bound and not yet serving. Raises UsageError when it cannot listen there."""

    class Page(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            if self.path.split("?")[0] != "/metrics":
                self.send_error(404)
                return
            body = exposition(all_uses(folder()), vendors or VENDORS).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """A scrape every few seconds is nothing to tell."""

    try:
        return ThreadingHTTPServer((host, port), Page)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error}", hint="choose another --port") from error


def serve(host: str, port: int, vendors: Sequence[str], ready: Callable[[str], None]) -> None:
    """Serve until interrupted. `ready` is told the address."""
    with server(host, port, vendors) as made:
        ready(f"{host}:{made.server_address[1]}")
        try:
            made.serve_forever()
        except KeyboardInterrupt:
            pass
