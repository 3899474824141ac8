"""The client as a program: real Redis, real workers, real HTTP."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import EmbeddedServer, Queues, connect
from tests.conftest import call, call_here, check_books, eventually, need, program


class Service:
    """A client process and its address."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log
        self.address = eventually(self._address_logged)

    def _address_logged(self) -> str:
        text = self._log.read_text()
        assert self.process.poll() is None, text
        match = re.search(r"http://(\S+?)/\n", text)
        return match.group(1) if match else ""

    def get(self, path: str, **headers: str) -> str:
        """The body; raises HTTPError on a refusal."""
        request = urllib.request.Request(f"http://{self.address}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return str(answer.read().decode())

    def status(self, path: str, **headers: str) -> int:
        """The status."""
        try:
            self.get(path, **headers)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        return 200

    def raw(self, data: bytes) -> bytes:
        """What comes back for these bytes."""
        host, port = self.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=120) as peer:
            peer.sendall(data)
            answer = b""
            while chunk := peer.recv(65536):
                answer += chunk
        return answer

    def stats(self) -> dict[str, Any]:
        """The statistics."""
        stats: dict[str, Any] = json.loads(self.get("/api/v1/stats"))
        return stats


Start = Callable[..., Service]

# A client that notices sooner than others that Redis does not answer.
IMPATIENT = """
import sys
from scaletest.broker import client as broker
from scaletest.cli import client, main
broker.HEARTBEAT_S, broker.SILENT_S, client.REDIS_TIMEOUT_S = 0.5, 2.5, 2.0
main.main(sys.argv[1:])
"""


@pytest.fixture
def serve(url: str, queues: Queues, tmp_path: Path) -> Iterator[Start]:
    """Start clients; they are gone after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def run(
        *arguments: str,
        redis_url: str = url,
        env: dict[str, str] | None = None,
        impatient: bool = False,
    ) -> Service:
        log = tmp_path / f"client-{len(started)}.log"
        begin = [sys.executable, "-c", IMPATIENT] if impatient else program()
        line = [
            *begin,
            "client",
            "--queue",
            "q",
            "--listen",
            "127.0.0.1:0",
            "--redis-url",
            redis_url,
            *arguments,
        ]
        with log.open("wb") as target:
            process = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=target,
                env={**os.environ, **(env or {})},
            )
        started.append(process)
        return Service(process, log)

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_client_loads_a_queue_takes_orders_and_prints_a_summary(
    serve: Start, start: Any, redis: Any
) -> None:
    start()
    service = serve("--parallel", "2", "--format", "json", "--", "0.01")
    eventually(lambda: service.stats()["succeeded"] > 5)
    assert service.get("/parallel?type=plain&value=7") == "7\n"
    eventually(lambda: service.stats()["in_flight"] == 7)
    assert service.get("/fails?type=plain") == "0\n"
    assert float(service.get("/reqs-per-sec?type=plain")) > 0
    assert "node" in service.get("/nodes").lower()
    records = [json.loads(line) for line in service.get("/api/v1/records").splitlines()]
    assert {record["outcome"] for record in records} == {"succeeded"}
    # SIGTERM: nothing more is submitted, what is in flight is answered
    service.process.send_signal(signal.SIGTERM)
    out, _ = service.process.communicate(timeout=60)
    assert service.process.returncode == 0
    summary = json.loads(out)
    assert (summary["in_flight"], summary["failed"], summary["parallel"]) == (0, 0, 0)
    check_books(Queues(redis), waiting=0, running=0, succeeded=summary["succeeded"])


def test_a_second_signal_ends_the_client_at_once(serve: Start) -> None:
    # given a request that nobody serves
    service = serve("--parallel", "1", "--grace", "60")
    eventually(lambda: service.stats()["in_flight"] == 1)
    service.process.send_signal(signal.SIGINT)
    eventually(lambda: service.stats()["parallel"] == 0)
    service.process.send_signal(signal.SIGTERM)
    service.process.communicate(timeout=60)
    assert service.process.returncode == 143


def test_malformed_http_requests_are_refused_and_counted(serve: Start) -> None:
    service = serve("--parallel", "0")
    before = service.stats()["http_rejected"]
    wrong = [
        (b"GET /%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % (b"a" * 3000), b"414"),
        (b"GET /%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % (b"a" * 20000), b"431"),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: %s\r\n\r\n" % (b"a" * 20000),
            b"431",
        ),
        (
            (
                b"POST /reset HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length:"
                b" 9999999\r\n\r\nabc"
            ),
            b"413",
        ),
        (
            b"POST /reset HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
            b"400",
        ),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"GET /stats HTTP/1.1\r\nHost x\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"400"),
        (
            (
                b"POST /reset HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding:"
                b" chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            ),
            b"400",
        ),
    ]
    for data, status in wrong:
        answer = service.raw(data)
        assert answer.split()[1] == status, (data[:80], answer[:200])
        assert b"default-src 'none'" in answer
    stats = service.stats()
    assert stats["http_rejected"] - before == len(wrong)
    assert stats["generation"] == 0


def test_the_http_calls_of_a_validation_script_are_answered(
    serve: Start, start: Any, redis: Any
) -> None:
    """As curl sends them: parallel 0, scale, reset, parallel N, wait, throughput and failures,
    nodes at the end.
    """
    need("curl")
    service = serve("--parallel", "0", "--max-parallel", "4", "--", "0.1")

    def curl(path: str) -> str:
        line = ["curl", "--no-progress-meter", f"{service.address}{path}"]
        return subprocess.run(line, capture_output=True, text=True, timeout=60, check=True).stdout

    for count in (1, 2, 4):
        assert curl("/parallel?type=plain&value=0") == "0\n"
        eventually(lambda: service.stats()["in_flight"] == 0)
        for _ in range(count - count // 2):
            start()
        assert curl("/reset?type=plain") == "Reseted\n"
        assert curl(f"/parallel?type=plain&value={count}") == f"{count}\n"
        # as many at work as workers, and a number that lies between what is known before and after
        # it was asked for
        eventually(lambda count=count: Queues(redis).state("q").running == count)
        eventually(lambda count=count: service.stats()["succeeded"] >= 5 * count)
        before, shown, after = (
            service.stats(),
            float(curl("/reqs-per-sec?type=plain")),
            service.stats(),
        )
        assert before["succeeded"] / after["elapsed_s"] - 0.01 <= shown
        assert shown <= after["succeeded"] / before["elapsed_s"] + 0.01
        assert curl("/fails?type=plain") == "0\n"
        assert f"Sending {count} requests in parallel." in curl("/stats?type=plain")
    assert "Success replies:" in curl("/nodes")
    # what the script takes for an error: more than the maximum is not echoed as asked
    assert curl("/parallel?type=plain&value=8") == "4\n"
    assert json.loads(curl("/parallel?type=json&value=2")) == {
        "result": 2,
        "info": "requests in parallel",
    }


def test_a_batch_ends_with_a_summary_when_all_requests_are_answered(start: Any, url: str) -> None:
    start()
    line = ("client", "--queue", "q", "--redis-url", url, "--listen", "none")
    done = call(*line, "--batch", "300", "--format", "json", "--", "0")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["succeeded"], summary["in_flight"], summary["load"]) == (300, 0, "batch of 300")
    # failed requests are exit code 5, and the table shows why
    failed = call(*line, "--batch", "20", "--time-limit", "0.01", "--", "5")
    assert failed.returncode == 5
    assert "20 failed and 0 successful" in failed.stdout


# of Poisson arrivals: five standard deviations, so that chance fails it once in a million runs
@pytest.mark.parametrize(("option", "rate", "spread"), [("--rate", 50, 0), ("--poisson", 400, 100)])
def test_open_load_submits_at_the_requested_rate(
    start: Any, url: str, option: str, rate: int, spread: int
) -> None:
    start()
    line = (
        "client",
        "--queue",
        "q",
        "--redis-url",
        url,
        "--listen",
        "none",
        "--format",
        "json",
        option,
        str(rate),
        "--duration",
        "1",
        "--",
        "0",
    )
    done = call(*line)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    # what this process was too late to submit before the end was due all the same
    late = re.search(r"(\d+) requests were due and never submitted", done.stderr)
    due = summary["succeeded"] + int(late.group(1) if late else 0)
    assert abs(due - rate) <= spread and summary["failed"] == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--queue", "typo"), "not declared"),
        (("--parallel", "5", "--max-parallel", "2"), "more than the maximum"),
        (("--rate", "5", "--batch", "2"), "exclude each other"),
        (("--rate", "5", "--parallel", "2"), "closed load"),
        (("--rate", "-5"), "invalid rate '-5'"),
        (("--parallel", "-1"), "parallel is -1"),
        (("--listen", "nowhere"), "not an address"),
        (("--listen", "127.0.0.1:99999"), "not an address"),
        (("--listen", "192.0.2.1:9996"), "cannot listen"),
        (("--prefix", "a b", "--listen", "127.0.0.1:0"), "the prefix is"),
    ],
)
def test_wrong_options_of_the_client_are_refused_at_once(
    url: str, queues: Queues, options: tuple[str, ...], text: str
) -> None:
    done = call_here("client", "--queue", "q", "--redis-url", url, *options)
    assert (done.returncode, done.stdout.startswith("Traceback")) == (2, False), done.stderr
    assert text in done.stderr


def test_a_port_in_use_ends_the_client_before_anything_is_submitted(
    url: str, queues: Queues
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = call("client", "--queue", "q", "--redis-url", url, "--rate", "5000",
                    "--listen", f"127.0.0.1:{taken.getsockname()[1]}")  # fmt: skip
    assert done.returncode == 2
    assert queues.state("q").counters.get("submitted", 0) == 0


def test_the_page_answers_while_redis_does_not(serve: Start) -> None:
    # given a Redis that hangs
    with EmbeddedServer(tcp=True) as server:
        Queues(connect(server.url)).add("q")
        service = serve("--parallel", "1", redis_url=server.url, impatient=True)
        eventually(lambda: service.stats()["in_flight"] == 1)
        eventually(lambda: service.status("/readyz") == 200)
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            assert service.get("/parallel?type=plain&value=3") == "3\n"
            assert service.get("/reset?type=plain") == "Reseted\n"
            assert "Queue" in service.get("/")
            assert service.status("/healthz") == 200
            eventually(lambda: service.status("/readyz") == 503)
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        eventually(lambda: service.status("/readyz") == 200)
        eventually(lambda: service.stats()["in_flight"] == 3)
        service.process.kill()
        service.process.wait()


@pytest.mark.parametrize("stopped", [signal.SIGSTOP, signal.SIGKILL])
def test_the_client_ends_with_its_summary_while_redis_does_not_answer(
    serve: Start, stopped: signal.Signals
) -> None:
    # given requests in flight when Redis hangs, or dies
    with EmbeddedServer(tcp=True) as server:
        Queues(connect(server.url)).add("q")
        service = serve(
            "--parallel",
            "3",
            "--grace",
            "1",
            "--format",
            "json",
            redis_url=server.url,
            impatient=True,
        )
        eventually(lambda: service.stats()["in_flight"] == 3)
        os.kill(server.process.pid, stopped)
        try:
            eventually(lambda: service.status("/readyz") == 503)
            service.process.send_signal(signal.SIGTERM)
            out, _ = service.process.communicate(timeout=60)
        finally:
            if stopped is signal.SIGSTOP:
                os.kill(server.process.pid, signal.SIGCONT)
    assert service.process.returncode == 0
    assert json.loads(out)["in_flight"] == 3


@pytest.mark.usefixtures("queues")
def test_the_summary_counts_requests_that_were_not_answered_or_not_submitted(url: str) -> None:
    # given nobody who serves the queue
    load = ("--rate", "100", "--max-parallel", "5", "--duration", "1", "--grace", "0.1")
    done = call("client", "--queue", "q", "--redis-url", url, "--listen", "none", *load)
    assert "no worker serves queue q now" in done.stderr
    assert "5 requests had no reply" in done.stderr
    assert "95 requests were due and never submitted" in done.stderr
    assert done.returncode == 5


def test_the_token_is_read_from_the_environment_and_never_shown(serve: Start) -> None:
    service = serve("--parallel", "0", env={"SCALETEST_CLIENT_TOKEN": "s3cret"})
    assert service.status("/reset") == 401
    assert service.get("/reset?type=plain", Authorization="Bearer s3cret") == "Reseted\n"
    assert b"s3cret" not in Path(f"/proc/{service.process.pid}/cmdline").read_bytes()
