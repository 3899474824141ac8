"""scaletest saturate against real services: over HTTP, on a queue, alone and with agents; and what is kept of it."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from scaletest.archive.queries import QUERIES
from scaletest.archive.saturation import SaturationFolder
from scaletest.archive.sql import SqlSink
from scaletest.load.call import CAUSES, Answer, Call
from scaletest.load.http import HttpLoad
from scaletest.load.order import Order
from scaletest.load.pace import constant
from scaletest.load.payloads import Payloads
from scaletest.load.senders import sender
from scaletest.model.sample import OK
from tests.conftest import call, eventually, program

ROOT = Path(__file__).parents[2]


@contextmanager
def running(*arguments: str) -> Iterator[str]:
    """A service of known capacity; its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hack.service", *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
    finally:
        process.kill()
        process.communicate()


def loaded(made: Call, order: Order) -> Any:
    """What a load brings."""
    load = HttpLoad(made, Payloads([b"{}"]))
    try:
        return load.measure(order, lambda: False, lambda ended, failed: None)
    finally:
        load.close()


def test_exactly_so_many_copies_are_sent_and_connections_used_again() -> None:
    with running("--slots", "4") as url:
        found = loaded(Call(url, "POST", server_header="Server-Time"), Order(1.0, parallel=4, count=100))
        assert [one.outcome for one in found.samples] == [OK] * 100
        assert sorted(one.request for one in found.samples) == list(range(100))
        assert {one.server_s for one in found.samples} == {0.01}
        paced = loaded(Call(url), Order(float("inf"), pace=constant(500), count=50))
        assert len(paced.samples) == 50
        assert [one.due_s for one in sorted(paced.samples)] == pytest.approx([n / 500 for n in range(50)])


def test_what_is_due_beyond_the_connections_waits_and_its_time_runs() -> None:
    # given one connection, a service of 50 ms, and five requests due at once
    with running("--slots", "5", "--seconds", "0.05") as url:
        found = loaded(Call(url, connections=1), Order(float("inf"), pace=iter([0.0] * 5), count=5))
    times = sorted(one.latency_s for one in found.samples)
    assert len(times) == 5 and times[-1] >= 0.25
    # noticed before the first was sent: to wait for a connection is no lateness of the tester
    assert max(one.noticed_s for one in found.samples) <= min(one.sent_s for one in found.samples)


@pytest.mark.parametrize(("status", "outcome"), [("503", "503"), ("502", "502"), ("404", "404"), ("301", "301")])
def test_every_status_is_told_apart(status: str, outcome: str) -> None:
    with running("--fail", status) as url:
        found = loaded(Call(url, retries=2), Order(1.0, parallel=1, count=2))
    assert {one.outcome for one in found.samples} == {outcome}
    # every attempt is on record, the last one final
    assert [(one.request, one.attempt, one.final) for one in found.samples] == [
        (0, 1, False),
        (0, 2, False),
        (0, 3, True),
        (1, 1, False),
        (1, 2, False),
        (1, 3, True),
    ]


def test_refused_reset_and_timed_out_are_told_apart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as quiet, socket.create_server(("127.0.0.1", 0)) as rude:

        def hang_up() -> None:
            # until the socket is shut down
            with suppress(OSError):
                while True:
                    other, _ = rude.accept()
                    other.recv(100)
                    other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    other.close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        with socket.create_server(("127.0.0.1", 0)) as gone:
            port = gone.getsockname()[1]
        once = Order(1.0, parallel=1, count=1)
        cases = {"refused": port, "timed out": quiet.getsockname()[1], "reset": rude.getsockname()[1]}
        for outcome, at in cases.items():
            found = loaded(Call(f"http://127.0.0.1:{at}/", timeout_s=0.5 if outcome == "timed out" else 60), once)
            assert [one.outcome for one in found.samples] == [outcome]
            assert outcome in CAUSES
        rude.shutdown(socket.SHUT_RDWR)
        thread.join()


BLOCK, BLOCKS = b"x" * 2**20, 64


def endless_answer(listening: socket.socket) -> None:
    """Answers a request with BLOCKS blocks."""
    peer, _ = listening.accept()
    with peer:
        while b"\r\n\r\n" not in peer.recv(65536):
            pass
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(BLOCK) * BLOCKS))
        for _ in range(BLOCKS):
            peer.sendall(BLOCK)


def peak_of(work: Callable[[], Any]) -> tuple[Any, int]:
    """The result, and the bytes that Python held at most while it was made."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_large_answers_are_counted_and_not_kept() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=endless_answer, args=(listening,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        measured, peak = peak_of(lambda: loaded(Call(url), Order(1.0, parallel=1, count=1)))
        thread.join()
    assert [(sample.outcome, sample.size) for sample in measured.samples] == [(OK, len(BLOCK) * BLOCKS)]
    assert peak < len(BLOCK) * BLOCKS / 4


def test_large_answers_over_http2_are_counted_and_not_kept() -> None:
    import httpx

    class Blocks(httpx.AsyncByteStream):
        async def __aiter__(self) -> Any:
            for _ in range(BLOCKS):
                yield bytes(2**20)

    def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=Blocks(), extensions={"http_version": b"HTTP/2"})

    async def ask() -> Answer:
        asked: Any = sender(Call("http://service/", http2=True))
        await asked.close()
        asked._client = httpx.AsyncClient(transport=httpx.MockTransport(handle))
        try:
            return await asked.send(None)
        finally:
            await asked.close()

    answered, peak = peak_of(lambda: asyncio.run(ask()))
    assert (answered.outcome, answered.size) == (OK, BLOCKS * 2**20)
    assert peak < BLOCKS * 2**20 / 4


def test_a_request_that_cannot_be_made_ends_the_load() -> None:
    # given a method that the library refuses: without an error the step would have no sample, and say that all is well
    with running() as url:
        for order in (Order(1.0, parallel=1, count=1), Order(30.0, parallel=2), Order(30.0, pace=constant(100))):
            with pytest.raises(ValueError, match="GE T"):
                loaded(Call(url, "GE T"), order)


def test_a_search_over_http_ends_in_a_run_with_every_report(tmp_path: Path) -> None:
    # given a service so slow that even a busy machine is faster: 4 slots of 200 ms
    root = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    with running("--slots", "4", "--seconds", "0.2") as url:
        done = call(
            *("saturate", "--url", url, "--load", "closed", "--step-time", "2", "--warm", "1", "--progress", "plain"),
            *("--start", "2", "--maximum", "8", "--confirm", "1", "--precision", "0.1"),
            *("--share", "0.2", "--wanted", "5", "--server-header", "Server-Time", "-o", "json"),
            *("--sql", str(tmp_path / "s.db"), "--original-csv", str(tmp_path / "csv"), "--header", "X-Key: secret"),
            env=root,
        )
    result = json.loads(done.stdout)
    held_or_late(done.returncode, result)
    check_capacity(result)
    folder = SaturationFolder(Path(result["folder"]))
    assert "secret" not in (folder.path / "environment.json").read_text()
    assert sum(one.requests for one in folder.saturation().steps) == len(
        (folder.path / "records.jsonl").read_text().splitlines()
    )
    for form in ("text", "html", "md", "csv", "json", "junit"):
        text = call("report", "LAST", "-t", form, env=root).stdout
        assert "saturat" in text, form
    assert "<script" not in call("report", "LAST", "-t", "html", env=root).stdout
    judged = json.loads(call("report", "LAST", "-t", "json", env=root).stdout)
    assert judged["saturation_per_s"] == result["saturation_per_s"]
    assert judged["verdict"] == result["verdict"]
    assert [one["title"] for one in judged["queries"]] == list(QUERIES)
    assert "closed load on http" in call("runs", "list", env=root).stdout
    check_files(tmp_path, folder)
    sink = SqlSink(str(tmp_path / "s.db"), "again", "me")
    assert {one["title"]: [tuple(row) for row in one["rows"]] for one in judged["queries"]} == {
        title: sink.ask(title) for title in QUERIES
    }
    sink.close()
    sized = call("size", "--run", "LAST", "--replicas", "2", "--rate", "100", "-o", "json", env=root)
    each = result["saturation_per_s"]["value"] / 2
    assert sized.returncode == 0 and json.loads(sized.stdout)["demand"]["per_pod_per_s"] == pytest.approx(each)


def check_capacity(result: dict[str, Any]) -> None:
    """Of what can do 20 requests a second. Who stands still for half a second shifts ten out of a step, or in."""
    assert 12 < result["saturation_per_s"]["value"] < 30, result


def held_or_late(code: int, result: dict[str, Any]) -> None:
    """What was wanted held; nothing else is accepted but a tester that a busy machine made late, three times."""
    verdict = result["verdict"]
    late = verdict["reason"].startswith("the tester was ")
    assert (code, verdict["kind"]) == ((4, "INVALID") if late else (0, "PASS")), verdict


def check_files(tmp_path: Path, folder: SaturationFolder) -> None:
    """The three files of the original tool, and the database."""
    stored = folder.saturation()
    texts = {name: (tmp_path / "csv" / f"{name}.csv").read_text() for name in ("history", "timing", "scaling")}
    files = {name: list(csv.reader(text.splitlines())) for name, text in texts.items()}
    assert files["history"][0][:4] == ["TestNo", "TestCountTotal", "ThreadCount", "Records"]
    assert len(files["history"]) == 1 + len(stored.steps)
    assert files["timing"][0] == [
        "Time",
        "Record",
        "PayloadSize",
        "Success",
        "Attempts",
        "Response",
        "TotalTime",
        "AiTime",
    ]
    assert len(files["timing"]) == 1 + sum(one.requests for one in stored.steps)
    assert files["scaling"][0] == ["Time", "Scale"]
    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        (count,) = database.execute("SELECT COUNT(*) FROM scaletest_samples").fetchone()
    assert count == len(files["timing"]) - 1
    sink = SqlSink(str(tmp_path / "s.db"), "again", "me")
    assert all(sink.ask(title) is not None for title in QUERIES)
    assert sink.ask("clients")[0][5] + sink.ask("clients")[0][6] == count
    sink.close()


@pytest.mark.parametrize(
    ("service", "options", "said"),
    [
        (("--token", "right"), (), "401"),
        (("--fail", "422"), (), "does not fit the schema"),
        (("--fail", "503"), (), "no pod is ready"),
    ],
)
def test_a_probe_that_fails_names_the_likely_cause(
    service: tuple[str, ...], options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    with running(*service) as url:
        done = call("saturate", "--url", url, *options, "--run-dir", str(tmp_path / "run"))
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    # and no run is kept of which nothing is known
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--url", "http://h/", "--agents", "0"), "agents is 0"),
        (("--service", "svc/h", "--tune", "cpus=1"), "NAME of"),
        (("--url", "http://h/", "--original-csv", "/proc/none"), "--original-csv /proc/none cannot be written"),
        (("--restore",), "--restore is for the Deployment"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_done(words: tuple[str, ...], said: str) -> None:
    done = call("saturate", *words, *(() if "--restore" in words or "--original-csv" in words else ("--dry-run",)))
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_a_dry_run_counts_the_settings_that_are_tuned() -> None:
    line = ("saturate", "--service", "svc/h", "--dry-run", "-o", "json")
    once, six = (
        json.loads(call(*line, *more).stdout)["longest_s"]
        for more in ((), ("--tune", "cpu=1,2", "--tune", "replicas=1,2,3"))
    )
    assert six == 6 * once


def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("right\n")
    # given half a second a request: a tester is not late before a quarter
    with running("--token", "right", "--seconds", "0.5") as url:
        line = ("saturate", "--url", url, "--token-file", str(token), "--run-dir", str(tmp_path / "run"))
        done = call(*line, "--mode", "sweep", "--load", "closed", "--start", "1", "--count", "4", "--warm", "0")
    assert done.returncode == 0, done.stderr
    assert all("right" not in path.read_text() for path in (tmp_path / "run").iterdir())


def test_the_original_tools_file_runs_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"input": 1}')
    with running("--slots", "16", "--seconds", "0.5") as url:
        plan = {
            "execution": {
                "autoScaling": False,
                "threadCount": 1,
                "maxThreadCount": 3,
                "threadStep": 1,
                "retryCount": 1,
            },
            "defaultProvider": {"endpointUrl": url, "fileInput": str(tmp_path / "one.json"), "recordCount": 6},
            "logDirectory": str(tmp_path / "logs"),
        }
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        line = ("saturate", "-f", str(tmp_path / "plan.json"), "--warm", "0", "--run-dir", str(tmp_path / "run"))
        done = call(*line)
    assert done.returncode == 0, done.stderr
    steps = SaturationFolder(tmp_path / "run").saturation().steps
    assert {one.level for one in steps} == {1.0, 2.0, 3.0}
    assert {one.requests for one in steps} == {6}
    history, timing = (
        list(csv.DictReader((tmp_path / "logs" / f"{name}.csv").read_text().splitlines()))
        for name in ("history", "timing")
    )
    # six requests on one, two and three threads; none handles all while another has half a second to do
    shares = [(int(row["MinRecords"]), int(row["MaxRecords"])) for row in history]
    assert shares[0] == (6, 6)
    assert all(least <= 6 / threads <= most < 6 for threads, (least, most) in zip((2, 3), shares[1:], strict=True))
    assert {row["PayloadSize"] for row in timing} == {str(len('{"input": 1}'))}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("urll: http://x", "did you mean url?"),
        ("url: [1, 2]", "url in"),
        ("poisson: maybe", "write true or false"),
        ("step_time: soon", "is no duration"),
        ("load: sideways", "load in"),
        ("- 1", "no mapping of settings"),
        ("url: 'http://127.0.0.1:1/'\nmode: sweep\nmaximum: 5\n", "--increment"),
        ("url: 'ftp://h/'", "no address of a service"),
        ("url: 'http://127.0.0.1:1/'\nmethod: GE T\n", "no method of HTTP"),
    ],
)
def test_a_plan_file_that_cannot_work_says_why(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(text)
    done = call("saturate", "-f", str(tmp_path / "plan.yaml"))
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_an_interrupted_run_says_so_and_is_kept(tmp_path: Path) -> None:
    with running() as url:
        line = program(
            "saturate", "--url", url, "--step-time", "60", "--warm", "0.5", "--run-dir", str(tmp_path / "run")
        )
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        eventually(lambda: (tmp_path / "run" / "steps.jsonl").exists())
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 4 and "interrupted by Ctrl-C" in out
    assert "interrupted" in call("report", str(tmp_path / "run")).stdout


@pytest.mark.parametrize("killed", [1, 2])
def test_a_dead_agent_makes_the_run_invalid(killed: int, url: str, tmp_path: Path) -> None:
    with running("--slots", "32") as service:
        line = program(
            *("saturate", "--url", service, "--redis-url", url, "--agents", "2", "--mode", "sweep", "--start", "20"),
            *("--step-time", "600", "--warm", "1", "--run-dir", str(tmp_path / "run")),
        )
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        eventually(lambda: (tmp_path / "run" / "steps.jsonl").exists())
        agents = [int(one) for one in children(process.pid) if b"--agent" in cmdline(one).split(b"\0")]
        assert len(agents) == 2
        for agent in agents[:killed]:
            os.kill(agent, signal.SIGKILL)
        out, said = process.communicate(timeout=60)
    # the other one does not outlive the run
    assert process.returncode == 4, said
    eventually(lambda: b"--agent" not in cmdline(str(agents[1])), 30)
    # what was measured before is kept, with the reason
    assert "INVALID  an agent was ended by signal 9" in out
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["verdict"]["kind"] == "INVALID" and [one["phase"] for one in result["steps"]] == ["warm"]
    again = json.loads(call("report", str(tmp_path / "run"), "-t", "json").stdout)
    assert again["verdict"] == result["verdict"] and again["steps"][0]["requests"] > 0


def test_a_redis_that_ends_in_mid_run_leaves_what_was_measured(tmp_path: Path) -> None:
    # given a Redis of the agents that ends with the first request after the probe's step is on disk
    from scaletest.broker import EmbeddedServer
    from tests.integration.test_sql import Door

    server, lock, ended, steps = EmbeddedServer(), threading.Lock(), threading.Event(), tmp_path / "run/steps.jsonl"
    server.start()

    def act() -> None:
        with lock:
            if steps.exists() and not ended.is_set():
                ended.set()
                server.stop()

    try:
        with Door(act) as door:
            threading.Thread(target=door.serve_forever, daemon=True).start()
            done = call(
                *("saturate", "--url", f"http://127.0.0.1:{door.server_port}/", "--redis-url", server.url),
                *("--agents", "2", "--load", "closed", "--mode", "sweep", "--start", "2", "--count", "50"),
                *("--warm", "0.2", "--run-dir", str(tmp_path / "run"), "-o", "json"),
            )
            door.shutdown()
    finally:
        if not ended.is_set():
            server.stop()
    # then it is said why it ended, and what was measured before is reported
    assert done.returncode == 7, done.stderr
    result = json.loads(done.stdout)
    assert result["verdict"]["kind"] == "INVALID" and "Redis of the agents went away" in result["verdict"]["reason"]
    assert {one["phase"] for one in result["steps"]} == {"warm"}
    again = json.loads(call("report", str(tmp_path / "run"), "-t", "json").stdout)
    assert again["verdict"] == result["verdict"]


def children(pid: int) -> list[str]:
    """Of a process, by number."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def cmdline(pid: str) -> bytes:
    """Of a process; nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_agents_share_a_plan_and_merge(url: str, tmp_path: Path) -> None:
    # given so few requests of a second each that a pause of the machine spoils one try of three at most
    with running("--slots", "32", "--seconds", "1") as service:
        done = call(
            *("saturate", "--url", service, "--redis-url", url, "--agents", "3", "--mode", "sweep", "--steady"),
            *("--start", "4", "--step-time", "3", "--warm", "0", "--run-dir", str(tmp_path / "run"), "-o", "json"),
        )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    stored = SaturationFolder(tmp_path / "run").saturation()
    last = stored.samples[stored.steps[-1].number]
    # together they followed the very pace that one would have followed, each a third of it
    assert sorted(one.due_s for one in last) == pytest.approx([n / 4 for n in range(12)], abs=1e-6)
    assert {one.agent for one in last} == {"1", "2", "3"}
    assert len({one.request for one in last}) == 12
    assert result["steps"][-1]["success"] == 1.0
    from scaletest.broker import connect

    redis = connect(url)
    assert list(redis.scan_iter(match="scaletest:agents:*")) == []
    redis.close()


def test_an_agent_that_dies_ends_the_run_with_its_reason(url: str) -> None:
    from scaletest.broker import connect
    from scaletest.broker.agents import EXPIRE_S, Meeting
    from scaletest.model.errors import ScaletestError, WaitTimeout
    from scaletest.saturation.agents import AgentsLoad

    redis = connect(url)
    meeting = Meeting(redis, "m")
    meeting.open({"call": {}, "bodies": []})

    def died() -> None:
        raise ScaletestError("an agent ended by itself")

    with pytest.raises(ScaletestError, match="ended by itself"):
        AgentsLoad(meeting, 1, died).wait()
    with pytest.raises(WaitTimeout, match="0 of 1 agents"):
        AgentsLoad(meeting, 1).wait(0.1)
    # and nothing outlives a coordinator that was killed: it says all the time that it lives
    meeting.join()
    redis.expire("scaletest:agents:m:plan", 5)
    assert meeting.brought(1) is None
    assert all(5 < int(redis.ttl(key)) <= EXPIRE_S for key in redis.scan_iter(match="scaletest:agents:*"))
    meeting.close()
    assert not meeting.alive()
    redis.close()


def test_a_queue_saturates_at_what_its_workers_do(start: Callable[..., Any], url: str, tmp_path: Path) -> None:
    # given four workers that sleep 0.2 s: 20 requests a second
    for _ in range(4):
        start()
    done = call(
        *("saturate", "--queue", "q", "--redis-url", url, "--load", "closed", "--step-time", "2", "--warm", "1"),
        *("--maximum", "16", "--confirm", "0", "--precision", "0.2", "--run-dir", str(tmp_path / "run"), "-o", "json"),
        *("--wanted", "5", "--share", "0.2", "--", "0.2"),
    )
    result = json.loads(done.stdout)
    held_or_late(done.returncode, result)
    check_capacity(result)
    # where answers take their time to be seen, more in flight are needed to keep four at work
    assert 4 <= result["saturation_in_flight"] <= 16
    assert result["steps"][-1]["load"] == "open"


def test_agents_load_a_queue_together(start: Callable[..., Any], url: str, tmp_path: Path) -> None:
    # given four workers that take a second, and three agents with a client each, which are not late before half of it
    for _ in range(4):
        start()
    done = call(
        *("saturate", "--queue", "q", "--redis-url", url, "--agents", "3", "--mode", "sweep", "--steady", "--start"),
        *("2", "--step-time", "6", "--warm", "0", "--run-dir", str(tmp_path / "run"), "-o", "json", "--", "1"),
    )
    held_or_late(done.returncode, json.loads(done.stdout))
    stored = SaturationFolder(tmp_path / "run").saturation()
    last = stored.samples[stored.steps[-1].number]
    # expect the very pace that one would have followed, each a third of it, and every reply
    assert sorted(one.due_s for one in last) == pytest.approx([n / 2 for n in range(12)], abs=1e-6)
    assert {one.agent: sum(row.agent == one.agent for row in last) for one in last} == {"1": 4, "2": 4, "3": 4}
    assert len({one.request for one in last}) == 12 and all(one.ok for one in last)


def test_a_queue_that_nobody_serves_is_refused(url: str, queues: Any) -> None:
    done = call("saturate", "--queue", "q", "--redis-url", url)
    assert done.returncode == 2 and "has no worker" in done.stderr
    done = call("saturate", "--queue", "other", "--redis-url", url)
    assert done.returncode == 2 and "not declared" in done.stderr


def test_http2_is_spoken_with_one_connection(tmp_path: Path) -> None:
    from tests.integration.http2 import serving

    with ExitStack() as stack:
        url, seen = stack.enter_context(serving())
        found = loaded(Call(url, http2=True), Order(1.0, parallel=8, count=40))
        assert [one.outcome for one in found.samples] == [OK] * 40
        assert seen == {"connections": 1, "requests": 40}
    with running() as plain:
        found = loaded(Call(plain, http2=True, timeout_s=1.0), Order(1.0, parallel=1, count=1))
        assert found.samples[0].outcome != OK


def test_what_a_queue_cannot_take_is_backlog_and_no_fault_of_the_tester(start: Callable[..., Any], url: str) -> None:
    # given a worker that does 20 requests a second, 100 due a second, and 10 in flight at most
    from scaletest.analysis.saturation.step import assess
    from scaletest.broker import Client, connect
    from scaletest.model.sample import UNSENT
    from scaletest.model.saturation import SaturationPlan, SaturationStep
    from scaletest.saturation.queue import QueueLoad

    start()
    load = QueueLoad(lambda: Client(connect(url), patience_s=60.0), "q", arguments=("0.05",), maximum=10)
    order = Order(3.0, pace=constant(100), patience_s=0.1)
    found = load.measure(order, lambda: False, lambda ended, failed: None)
    # then every request that was due is on record, from when it was due
    due = sorted(one.due_s for one in found.samples)
    assert due == pytest.approx([n / 100 for n in range(300)], abs=1e-6)
    assert sorted(one.request for one in found.samples) == list(range(300))
    assert found.unsent == sum(one.outcome == UNSENT for one in found.samples) > 100
    step = SaturationStep(0, "ramp", "open", 100.0, found.seconds, 300, 0.6, found.cpu, found.beat_s)
    judged = assess(SaturationPlan("q"), step, found.samples)
    # 80, and more where the worker had to wait for a processor
    assert judged.growth is not None and 75 < judged.growth.value <= 100 and judged.saturated
    # and none was noticed late that had to wait for room, which is so from the time that ten are seen in flight
    sent = sorted(one for one in found.samples if one.outcome != UNSENT)
    assert [one.lag_s for one in sent[20:]] == [0.0] * len(sent[20:])
