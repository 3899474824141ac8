"""A workload without a queue, by `worker --once`; and workers with a workload in Python: how
requests and processes end.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import Client, Queues
from scaletest.model import Activity, Outcome, Reason, Request, State
from tests.conftest import call, daemon_line, eventually, program, wait_for

SCRIPT = """
import sys, fcntl
lock = open(sys.argv[1], "w")
print("started", flush=True)
fcntl.flock(lock, fcntl.LOCK_EX)
sum(range(3_000_000))
print("frames done")
"""


def once(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the result, and what else was written."""
    done = call("worker", "--once", "--format", "json", *arguments)
    return done.returncode, json.loads(done.stdout), done.stderr


def test_the_result_names_the_lock_that_a_program_waited_for(tmp_path: Path) -> None:
    # given a lock file that somebody else holds
    path = tmp_path / "encoder.lock"
    line = program("worker", "--once", "--", sys.executable, "-c", SCRIPT, str(path))
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None and process.stdout is not None
        # what the program writes is on standard error
        assert process.stderr.readline() == "started\n"
        time.sleep(1.0)
    shown, stderr = process.communicate(timeout=120)
    # expect the result alone on standard output
    assert (process.returncode, stderr) == (0, "frames done\n")
    first, *rows = shown.splitlines()
    assert first.startswith("succeeded after ") and first.endswith(", exit code 0")
    table = rows[rows.index("where the time went:") + 1 :]
    (waited,) = [row for row in table if row.startswith("  file lock ")]
    assert waited.endswith(f"  {path}")
    assert any(row.startswith("CPU time ") for row in rows) and any(
        row.startswith("peak memory ") for row in rows
    )


def test_the_json_result_has_the_fields_of_a_reply() -> None:
    code, result, stderr = once(
        "--", sys.executable, "-c", "import time; print('words'); time.sleep(0.5)"
    )
    assert (code, result["outcome"], result["exit_code"], stderr) == (0, "succeeded", 0, "words\n")
    activity = Activity.from_dict(result["activity"])
    assert activity.seconds[State.SLEEP] > 0 and activity.cpu_s > 0
    # what is done around the program belongs to the request only, however long a busy machine takes
    # for it
    assert 0.49 <= sum(activity.seconds.values()) <= result["run_s"] + 0.01


def test_peak_memory_below_that_of_the_worker_is_shown_as_an_upper_bound() -> None:
    assert "peak memory    at most " in call("worker", "--once", "--", "true").stdout
    # through a shell, since the kernel counts the memory of who starts a process as that process's
    # own
    line = program("worker", "--once", "--", sys.executable, "-c", "b'x' * 300_000_000")
    shell = ["/bin/sh", "-c", '"$@"; exit $?', "sh", *line]
    used = subprocess.run(shell, capture_output=True, text=True, timeout=280, check=True).stdout
    (line,) = [line for line in used.splitlines() if line.startswith("peak memory")]
    assert "at most" not in line and line.endswith(" MB")


@pytest.mark.parametrize(
    ("arguments", "outcome", "exit_code"),
    [
        (("--", "sh", "-c", "exit 7"), "failed", 7),
        (("--", "sh", "-c", "kill -9 $$"), "failed", -9),
        (("--", "/nonexistent"), "failed", None),
        (("--device-glob", "/nonexistent/*", "--", "true"), "failed", None),
        (("--time-limit", "0.1", "--", "sleep", "9"), "timed_out", None),
    ],
)
def test_a_request_that_fails_has_exit_code_5(
    arguments: tuple[str, ...], outcome: str, exit_code: int | None
) -> None:
    code, result, _ = once(*arguments)
    assert (code, result["outcome"], result["exit_code"]) == (5, outcome, exit_code)
    assert result["error"]


def test_a_benchmark_takes_its_document() -> None:
    code, result, _ = once("--", "bench", '{"kind": "no such kind"}')
    assert code == 5 and "no such kind" in result["error"]


def test_figures_of_work_and_the_device_are_shown(tmp_path: Path) -> None:
    device = tmp_path / "card0"
    device.touch()
    tool = tmp_path / "ffmpeg"
    tool.write_text(
        f'#!/bin/sh\n[ "$1" = {device} ] && echo "frame=  50 fps=25 q=-0.0 size=N/A" >&2\n'
    )
    tool.chmod(0o755)
    done = call(
        "worker", "--once", "--device-glob", f"{tmp_path}/card*", "--", str(tool), "FILENAME"
    )
    assert done.returncode == 0, done.stdout
    assert f"device         {device}" in done.stdout.splitlines()
    assert "frames         50" in done.stdout.splitlines()


def test_figures_of_a_transcode_are_shown_apart_from_their_names(tmp_path: Path) -> None:
    stream, tool = tmp_path / "in.h264", tmp_path / "ffmpeg"
    stream.write_bytes(b"stream")
    # the answers of FFmpeg to -progress
    tool.write_text("#!/bin/sh\nprintf 'frame=50\\nfps=25\\nprogress=end\\n'\n")
    tool.chmod(0o755)
    arguments = ("--program", str(tool), "--input", str(stream), "--output-codec", "h264")
    done = call("worker", "--once", "--", "transcode", *arguments)
    assert done.returncode == 0, done.stdout
    figures = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
    assert figures["frames"] == "50"
    # the longest name
    assert figures["encode_errors"] == "0"


def test_once_says_that_nothing_was_sampled_with_no_causes() -> None:
    done = call("worker", "--once", "--no-causes", "--", "true")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "where the time went is not known: nothing was sampled"


def test_once_gives_the_method_run_of_a_class_its_arguments(tmp_path: Path) -> None:
    file = tmp_path / "scaler.py"
    file.write_text(
        "class Scaler:\n"
        "    def __init__(self, width: int = 320):\n"
        "        self.width = width\n"
        "    def run(self, name: str, *, times: int = 1):\n"
        "        return {'width': self.width, 'name': name, 'times': times}\n"
    )
    request = ("--argument", "in.png", "--argument", "--times", "--argument", "3")
    code, result, stderr = once("--workload", f"{file}:Scaler", *request, "--", "--width", "640")
    assert code == 0, stderr
    assert result["figures"] == {"width": 640, "name": "in.png", "times": 3}


def test_an_interrupt_ends_once_and_its_program(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    line = program(
        "worker",
        "--once",
        "--",
        "sh",
        "-c",
        f"echo $$ > {mark}.new; mv {mark}.new {mark}; exec sleep 600",
    )
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid = int(eventually(lambda: mark.exists() and mark.read_text()))
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate(timeout=120)
    assert (process.returncode, shown) == (130, "")
    assert eventually(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.parametrize("by", ["program", "Python"])
def test_a_process_that_left_its_group_and_its_parent_ends_with_once(
    tmp_path: Path, by: str
) -> None:
    # given a workload that leaves a process as daemons do, in an empty environment
    mark = tmp_path / "pid"
    leave = ("sh", "-c", daemon_line(mark))
    arguments = ["--", *leave]
    if by == "Python":
        file = tmp_path / "leaver.py"
        file.write_text(f"import subprocess\n\ndef leave():\n    subprocess.run({leave!r})\n")
        arguments = ["--workload", f"{file}:leave"]
    # when it has run, expect nobody left
    code, _, stderr = once(*arguments)
    assert code == 0, stderr
    assert not Path("/proc", mark.read_text().strip()).exists()


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
            case "slow": time.sleep(600)
        return {"width": self.width, "pid": os.getpid()}
"""
# What each request does, and how it shall end.
ENDS = {
    "exception": (Outcome.FAILED, Reason.EXIT),
    "exit": (Outcome.FAILED, Reason.EXIT),
    "kill": (Outcome.FAILED, Reason.SIGNAL),
    "memory": (Outcome.FAILED, Reason.EXIT),
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
    assert {
        how: (replies[f"{how}-bad"].outcome, replies[f"{how}-bad"].reason) for how in ENDS
    } == ENDS
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
