"""Workers with a workload in Python: real workers, a real queue, and how requests and processes
end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import Client, Queues
from scaletest.model import Outcome, Reason, Request
from tests.conftest import call, eventually, wait_for

SOURCE = """
import os, signal, time
class Workload:
    def __init__(self, width: int = 1) -> None:
        self.width = width
    def run(self, how: str = "well") -> dict[str, float]:
        match how:
            case "exception": raise ValueError("no such picture")
            case "exit": os._exit(4)
            case "kill": os.kill(os.getpid(), signal.SIGKILL)
            case "memory": bytearray(1 << 40)
            case "output":
                while True: print("x" * 1000)
            case "slow": time.sleep(600)
        return {"width": self.width, "pid": os.getpid()}
"""
# What each request does, and how it shall end.
ENDS = {
    "exception": (Outcome.FAILED, Reason.EXIT),
    "exit": (Outcome.FAILED, Reason.EXIT),
    "kill": (Outcome.FAILED, Reason.SIGNAL),
    "memory": (Outcome.FAILED, Reason.EXIT),
    "output": (Outcome.FAILED, Reason.EXIT),
    "slow": (Outcome.TIMED_OUT, Reason.NONE),
}
# An own limit of the process, which a container's does not have to be.
LIMITED = ("/bin/sh", "-c", 'ulimit -v 8000000; exec "$@"', "sh")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "behaviour.py"
    path.write_text(SOURCE)
    return path


def test_every_end_of_a_request_is_an_answer_and_the_next_one_runs(
    client: Client, start: Callable[..., Any], file: Path
) -> None:
    options = ("--kill-grace", "0.2", "--workload", f"{file}:Workload", "--", "--width=7")
    worker = start(*options, shell_prefix=LIMITED)
    names = [f"{how}-{turn}" for how in ENDS for turn in ("bad", "good")]
    client.submit(
        [
            Request(name, "q", (how,) if turn == "bad" else (), 3.0 if how == "slow" else 0.0)
            for name in names
            for how, _, turn in [name.partition("-")]
        ]
    )
    replies = wait_for(client, len(names), 300)
    ends = {how: (replies[f"{how}-bad"].outcome, replies[f"{how}-bad"].reason) for how in ENDS}
    assert ends == ENDS
    good = [replies[f"{how}-good"] for how in ENDS]
    assert {reply.outcome for reply in good} == {Outcome.SUCCEEDED}
    assert {reply.figures["width"] for reply in good} == {7}
    assert replies["memory-bad"].figures == {"memory_limit_hits": 1}
    # an exception ends no process
    assert replies["memory-bad"].error.startswith("out of memory")
    assert worker.poll() is None
    # a worker that drains takes its process with it
    pid = int(good[-1].figures["pid"])
    worker.terminate()
    assert worker.wait(60) == 0
    eventually(lambda: not Path(f"/proc/{pid}/cmdline").exists())


def test_a_worker_that_is_killed_leaves_no_process(
    client: Client, start: Callable[..., Any], file: Path
) -> None:
    worker = start("--workload", f"{file}:Workload")
    client.submit([Request("r", "q")])
    pid = int(wait_for(client, 1, 60)["r"].figures["pid"])
    os.kill(worker.pid, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{pid}/cmdline").exists())


def test_a_workload_that_cannot_start_ends_the_worker_before_it_is_registered(
    url: str, queues: Queues, file: Path
) -> None:
    line = ("worker", "--queue", "q", "--redis-url", url, "--workload", f"{file}:Workload")
    ended = call(*line, "--", "--width", "wide")
    assert ended.returncode == 2
    assert "width in" in ended.stderr and "is 'wide', not a whole number" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert queues.worker_names("q") == []


def test_a_validation_checks_it_once_and_measures_it(file: Path, tmp_path: Path) -> None:
    fixed = ("--limit", "2", "--seconds", "0.01", "--step-time", "1", "--format", "json")
    where = ("--run-dir", str(tmp_path / "run"), "--workload", f"{file}:Workload")
    refused = call("validate", "--local", *fixed, *where, "--", "--height", "3")
    assert refused.returncode == 2 and "has no argument --height" in refused.stderr
    measured = call("validate", *fixed, *where, "--", "--width", "3")
    assert measured.returncode in (0, 3, 4), measured.stderr
    steps = json.loads(measured.stdout)["steps"]
    assert [step["workers"] for step in steps] == [1, 2]
    assert all(step["throughput_per_s"] > 0 and not step["failures"] for step in steps)
    plan = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert plan["command"] == [f"{file}:Workload", "--width", "3"]


def test_modules_of_the_folder_are_found_and_hide_none_of_ours(file: Path, tmp_path: Path) -> None:
    # given a folder whose names are also those of modules that the worker needs
    for name in ("workers", "json", "scaletest"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('wrong module')\n")
    script = tmp_path.parent / "scaletest-program"
    script.write_text("import sys; from scaletest.cli.main import main; sys.exit(main())\n")
    line = ["worker", "--once", "--workload", "behaviour:Workload"]
    done = subprocess.run(
        [sys.executable, "-P", str(script), *line],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "succeeded" in done.stdout
