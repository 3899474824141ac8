"""A client elsewhere as the load: what it is asked, whose records are whose, what is said when it
does not answer.
"""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from kubernetes.client import ApiClient, Configuration

from scaletest.cluster.api_calls import Cluster
from scaletest.cluster.client_access import Direct, ServiceProxy
from scaletest.model import NodeSample, Outcome, Record, Reply
from scaletest.model.errors import InvalidValue, ScaletestError, Unreachable, UsageError
from scaletest.validation.measure.remote import LOOK_S, PATIENCE_S, RemoteLoad, RemoteSamples
from tests.unit.fakes import Clock

Answer = tuple[int, bytes, dict[str, str]]


class FakeHttp:
    """A client's HTTP. Its records are those that the test puts there; `answers` are given before
    its own.
    """

    name = "svc/fake:9996"

    def __init__(self, **stats: Any) -> None:
        self.stats: dict[str, Any] = {
            "queue": "q",
            "load": "closed",
            "parallel": 3,
            "max_parallel": 8,
            "in_flight": 0,
            "record_seq": 0,
        }
        self.stats |= stats
        self.kept: list[Record] = []
        self.first = 1
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.answers: list[Answer | Exception] = []

    def get(self, path: str, **query: str) -> Answer:
        self.asked.append((path, query))
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        if path == "/parallel":
            self.stats["parallel"] = int(query["value"])
            return 200, json.dumps({"result": self.stats["parallel"]}).encode(), {}
        if path == "/api/v1/stats":
            return 200, json.dumps(self.stats).encode(), {}
        since = max(int(query["since"]), self.first - 1)
        lines = [record.to_json() for record in self.kept[since - self.first + 1 :]]
        return 200, "\n".join(lines).encode(), {"scaletest-first-seq": str(since + 1)}

    def orders(self) -> list[str]:
        return [query["value"] for path, query in self.asked if path == "/parallel"]


def record(name: str) -> Record:
    return Record("q", 0, Reply(name, Outcome.SUCCEEDED, wait_s=0.1, run_s=0.5), 0.7)


def load_of(http: FakeHttp, clock: Clock | None = None) -> tuple[RemoteLoad, list[Record]]:
    records: list[Record] = []
    clock = clock or Clock()
    return RemoteLoad(http, records.append, clock=clock, sleep=clock.sleep), records


def test_records_belong_to_the_step_in_which_they_are_fetched_and_come_once() -> None:
    # given a client that has run before
    http = FakeHttp(record_seq=2)
    http.kept = [record("old-1"), record("old-2")]
    clock = Clock()
    load, records = load_of(http, clock)
    # when two steps are measured
    load.set_parallel(2, step=2, repeat=1)
    http.kept += [record("a"), record("b")]
    clock.now += LOOK_S
    load.check()
    http.kept.append(record("c"))
    assert load.wait_idle(1.0)
    load.set_parallel(4, step=4)
    http.kept.append(record("d"))
    assert load.wait_idle(1.0)
    # expect each record in its step, and none of before
    assert [(fetched.reply.id, fetched.step, fetched.repeat) for fetched in records] == [
        ("a", 2, 1),
        ("b", 2, 1),
        ("c", 2, 1),
        ("d", 4, 0),
    ]


def test_the_client_is_polled_at_a_limited_rate() -> None:
    http, clock = FakeHttp(), Clock()
    load, _ = load_of(http, clock)
    clock.now += LOOK_S
    for _ in range(5):
        load.check()
    assert [path for path, _ in http.asked].count("/api/v1/records") == 1


def test_close_restores_the_load_once_and_only_if_it_was_changed() -> None:
    http = FakeHttp(parallel=3)
    load_of(http)[0].close()
    assert http.orders() == []
    load, _ = load_of(http)
    load.set_parallel(0)
    load.close()
    load.close()
    assert http.orders() == ["0", "3"]


def test_close_reports_a_load_that_it_could_not_restore(caplog: pytest.LogCaptureFixture) -> None:
    http = FakeHttp()
    load, _ = load_of(http)
    load.set_parallel(5)
    http.answers = [(401, b'{"info": "token"}', {})]
    load.close()
    assert "may still load its queue" in caplog.text


def test_dropped_records_are_an_error_that_counts_them() -> None:
    http = FakeHttp()
    load, _ = load_of(http)
    load.set_parallel(1, step=1)
    http.first, http.kept = 6, [record("late")]
    with pytest.raises(ScaletestError, match="dropped 5 records") as error:
        load.wait_idle(1.0)
    assert "<keep_records>" in error.value.hint


@pytest.mark.parametrize(
    ("stats", "limit", "problem"),
    [({"load": "10 requests/s"}, 1, "follows a schedule"), ({}, 9, "at most 8 requests")],
)
def test_a_client_that_cannot_keep_the_load_is_refused(
    stats: dict[str, Any], limit: int, problem: str
) -> None:
    load, _ = load_of(FakeHttp(**stats))
    with pytest.raises(UsageError, match=problem):
        load.check_limit(limit)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"queue": "q"}', b"\xff"])
def test_a_url_with_another_server_is_reported(body: bytes) -> None:
    http = FakeHttp()
    http.answers = [(200, body, {})]
    with pytest.raises(InvalidValue, match="does not answer as a scaletest client"):
        load_of(http)


def test_requests_that_do_not_end_are_not_waited_for_longer() -> None:
    clock = Clock()
    load, _ = load_of(FakeHttp(in_flight=1), clock)
    assert load.wait_idle(5.0) is False
    assert 5.0 < clock.now < 6.0


@pytest.mark.parametrize("trouble", [Unreachable("away"), (502, b"no", {}), (503, b"", {})])
def test_a_proxy_that_is_away_for_a_while_is_asked_again(trouble: Answer | Exception) -> None:
    http, clock = FakeHttp(), Clock()
    http.answers = [trouble] * 5
    load, _ = load_of(http, clock)
    assert load.queue == "q"
    assert clock.now == 5 * LOOK_S


def test_a_proxy_that_stays_away_ends_it() -> None:
    http, clock = FakeHttp(), Clock()
    http.answers = [Unreachable("away")] * 1000
    with pytest.raises(Unreachable, match="away"):
        load_of(http, clock)
    assert PATIENCE_S < clock.now < PATIENCE_S + 1


@pytest.mark.parametrize(
    ("status", "kind", "hint"),
    [
        (401, Unreachable, "SCALETEST_CLIENT_TOKEN"),
        (403, Unreachable, "services/proxy"),
        (404, UsageError, "name of"),
    ],
)
def test_refusals_say_what_to_do_at_once(
    status: int, kind: type[ScaletestError], hint: str
) -> None:
    http, clock = FakeHttp(), Clock()
    http.answers = [(status, b'{"message": "because"}', {})]
    with pytest.raises(kind, match=f"answered {status}: because") as error:
        load_of(http, clock)
    assert hint in error.value.hint
    assert clock.now == 0


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, dict[str, str]]]]]:
    """An HTTP server on loopback that keeps what it was asked."""
    asked: list[tuple[str, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.send_header("Scaletest-First-Seq", "7")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *arguments: Any) -> None: ...

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_address[1]}", asked
    running.shutdown()
    thread.join()
    running.server_close()


def proxied(url: str, token: str) -> ServiceProxy:
    settings = Configuration(host=url, api_key={"authorization": "Bearer of-the-cluster"})
    return ServiceProxy(Cluster(ApiClient(settings), "bench"), "sleep-client", "9996", token)


@pytest.mark.parametrize(
    ("way", "path", "authorization"),
    [
        (Direct, "/parallel?value=4", None),
        (
            proxied,
            "/api/v1/namespaces/bench/services/sleep-client:9996/proxy/parallel?value=4",
            "Bearer of-the-cluster",
        ),
    ],
)
@pytest.mark.parametrize("token", ["", "secret"])
def test_the_clients_token_has_a_header_of_its_own(
    server: tuple[str, list[tuple[str, dict[str, str]]]],
    way: Callable[[str, str], Any],
    path: str,
    authorization: str | None,
    token: str,
) -> None:
    url, asked = server
    status, body, headers = way(url, token).get("/parallel", value="4")
    assert (status, body, headers["scaletest-first-seq"]) == (200, b"ok", "7")
    (got, sent) = asked[0]
    assert got == path
    assert sent.get("scaletest-token") == (token or None)
    assert sent.get("authorization") == authorization


def test_a_url_without_a_server_is_reported(server: tuple[str, Any]) -> None:
    with pytest.raises(Unreachable, match="does not answer"):
        Direct("http://127.0.0.1:1").get("/")


def test_samples_are_read_from_the_first_call_on() -> None:
    http = FakeHttp()
    sample = NodeSample("n", "w", 7.0, 1.0, {"cpu": {"user": 1.5}})
    lines = f"{sample.to_json()}\n".encode()
    http.answers = [
        (200, b"", {"scaletest-samples-position": "5-0"}),
        (200, lines * 2, {"scaletest-samples-position": "7-1"}),
        (200, b"", {"scaletest-samples-position": "7-1"}),
        Unreachable("away"),
        (502, b"", {}),
    ]
    samples = RemoteSamples(http)
    assert samples.read() == []
    assert samples.read() == [sample, sample]
    assert samples.read() == []
    for _ in range(2):
        with pytest.raises(Unreachable):
            samples.read()
    positions = [query.get("since") for _, query in http.asked]
    assert positions == [None, "5-0", "7-1", "7-1", "7-1"]
