"""scaletest.Client with real workers: its guide's files, RQ beside it, and a Redis that dies."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rq.job import Job
from rq.serializers import JSONSerializer

import scaletest
from scaletest.broker import EmbeddedServer, Queues, connect
from tests.conftest import Gate, check_books, eventually
from tests.integration.conftest import workers

ROOT = Path(__file__).parents[3]
GUIDES = [ROOT / "docs" / "how-to" / name for name in ("python.md", "rq.md")]
# Complete files that submit requests.
FILES = [
    text
    for guide in GUIDES
    for text in re.findall(r"^```python\n(.*?)^```", guide.read_text("utf-8"), re.M | re.DOTALL)
    if "scaletest.Client(" in text
]
ITEMS = 20_000

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def naps(redis: Any) -> str:
    """The queue of the guide's files."""
    Queues(redis).add("naps")
    return "naps"


def test_the_guides_files_run(url: str, start: Start, naps: str, tmp_path: Path) -> None:
    start("--allow-function", "math", queue=naps)
    texts = [
        run_file(tmp_path / f"file_{number}.py", text, url) for number, text in enumerate(FILES)
    ]
    assert len(texts) == 2
    assert texts[0].splitlines()[0].startswith("succeeded after 0.2")
    assert texts[0].splitlines()[-2:] == ["200 requests, 0 failed", "kept: succeeded"]
    assert texts[1].splitlines() == [
        "by RQ, read by scaletest: succeeded",
        "by scaletest, read by RQ: succeeded",
        "another function, by --allow-function: 4.0",
    ]


def run_file(path: Path, text: str, url: str) -> str:
    """Run a program of the guide; what it printed."""
    path.write_text(text)
    environment = {**os.environ, "SCALETEST_REDIS_URL": url, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, path], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_guides_files_are_typed(tmp_path: Path) -> None:
    paths = [tmp_path / f"file_{number}.py" for number in range(len(FILES))]
    for path, text in zip(paths, FILES, strict=True):
        path.write_text(text)
    line = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *map(str, paths)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_request_that_is_kept_outlives_its_client(url: str, redis: Any, start: Start) -> None:
    with scaletest.Client(url) as client:
        client.declare("q", maximum=2, note="for a test")
        stored = client.submit("q", "0.01", keep=True, result_ttl=60)
        with pytest.raises(scaletest.WaitTimeout, match="queued"):
            client.result(stored)
    state = Queues(redis).state("q")
    assert (state.maximum, state.note, state.waiting) == (2, "for a test", 1)
    start()
    with scaletest.Client(url) as client:
        reply = client.result(stored, timeout=120)
        assert (reply.id, reply.ok) == (stored, True)
        with pytest.raises(scaletest.InvalidValue, match="is not known"):
            client.result("nobody")
    job = Job.fetch(stored, redis, serializer=JSONSerializer)
    assert scaletest.Reply.from_dict(job.return_value()).run_s == reply.run_s


def test_a_reply_has_what_a_function_returned(url: str, start: Start, tmp_path: Path) -> None:
    (tmp_path / "boxes.py").write_text(
        'def boxes(count: int) -> object:\n    return {"count": count, "boxes": [[1, 2]] * count}\n'
    )
    start("--workload", f"{tmp_path}/boxes.py:boxes")
    with scaletest.Client(url) as client:
        reply = client.run("q", 2)
        kept = client.result(client.submit("q", 0, keep=True), timeout=240)
    assert reply.value == {"count": 2, "boxes": [[1, 2], [1, 2]]}
    assert (reply.figures, "value" in reply.to_dict()) == ({"count": 2}, False)
    assert kept.value == {"count": 0, "boxes": []}


def test_limits_failures_and_cancelled_requests(
    url: str, queues: Queues, start: Start, gate: Gate
) -> None:
    start("--ignore-arguments", "--", *gate.command)
    with scaletest.Client(url) as client:
        assert client.run("q", time_limit=0.05).outcome is scaletest.Outcome.TIMED_OUT
        running = client.submit("q")
        eventually(lambda: queues.state("q").running == 1)
        waiting = client.submit("q")
        assert (waiting.cancel(), running.cancel()) == (True, True)
        assert queues.state("q").waiting == 0
        gate.open()
        eventually(lambda: queues.state("q").running == 0)
        with pytest.raises(scaletest.UndeclaredQueue, match="is not declared"):
            client.run("p")


def test_the_end_of_the_program_takes_back_what_waits(url: str, queues: Queues) -> None:
    def interrupt() -> None:
        eventually(lambda: queues.state("q").waiting == 500)
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt), scaletest.Client(url) as client:
        replies = client.map("q", range(500), in_flight=500)
        interrupter.start()
        next(replies)
    interrupter.join()
    check_books(queues, waiting=0)


def test_a_forked_child_leaves_the_parents_client_alone(
    url: str, start: Start, queues: Queues
) -> None:
    start()
    text = """
import os, scaletest
with scaletest.Client() as client:
    future = client.submit("q", 0.3)
    child = os.fork()
    if not child:
        try:
            client.run("q", 0)
        except scaletest.UsageError as error:
            client.close()
            with scaletest.Client() as own:
                os._exit(0 if own.run("q", 0).ok and "after the fork" in error.hint else 2)
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), future.result().ok)
"""
    line = [sys.executable, "-W", "ignore", "-c", text]
    environment = {**os.environ, "SCALETEST_REDIS_URL": url}
    assert subprocess.check_output(line, env=environment, text=True) == "0 True\n"


# -- Redis dies
# --------------------------------------------------------------------------------------------------


@contextmanager
def server_and_worker(folder: Path, *, append_only: bool) -> Iterator[EmbeddedServer]:
    """A server with queue `q` and a worker. append_only: it keeps what it was told."""
    with EmbeddedServer(append_only=append_only, tcp=True) as server:
        Queues(connect(server.url)).add("q")
        with workers(server.url, folder) as launch:
            launch("w", "--heartbeat", "0.5")
            yield server


@pytest.fixture
def own(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server that is killed, which keeps what it was told, and a worker."""
    with server_and_worker(tmp_path, append_only=True) as server:
        yield server


def restart(server: EmbeddedServer) -> None:
    server.process.kill()
    server.process.wait()
    server.start()


def test_each_of_20000_items_gets_one_reply_while_redis_is_killed_twice(
    own: EmbeddedServer,
) -> None:
    ids: list[str] = []
    with scaletest.Client(own.url) as client:
        for reply in client.map("q", ["0"] * ITEMS, in_flight=256):
            assert reply.ok
            ids.append(reply.id)
            if len(ids) in (ITEMS // 4, ITEMS // 2):
                restart(own)
    assert len(ids) == len(set(ids)) == ITEMS
    queues = Queues(connect(own.url))
    eventually(lambda: queues.state("q").running == 0)
    check_books(queues, waiting=0)


def test_map_goes_on_when_a_redis_that_came_back_empty_has_its_queue_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ids: list[str] = []
    with (
        server_and_worker(tmp_path, append_only=False) as server,
        scaletest.Client(server.url) as client,
    ):

        def declare() -> None:
            eventually(lambda: "queue q is no longer declared" in caplog.text)
            Queues(connect(server.url)).add("q")

        declarer = threading.Thread(target=declare)
        for reply in client.map("q", ["0"] * 500, in_flight=48):
            assert reply.ok
            ids.append(reply.id)
            if len(ids) == 100:
                restart(server)
                declarer.start()
        declarer.join()
    assert len(ids) == len(set(ids)) == 500


def test_requests_of_a_redis_that_came_back_empty_end_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scaletest.broker.client.DECLARED_AGAIN_S", 0.5)
    with EmbeddedServer(tcp=True) as server, scaletest.Client(server.url) as client:
        client.declare("q")
        future = client.submit("q")
        restart(server)
        with pytest.raises(scaletest.UndeclaredQueue) as raised:
            future.result(120)
        assert 'client.declare("q")' in raised.value.hint
        client.declare("q")
        assert client.submit("q").cancel()


def test_a_client_whose_redis_is_gone_ends_at_once() -> None:
    with EmbeddedServer(tcp=True) as server:
        patient, impatient = scaletest.Client(server.url), scaletest.Client(server.url, patience=0)
        patient.declare("q")
        waiting, failing = patient.submit("q"), impatient.submit("q")
        server.process.kill()
        server.process.wait()
        with pytest.raises(scaletest.Unreachable, match="Redis is away"):
            failing.result(120)
        with pytest.raises(scaletest.Unreachable):
            impatient.run("q")
        patient.close()
        impatient.close()
        with pytest.raises(scaletest.UsageError, match="closed before the reply came"):
            waiting.result(0)
        with pytest.raises(scaletest.Unreachable, match="cannot be reached") as raised:
            scaletest.Client(server.url)
        assert "start it" in raised.value.hint
