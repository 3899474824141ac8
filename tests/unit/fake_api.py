"""An API server that says what a test tells it to: pages, watches cut short, refusals. On
loopback.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from scaletest.cluster.api_calls import Cluster

# method, path, query, body -> status, headers, and a body or the pieces of one
Answer = tuple[int, dict[str, str], Any]
Act = Callable[[str, str, dict[str, str], bytes], Answer]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: two would wait 40 ms for each other
    server: Any

    def _act(self) -> None:
        at = urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        self.server.asked.append((self.command, self.path))
        status, headers, answer_body = self.server.act(
            self.command, at.path, dict(parse_qsl(at.query)), body
        )
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if isinstance(answer_body, Iterator):
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            for piece in answer_body:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            return
        is_text = isinstance(answer_body, bytes)
        data = answer_body if is_text else json.dumps(answer_body).encode()
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_DELETE = _act  # noqa: N815

    def log_message(self, format: str, *arguments: Any) -> None:
        """Be quiet."""


@contextmanager
def api(act: Act) -> Iterator[tuple[Cluster, list[tuple[str, str]]]]:
    """A cluster whose API server answers as `act` says, and what it was asked."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.act, server.asked = act, []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    settings = SimpleNamespace(
        host=f"http://127.0.0.1:{server.server_port}",
        ssl_ca_cert="",
        cert_file="",
        key_file="",
        verify_ssl=True,
        auth_settings=dict,
    )
    try:
        yield (
            Cluster(SimpleNamespace(configuration=settings, default_headers={}), "n"),
            server.asked,
        )
    finally:
        server.shutdown()
        server.server_close()


def page(rows: list[dict[str, Any]], version: str = "10", token: str = "") -> Answer:
    """One page of a list."""
    return 200, {}, {"metadata": {"resourceVersion": version, "continue": token}, "items": rows}


def thing(name: str, version: str = "1", **more: Any) -> dict[str, Any]:
    """An object."""
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": version}, **more}


def event(kind: str, row: dict[str, Any]) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": row}).encode() + b"\n"


def status(code: int, message: str) -> dict[str, Any]:
    """A Status object."""
    return {"kind": "Status", "code": code, "message": message}
