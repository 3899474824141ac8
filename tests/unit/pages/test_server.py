"""The HTTP server on a socket: addresses, and bytes of any kind. Times of services in headers."""

import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.client_page.app import make_app
from scaletest.load import ClosedLoop, Statistics, Steering
from scaletest.load.http_call import server_time
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.pages.security import HttpCounts
from scaletest.pages.server import Server, parse_address
from tests.conftest import eventually
from tests.unit.fakes import FakeClient

PIECES = [
    b"GET ",
    b"POST ",
    b"/",
    b"/stats",
    b"/parallel?value=3",
    b" HTTP/1.1",
    b"\r\n",
    b"\r\n\r\n",
    b"Host: x",
    b": ",
    b"Content-Length: 5",
    b"Transfer-Encoding: chunked",
    b"\xff\xfe",
    b"\0",
    b"%00",
    b"%ff",
    b"?",
    b"a" * 3000,
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    client: Any = FakeClient()
    statistics = Statistics("q")
    loop = ClosedLoop(client, "q", statistics.add)
    counts = HttpCounts()
    app = make_app(Steering(loop, statistics, load="closed", maximum=4), counts)
    http_server = Server(app, "127.0.0.1:0", refused=counts.count)
    yield http_server
    http_server.close()
    loop.close()


def ask(server: Server, data: bytes, *, whole: bool = False) -> bytes:
    """What comes back until the connection is closed, perhaps nothing; unless the request is
    `whole` the server is told that no more comes.
    """
    answer = b""
    with socket.create_connection((server.host, int(server.port)), timeout=60) as peer:
        peer.sendall(data)
        if not whole:
            peer.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            while chunk := peer.recv(65536):
                answer += chunk
    return answer


@settings(max_examples=150)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=10), max_size=12).map(b"".join))
def test_no_bytes_make_a_500_or_stop_the_server(server: Server, data: bytes) -> None:
    answer = ask(server, data)
    assert not answer.startswith((b"HTTP/1.1 5", b"HTTP/1.0 5")) or answer[9:12] == b"501"
    assert ask(server, b"GET /fails?type=plain HTTP/1.0\r\n\r\n", whole=True).endswith(
        b"\r\n\r\n0\n"
    )


def test_a_body_of_unknown_length_is_refused_and_ends_the_connection(server: Server) -> None:
    for length in (b"", b"Content-Length: 4\r\n"):
        head = (
            b"POST /parallel?value=1 HTTP/1.1\r\nHost: localhost\r\n"
            + length
            + b"Transfer-Encoding: chunked\r\n\r\n"
        )
        answer = ask(
            server,
            head + b"0\r\n\r\nGET /fails?type=plain HTTP/1.1\r\nHost: localhost\r\n\r\n",
            whole=True,
        )
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1") == 1


def test_a_server_is_closed_while_a_reply_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(lambda *_: [], "127.0.0.1:0")
    trigger = server._server.trigger
    pull = trigger._physical_pull

    def pull_late() -> None:
        # given a reply that wakes the server's thread before whoever closes it does
        pull()
        eventually(lambda: not trigger.thunks)
        pull()

    monkeypatch.setattr(trigger, "_physical_pull", pull_late)
    server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((server.host, int(server.port)))


def test_a_peer_that_does_not_read_is_dropped_and_its_thread_set_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = threading.Event()

    def app(_: Any, start: Any) -> Iterator[bytes]:
        start("200 OK", [])
        try:
            while True:
                yield b"x" * 100_000
        finally:
            ended.set()

    monkeypatch.setattr("scaletest.pages.server.IDLE_S", 1)
    server = Server(app, "127.0.0.1:0")
    with socket.create_connection((server.host, int(server.port)), timeout=60) as peer:
        peer.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert ended.wait(120)
    server.close()


def healthy(_: Any, start: Any) -> list[bytes]:
    start("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def test_slow_connections_keep_nobody_from_an_answer() -> None:
    server = Server(healthy, "127.0.0.1:0")
    with ExitStack() as stack:
        for _ in range(250):
            peer = socket.create_connection((server.host, int(server.port)), timeout=60)
            stack.enter_context(peer)
            peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
        assert ask(server, b"GET / HTTP/1.0\r\n\r\n", whole=True).endswith(b"ok")
    server.close()


def test_a_large_body_is_refused_before_it_comes() -> None:
    called, refused = threading.Event(), []
    server = Server(
        lambda *_: called.set(), "127.0.0.1:0", headers={"X-Ours": "yes"}, refused=refused.append
    )
    answer = ask(
        server, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n", whole=True
    )
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"X-Ours: yes" in answer
    assert refused == [413]
    assert not called.is_set()
    server.close()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:1", ("127.0.0.1", 1)),
        ("[::1]:0", ("::1", 0)),
        (":9996", ("0.0.0.0", 9996)),
        ("host:65535", ("host", 65535)),
    ],
)
def test_listen_addresses_are_parsed(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "9996",
        "host",
        "host:",
        "host:x",
        "host:-1",
        "host:65536",
        "host:" + "9" * 5000,
        "host:\u0663",
        "::1:80",
    ],
)
def test_invalid_listen_addresses_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_address(text)


def test_a_taken_port_is_a_usage_error(server: Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="cannot listen on"):
            Server(lambda *_: [], f"127.0.0.1:{taken.getsockname()[1]}")


def test_an_invalid_host_name_to_listen_on_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="cannot listen on"):
        Server(lambda *_: [], f"{'a' * 70}:80")


def test_the_server_listens_on_ipv6_where_the_machine_has_it() -> None:
    try:
        server = Server(healthy, "[::1]:0")
    except UsageError as error:
        pytest.skip(str(error))
    with urllib.request.urlopen(server.url, timeout=60) as answer:
        assert answer.read() == b"ok"
    server.close()


@given(st.text(max_size=40))
def test_any_header_is_a_time_or_none(text: str) -> None:
    value = server_time(text)
    assert value is None or 0 <= value < 1e9


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0.012", 0.012),
        ("12", 0.012),
        ("12ms", 0.012),
        ("0.5s", 0.5),
        ("800us", 0.0008),
        ("app;dur=12.5, db", 0.0125),
    ],
)
def test_times_of_services_are_understood(text: str, seconds: float) -> None:
    assert server_time(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["0" * 100_000 + "x", "1." + "0" * 100_000, "dur=" + "9" * 100_000]
)
def test_a_number_that_is_too_long_is_none_at_once(text: str) -> None:
    assert server_time(text) is None
