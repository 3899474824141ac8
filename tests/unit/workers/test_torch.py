"""The workload torch without torch: its words, and how its process may answer and end."""

import fcntl
import json
import os
import shlex
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.benchmarks.documents import benchmark
from scaletest.benchmarks.kinds.failure import BenchmarkFailed, Failure
from scaletest.benchmarks.kinds.kind import ToolOutput
from scaletest.cli import main
from scaletest.model import Outcome, Reason, State
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.processes.wake import Wake
from scaletest_workers.devices import DeviceOptions
from scaletest_workers.runtime import Runtime, run_once
from scaletest_workers.settings import Settings
from scaletest_workers.workloads import torch
from scaletest_workers.workloads.base import Interrupted, ProgramOptions
from scaletest_workers.workloads.torch_options import Model, TorchWork, from_words

# Answers as torch_child does, without torch; what it is asked for last says how it behaves.
STAND_IN = """
import fcntl, json, os, resource, sys, time
print("a library talks", file=sys.stderr)
before = [0.0] * 16
for line in sys.stdin:
    number, words = json.loads(line)
    batches = words[words.index("--batches") + 1] if "--batches" in words else "10"
    if batches == "1":
        os.kill(os.getpid(), 9)
    if batches == "2":
        sys.exit(3)
    if batches == "7":
        sys.exit(69)
    if batches == "3":
        time.sleep(60)
    if batches == "8":
        while time.process_time() < 0.5:
            pass
    if batches == "9":
        lock = open(os.environ["LOCK"], "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.close()
    now = list(resource.getrusage(resource.RUSAGE_SELF))
    usage, before = [a - b for a, b in zip(now, before)], now
    answers = {
        "4": {"error": "out of memory: 2 GiB", "figures": {"memory_limit_hits": 1}},
        "5": {"error": "torch finds no CUDA device here", "no_device": True},
        "6": {"error": "a module is missing", "unavailable": True},
    }
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    told = {"samples": 640, "pid": os.getpid(), "visible": visible}
    told["secrets"] = sum("S3CRET" in value for value in os.environ.values())
    answer = answers.get(batches, {"figures": told})
    print(json.dumps({**answer, "number": number, "usage": usage}), flush=True)
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a worker whose torch is the stand-in."""
    program = tmp_path / "python"
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(STAND_IN))
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(torch, "find_spec", lambda name: True)
    device = tmp_path / "nvidia0"
    device.touch()
    return Settings(
        command=("torch",),
        devices=DeviceOptions(str(device), device_index=0, preset="nvidia"),
        program=ProgramOptions(kill_grace_s=0.1),
    )


@pytest.fixture
def runtime(settings: Settings, wake: Wake) -> Iterator[Runtime]:
    torch_runtime = Runtime(settings, wake)
    yield torch_runtime
    torch_runtime.close()


def test_the_process_stays_and_is_restricted_to_the_workers_device(runtime: Runtime) -> None:
    first, second = (runtime.run((), 0.0)[0] for _ in range(2))
    assert first.outcome is Outcome.SUCCEEDED
    assert first.figures == second.figures
    assert (first.figures["samples"], first.figures["visible"]) == (640, "0")


def test_once_shows_the_outcome_time_and_figures(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("scaletest.cli.single_run.run_once", lambda *_: run_once(settings))
    # which holds for the rest of this process, where tests start workloads side by side
    monkeypatch.setattr("scaletest.cli.single_run.adopt_orphans", lambda: None)
    assert main.run(["worker", "--once", "--", "torch"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("succeeded after ")
    assert "samples        640" in lines


def test_every_reply_says_where_the_time_of_its_request_went(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a process that computed in its first request
    path = tmp_path / "model.lock"
    monkeypatch.setenv("LOCK", str(path))
    first = runtime.run(("--batches", "8"), 0.0)[0].activity
    assert first is not None and first.cpu_s >= 0.4
    assert first.seconds[State.ON_CPU] == pytest.approx(first.cpu_s, rel=0.3)
    # when its second one waits for a lock
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        timer = threading.Timer(1.5, fcntl.flock, (lock, fcntl.LOCK_UN))
        timer.start()
        result, run_s = runtime.run(("--batches", "9"), 0.0)
        timer.join()
    # expect that nothing of the first is told of the second
    second = result.activity
    assert second is not None and second.cpu_s < first.cpu_s / 2
    assert max(second.seconds, key=lambda state: second.seconds[state]) is State.FILE_LOCK
    assert [wait.object for wait in second.waits if wait.state is State.FILE_LOCK] == [str(path)]
    assert sum(second.seconds.values()) == pytest.approx(run_s, rel=0.1)


def test_a_request_that_is_ended_says_where_its_time_went(runtime: Runtime) -> None:
    activity = runtime.run(("--batches", "3"), 1.0)[0].activity
    assert activity is not None and activity.seconds[State.SLEEP] > 0


@pytest.mark.parametrize(
    ("batches", "outcome", "reason", "text"),
    [
        ("1", Outcome.FAILED, Reason.SIGNAL, "ended by SIGKILL; the memory limit"),
        ("2", Outcome.FAILED, Reason.EXIT, "ended by itself with code 3"),
        ("3", Outcome.TIMED_OUT, Reason.NONE, "torch timed out after 0.3 s"),
        ("4", Outcome.FAILED, Reason.EXIT, "out of memory"),
        ("5", Outcome.FAILED, Reason.NO_DEVICE, "no CUDA device"),
        ("6", Outcome.FAILED, Reason.NO_BINARY, "a module is missing"),
        ("7", Outcome.FAILED, Reason.NO_BINARY, "cannot be used here"),
        ("0", Outcome.FAILED, Reason.EXIT, "batches"),
    ],
)
def test_a_request_that_fails_says_why_and_the_next_is_run(
    runtime: Runtime, batches: str, outcome: Outcome, reason: Reason, text: str
) -> None:
    result, _ = runtime.run(("--batches", batches), 0.3 if batches == "3" else 30.0)
    assert (result.outcome, result.reason, text in result.error) == (outcome, reason, True), result
    assert runtime.run((), 0.0)[0].outcome is Outcome.SUCCEEDED


def test_the_process_gets_no_secrets_of_ours(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "SCALETEST_REDIS_URL",
        "SCALETEST_WORKER_REDIS_URL",
        "SCALETEST_CLIENT_TOKEN",
        "REDIS_PASSWORD",
    ):
        monkeypatch.setenv(name, "S3CRET")
    assert runtime.run((), 0.0)[0].figures["secrets"] == 0


def test_a_worker_that_must_stop_ends_the_process(runtime: Runtime, wake: Wake) -> None:
    before = runtime.run((), 0.0)[0].figures["pid"]
    wake.set()
    with pytest.raises(Interrupted):
        runtime.run(("--batches", "3"), 0.0)
    wake.clear()
    assert runtime.run((), 0.0)[0].figures["pid"] != before


def test_without_torch_the_worker_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, wake: Wake
) -> None:
    monkeypatch.setattr(torch, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="torch is not installed") as refused:
        Runtime(Settings(command=("torch",)), wake)
    assert "scaletest[torch]" in refused.value.hint


def test_arguments_are_read_and_later_ones_win() -> None:
    words = "--model alexnet --mode train --batch 8 --batch 4 --device cpu"
    assert from_words(shlex.split(words)) == TorchWork(
        model=Model.ALEXNET, mode="train", device="cpu", batch=4
    )


@pytest.mark.parametrize(
    "text",
    [
        "--model vgg",
        "--mode test",
        "--model llama --mode train",
        "--batch 0",
        "--batches 0",
        "--device tpu",
        "--batch x",
        "more",
    ],
)
def test_an_impossible_model_or_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        from_words(text.split())


@given(st.lists(st.text(max_size=10), max_size=5))
def test_any_arguments_are_read_or_refused(arguments: list[str]) -> None:
    try:
        assert isinstance(from_words(arguments), TorchWork)
    except InvalidValue:
        pass


# A PyTorch that is older than RMS norms, as far as the child looks at it.


def ask_child(folder: Path, torch_text: str, *arguments: str) -> ToolOutput:
    """What the child that computes says, beside a PyTorch of our own."""
    (folder / "torch.py").write_text(torch_text)
    done = subprocess.run(
        [sys.executable, "-m", "scaletest_workers.torch_child"],
        input=json.dumps([1, arguments]) + "\n",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
        check=False,
    )
    return ToolOutput(done.stdout, done.stderr, done.returncode)


@pytest.mark.parametrize(
    ("torch_text", "why"),
    [
        ("raise ModuleNotFoundError(\"No module named 'torch'\")", "No module named 'torch'"),
        ('raise OSError("libcudart.so.12: cannot open shared object file")', "libcudart.so.12"),
    ],
)
def test_without_a_torch_that_can_be_loaded_nothing_was_measured(
    tmp_path: Path, torch_text: str, why: str
) -> None:
    output = ask_child(tmp_path, torch_text, "--model", "resnet50", "--device", "cpu")
    pytorch = benchmark.read_benchmark({"kind": "PyTorch", "spec": {"model": "resnet50"}})
    # expect no failure of what was to be measured, with the words of PyTorch and what to install
    with pytest.raises(BenchmarkFailed) as error:
        pytorch.kind.parse(pytorch.spec, output)
    assert error.value.failure is Failure.NO_BINARY and error.value.failure.unmeasured
    assert why in "\n".join(error.value.lines) and "pip install" in error.value.remedy


def test_a_missing_module_beside_a_good_answer_is_no_failure() -> None:
    pytorch = benchmark.read_benchmark({"kind": "PyTorch"})
    figures = {
        "batch_wall_ms": 12.5,
        "samples_per_s": 5120.0,
        "cpu_peak_mib": 100,
        "torch_device": "cpu",
    }
    figures |= {"samples": 640, "batches": 10}
    output = ToolOutput(json.dumps({"figures": figures}), "warning: No module named 'triton'")
    assert pytorch.kind.parse(pytorch.spec, output).headlines["batchTime"] == 0.0125
