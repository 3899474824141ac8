"""scaletest saturate with agents that load a service or a queue together, and what happens when one
dies.
"""

from __future__ import annotations

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

from scaletest.load.pace import exact_poisson
from scaletest.saturation.folder import SaturationFolder
from tests.conftest import call, eventually, program
from tests.integration.services import Door, check_verdict, running


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
    from scaletest.broker import EmbeddedServer

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


def test_agents_divide_a_load_and_their_samples_are_merged(url: str, tmp_path: Path) -> None:
    # given so few requests of a second each that a pause of the machine spoils one try of three at
    # most
    with running("--slots", "32", "--seconds", "1") as service:
        done = call(
            *(
                "saturate",
                service,
                "--redis-url",
                url,
                "--agents",
                "3",
            ),
            *(
                "--start",
                "4",
                "--maximum",
                "4",
                "--step-time",
                "3",
                "--warm",
                "0",
                "--run-dir",
                str(tmp_path / "run"),
                "--format",
                "json",
            ),
        )
    result = json.loads(done.stdout)
    check_verdict(done.returncode, result)
    stored = SaturationFolder(tmp_path / "run").load()
    first = stored.samples[0]
    # together they followed the very pace that one would have followed, each a third of it
    pace = list(exact_poisson(4.0, 3.0, random.Random(0)))
    assert sorted(sample.due_s for sample in first) == pytest.approx(pace, abs=1e-6)
    assert {sample.agent for sample in first} == {"1", "2", "3"}
    assert len({sample.request for sample in first}) == 12
    assert result["steps"][0]["success"] == 1.0
    from scaletest.broker import connect

    redis = connect(url)
    assert list(redis.scan_iter(match="scaletest:agents:*")) == []
    redis.close()


def test_an_agent_that_dies_ends_the_run_with_its_reason(url: str) -> None:
    from scaletest.broker import connect
    from scaletest.broker.rendezvous import EXPIRE_S, Rendezvous
    from scaletest.model.errors import ScaletestError, WaitTimeout
    from scaletest.saturation.agents import AgentsLoad

    redis = connect(url)
    rendezvous = Rendezvous(redis, "m")
    rendezvous.open({"call": {}, "bodies": []})

    def died() -> None:
        raise ScaletestError("an agent ended by itself")

    with pytest.raises(ScaletestError, match="ended by itself"):
        AgentsLoad(rendezvous, 1, died).wait()
    with pytest.raises(WaitTimeout, match="0 of 1 agents"):
        AgentsLoad(rendezvous, 1).wait(0.1)
    # and nothing outlives a coordinator that was killed: it says all the time that it lives
    rendezvous.join()
    redis.expire("scaletest:agents:m:plan", 5)
    assert rendezvous.brought(1) is None
    assert all(
        5 < int(redis.ttl(key)) <= EXPIRE_S for key in redis.scan_iter(match="scaletest:agents:*")
    )
    rendezvous.close()
    assert not rendezvous.alive()
    redis.close()


def test_agents_load_a_queue_together(start: Callable[..., Any], url: str, tmp_path: Path) -> None:
    # given four workers that take a second, and three agents with a client each, which are not late
    # before half of it
    for _ in range(4):
        start()
    done = call(
        *(
            "saturate",
            "--queue",
            "q",
            "--redis-url",
            url,
            "--agents",
            "3",
            "--start",
        ),
        *(
            "2",
            "--maximum",
            "2",
            "--step-time",
            "6",
            "--warm",
            "0",
            "--run-dir",
            str(tmp_path / "run"),
            "--format",
            "json",
            "--",
            "1",
        ),
    )
    check_verdict(done.returncode, json.loads(done.stdout))
    stored = SaturationFolder(tmp_path / "run").load()
    first = stored.samples[0]
    # expect the very pace that one would have followed, each a third of it, and every reply
    pace = list(exact_poisson(2.0, 6.0, random.Random(0)))
    assert sorted(sample.due_s for sample in first) == pytest.approx(pace, abs=1e-6)
    assert Counter(sample.agent for sample in first) == {"1": 4, "2": 4, "3": 4}
    assert len({sample.request for sample in first}) == 12 and all(sample.ok for sample in first)
