"""scaletest saturate over HTTP against real services and on a queue of real workers, also with
agents that load together, and what is kept of it.
"""

import json
import os
import random
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import Client, EmbeddedServer, connect
from scaletest.broker.rendezvous import EXPIRE_S, Rendezvous
from scaletest.load.level_load import LoadOrder
from scaletest.load.pace import constant, exact_poisson
from scaletest.model.attempt import UNSENT
from scaletest.model.errors import ScaletestError, WaitTimeout
from scaletest.saturation.folder import SaturationFolder
from scaletest.saturation.judging.step import assess_step
from scaletest.saturation.measure.agents import AgentsLoad
from scaletest.saturation.measure.queue_load import QueueLoad
from scaletest.saturation.plan import SaturationPlan, SaturationStep
from tests.conftest import call, call_here, eventually, program
from tests.integration.services import Door, check_verdict, running


def test_a_search_over_http_ends_in_a_run_with_every_report(tmp_path: Path) -> None:
    # given a service so slow that even a busy machine is faster: 4 slots of 200 ms
    root = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}

    def shown(*arguments: str) -> str:
        return call_here(*arguments, env=root).stdout

    with running("--slots", "4", "--seconds", "0.2") as url:
        done = call(
            *(
                "saturate",
                url,
                "--load",
                "closed",
                "--step-time",
                "2",
                "--warm",
                "1",
                "--progress",
                "plain",
            ),
            *("--start", "2", "--maximum", "8", "--precision", "0.1"),
            *(
                "--wanted",
                "5",
                "--server-header",
                "Server-Time",
                "--format",
                "json",
            ),
            *("--header", "X-Key: secret"),
            env=root,
        )
    result = json.loads(done.stdout)
    check_verdict(done.returncode, result)
    check_capacity(result)
    # the service runs on this machine, and was looked at
    assert any(
        step["around"]["activities"] and step["around"]["tester"] > 0 for step in result["steps"]
    )
    folder = SaturationFolder(Path(result["folder"]))
    assert "secret" not in (folder.path / "environment.json").read_text()
    assert sum(step.requests for step in folder.steps()) == len(
        (folder.path / "records.jsonl").read_text().splitlines()
    )
    for form in ("text", "html", "md", "csv", "json", "junit"):
        assert "saturat" in shown("report", "LAST", "--format", form), form
    assert "<script" not in shown("report", "LAST", "--format", "html")
    judged = json.loads(shown("report", "LAST", "--format", "json"))
    assert judged["saturation_per_s"] == result["saturation_per_s"]
    assert judged["verdict"] == result["verdict"]
    assert "closed load on http" in shown("runs", "list")
    sized = json.loads(
        shown("size", "--run", "LAST", "--replicas", "2", "--rate", "100", "--format", "json")
    )
    each = result["saturation_per_s"]["value"] / 2
    assert sized["demand"]["per_pod_per_s"] == pytest.approx(each)


def check_capacity(result: dict[str, Any]) -> None:
    """Of what can do 20 requests a second: a quarter or four times as many would be that of
    something else.
    """
    assert 5 < result["saturation_per_s"]["value"] < 80, result


@pytest.mark.parametrize(
    ("service", "options", "message"),
    [
        (("--token", "right"), (), "401"),
        (("--fail", "422"), (), "does not fit the schema"),
        (("--fail", "503"), (), "no pod is ready"),
    ],
)
def test_a_probe_that_fails_names_the_likely_cause(
    service: tuple[str, ...], options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    with running(*service) as url:
        done = call("saturate", url, *options, "--run-dir", str(tmp_path / "run"))
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    # and no run is kept of which nothing is known
    assert not (tmp_path / "run").exists()


def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("Authorization: Bearer right\n")
    with running("--token", "right", "--seconds", "0.5") as url:
        line = (
            "saturate",
            url,
            "--header",
            f"@{token}",
            "--run-dir",
            str(tmp_path / "run"),
            "--format",
            "json",
        )
        done = call(
            *line,
            "--load",
            "closed",
            "--start",
            "1",
            "--maximum",
            "1",
            "--count",
            "4",
            "--warm",
            "0",
        )
    result = json.loads(done.stdout)
    check_verdict(done.returncode, result)
    assert {step["success"] for step in result["steps"]} == {1.0}
    assert all("right" not in path.read_text() for path in (tmp_path / "run").iterdir())


def test_an_interrupted_run_is_stored_and_reported_as_interrupted(tmp_path: Path) -> None:
    with running() as url:
        line = program(
            "saturate",
            url,
            "--step-time",
            "60",
            "--warm",
            "0.5",
            "--run-dir",
            str(tmp_path / "run"),
        )
        process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        eventually(lambda: (tmp_path / "run" / "steps.jsonl").exists())
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 4 and "interrupted by Ctrl-C" in out
    assert "interrupted" in call("report", str(tmp_path / "run")).stdout


def test_a_queue_saturates_at_the_throughput_of_its_workers(
    start: Callable[..., Any], url: str, tmp_path: Path
) -> None:
    # given four workers that sleep 0.2 s: 20 requests a second
    for _ in range(4):
        start()
    done = call(
        *(
            "saturate",
            "--queue",
            "q",
            "--redis-url",
            url,
            "--load",
            "closed",
            "--step-time",
            "2",
            "--warm",
            "1",
        ),
        *(
            "--maximum",
            "16",
            "--precision",
            "0.2",
            "--run-dir",
            str(tmp_path / "run"),
            "--format",
            "json",
        ),
        *("--wanted", "5", "--", "0.2"),
    )
    result = json.loads(done.stdout)
    check_verdict(done.returncode, result)
    # a quarter or four times as many would be that of something else
    assert 5 < result["saturation_per_s"]["value"] < 80, result
    # where answers take their time to be seen, more in flight are needed to keep four at work
    assert 4 <= result["saturation_in_flight"] <= 16
    assert result["steps"][-1]["load"] == "open"


def test_requests_over_the_limit_of_a_queue_are_backlog_and_not_late(
    start: Callable[..., Any], url: str
) -> None:
    # given a worker that does 20 requests a second, 100 due a second, and 10 in flight at most

    start()
    load = QueueLoad(
        lambda: Client(connect(url), patience_s=60.0), "q", arguments=("0.05",), maximum=10
    )
    order = LoadOrder(3.0, pace=constant(100), patience_s=0.1)
    measured = load.measure(order, lambda: False, lambda ended, failed: None)
    # then every request that was due is on record, from when it was due
    due = sorted(sample.due_s for sample in measured.samples)
    assert due == pytest.approx([n / 100 for n in range(300)], abs=1e-6)
    assert sorted(sample.request for sample in measured.samples) == list(range(300))
    assert sum(sample.outcome == UNSENT for sample in measured.samples) > 100
    step = SaturationStep(
        0, "ramp", "open", 100.0, measured.seconds, 300, 0.6, measured.cpu, measured.beat_s
    )
    judged = assess_step(SaturationPlan("q"), step, measured.samples)
    # 80, and more where the worker had to wait for a processor
    assert judged.growth is not None and 75 < judged.growth.value <= 100 and judged.saturated
    # and none was noticed late that had to wait for room, which is so from the time that ten are
    # seen in flight
    sent = [sample for sample in measured.samples if sample.outcome != UNSENT]
    sent.sort(key=lambda sample: sample.request)
    assert [sample.lag_s for sample in sent[20:]] == [0.0] * len(sent[20:])


@pytest.mark.parametrize("killed", [1, 2])
def test_a_dead_agent_makes_the_run_invalid(killed: int, url: str, tmp_path: Path) -> None:
    with running("--slots", "32") as service:
        line = program(
            *(
                "saturate",
                service,
                "--redis-url",
                url,
                "--agents",
                "2",
                "--start",
                "20",
            ),
            *("--step-time", "600", "--warm", "1", "--run-dir", str(tmp_path / "run")),
        )
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        eventually(lambda: (tmp_path / "run" / "steps.jsonl").exists())
        agents = [
            int(pid) for pid in children(process.pid) if b"--agent" in cmdline(pid).split(b"\0")
        ]
        assert len(agents) == 2
        for agent in agents[:killed]:
            os.kill(agent, signal.SIGKILL)
        out, stderr = process.communicate(timeout=60)
    # the other one does not outlive the run
    assert process.returncode == 4, stderr
    eventually(lambda: b"--agent" not in cmdline(str(agents[1])))
    # what was measured before is kept, with the reason
    assert "INVALID  an agent was ended by signal 9" in out
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["verdict"]["kind"] == "INVALID" and [
        step["phase"] for step in result["steps"]
    ] == ["warm"]
    again = json.loads(call("report", str(tmp_path / "run"), "--format", "json").stdout)
    assert again["verdict"] == result["verdict"] and again["steps"][0]["requests"] > 0


def test_measured_steps_are_kept_when_redis_ends_during_a_run(tmp_path: Path) -> None:
    # given a Redis of the agents that ends with the first request after the probe's step is on disk

    server, lock, ended, steps = (
        EmbeddedServer(),
        threading.Lock(),
        threading.Event(),
        tmp_path / "run/steps.jsonl",
    )
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
                *(
                    "saturate",
                    f"http://127.0.0.1:{door.server_port}/",
                    "--redis-url",
                    server.url,
                ),
                *(
                    "--agents",
                    "2",
                    "--load",
                    "closed",
                    "--start",
                    "2",
                    "--count",
                    "50",
                ),
                *("--warm", "0.2", "--run-dir", str(tmp_path / "run"), "--format", "json"),
            )
            door.shutdown()
    finally:
        if not ended.is_set():
            server.stop()
    # then it is said why it ended, and what was measured before is reported
    assert done.returncode == 7, done.stderr
    result = json.loads(done.stdout)
    assert (
        result["verdict"]["kind"] == "INVALID"
        and "Redis of the agents went away" in result["verdict"]["reason"]
    )
    assert {step["phase"] for step in result["steps"]} == {"warm"}
    again = json.loads(call("report", str(tmp_path / "run"), "--format", "json").stdout)
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


@pytest.mark.parametrize("target", ["service", "queue"])
def test_agents_divide_a_load_and_their_samples_are_merged(
    start: Callable[..., Any], url: str, redis: Any, tmp_path: Path, target: str
) -> None:
    # given what answers after a second, so that an agent is not late before half of it
    for _ in range(4):
        start()
    load = ("--start", "2", "--maximum", "2", "--step-time", "6", "--warm", "0", "--agents", "3")
    stored = ("--redis-url", url, "--run-dir", str(tmp_path / "run"), "--format", "json")
    with running("--slots", "32", "--seconds", "1") as service:
        line = [service, *load, *stored]
        if target == "queue":
            line = ["--queue", "q", *load, *stored, "--", "1"]
        done = call("saturate", *line)
    check_verdict(done.returncode, json.loads(done.stdout))
    folder = SaturationFolder(tmp_path / "run")
    first = folder.samples(folder.steps())[0]
    # expect the very pace that one would have followed, each a third of it, and every reply
    pace = list(exact_poisson(2.0, 6.0, random.Random(0)))
    assert sorted(sample.due_s for sample in first) == pytest.approx(pace, abs=1e-6)
    assert Counter(sample.agent for sample in first) == {"1": 4, "2": 4, "3": 4}
    assert len({sample.request for sample in first}) == 12 and all(sample.ok for sample in first)
    assert list(redis.scan_iter(match="scaletest:agents:*:plan")) == []


def test_an_agent_that_dies_ends_the_run_with_its_reason(url: str) -> None:

    redis = connect(url)
    rendezvous = Rendezvous(redis, "m")
    rendezvous.publish_plan({"call": {}, "bodies": []})

    def died() -> None:
        raise ScaletestError("an agent ended by itself")

    with pytest.raises(ScaletestError, match="ended by itself"):
        AgentsLoad(rendezvous, 1, died).wait(60.0)
    with pytest.raises(WaitTimeout, match="0 of 1 agents"):
        AgentsLoad(rendezvous, 1).wait(0.1)
    # and nothing outlives a coordinator that was killed: it says all the time that it lives
    rendezvous.register_agent()
    redis.expire("scaletest:agents:m:plan", 5)
    assert rendezvous.wait_for_result(1) is None
    assert all(
        5 < int(redis.ttl(key)) <= EXPIRE_S for key in redis.scan_iter(match="scaletest:agents:*")
    )
    rendezvous.close()
    assert not rendezvous.is_open()
    redis.close()
