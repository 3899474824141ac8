"""Serve metrics of this machine's simulated devices over HTTP: one page, read for every scrape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from scaletest.kinds.fakedev import VENDORS, exposition
from scaletest.model.errors import UsageError
from workers.workloads.fakedev import all_uses, folder


def server(host: str, port: int, vendors: Sequence[str] = ()) -> ThreadingHTTPServer:
    """Bind a server that does not serve yet. Raises UsageError when it cannot listen there."""

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
            """Log nothing: scrapes come every few seconds."""

    try:
        return ThreadingHTTPServer((host, port), Page)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error}", hint="choose another --port"
        ) from error


def serve(host: str, port: int, vendors: Sequence[str], ready: Callable[[str], None]) -> None:
    """Serve until interrupted. ready: called with the address."""
    with server(host, port, vendors) as http_server:
        ready(f"{host}:{http_server.server_address[1]}")
        try:
            http_server.serve_forever()
        except KeyboardInterrupt:
            pass
