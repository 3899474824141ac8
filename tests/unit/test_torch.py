"""The workload torch without torch: its words, and how its process may answer and end."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.kinds.torch import Model, TorchWork, from_words
from scaletest.model import Outcome, Reason
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.system.waiting import Wake
from workers.runtime import Runtime, Settings
from workers.workloads import torch
from workers.workloads.base import Interrupted

# Answers as torch_child does, without torch; what it is asked for last says how it behaves.
STAND_IN = """
import json, os, sys, time
print("a library talks", file=sys.stderr)
for line in sys.stdin:
    words = json.loads(line)
    batches = words[words.index("--batches") + 1] if "--batches" in words else "10"
    if batches == "1":
        os.kill(os.getpid(), 9)
    if batches == "2":
        sys.exit(3)
    if batches == "3":
        time.sleep(60)
    answers = {
        "4": {"error": "out of memory: 2 GiB", "figures": {"memory_limit_hits": 1}},
        "5": {"error": "torch finds no CUDA device here", "no_device": True},
    }
    told = {"samples": 640, "pid": os.getpid(), "visible": os.environ.get("CUDA_VISIBLE_DEVICES", "")}
    print(json.dumps(answers.get(batches, {"figures": told})), flush=True)
"""


@pytest.fixture
def wake() -> Iterator[Wake]:
    made = Wake()
    yield made
    made.close()


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wake: Wake) -> Iterator[Runtime]:
    """A worker's runtime whose torch is the stand-in."""
    program = tmp_path / "python"
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(STAND_IN))
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(torch.sys, "executable", str(program))
    monkeypatch.setattr(torch, "find_spec", lambda name: True)
    device = tmp_path / "nvidia0"
    device.touch()
    settings = Settings(command=("torch",), device_glob=str(device), preset="nvidia", device_index=0, kill_grace_s=0.1)
    made = Runtime(settings, wake)
    yield made
    made.close()


def test_the_process_stays_and_is_restricted_to_the_workers_device(runtime: Runtime) -> None:
    first, second = (runtime.run((), 0.0)[0] for _ in range(2))
    assert first.outcome is Outcome.SUCCEEDED
    assert first.figures == second.figures
    assert (first.figures["samples"], first.figures["visible"]) == (640, "0")


@pytest.mark.parametrize(
    ("batches", "outcome", "reason", "text"),
    [
        ("1", Outcome.FAILED, Reason.SIGNAL, "ended by signal 9; the memory limit"),
        ("2", Outcome.FAILED, Reason.EXIT, "ended by itself with code 3"),
        ("3", Outcome.TIMED_OUT, Reason.NONE, "torch timed out after 0.3 s"),
        ("4", Outcome.FAILED, Reason.EXIT, "out of memory"),
        ("5", Outcome.FAILED, Reason.NO_DEVICE, "no CUDA device"),
        ("0", Outcome.FAILED, Reason.EXIT, "batches"),
    ],
)
def test_a_request_that_fails_says_why_and_the_next_is_run(
    runtime: Runtime, batches: str, outcome: Outcome, reason: Reason, text: str
) -> None:
    result, _ = runtime.run(("--batches", batches), 0.3 if batches == "3" else 30.0)
    assert (result.outcome, result.reason, text in result.error) == (outcome, reason, True), result
    assert runtime.run((), 0.0)[0].outcome is Outcome.SUCCEEDED


def test_a_worker_that_must_stop_ends_the_process(runtime: Runtime, wake: Wake) -> None:
    before = runtime.run((), 0.0)[0].figures["pid"]
    wake.set()
    with pytest.raises(Interrupted):
        runtime.run(("--batches", "3"), 0.0)
    wake.clear()
    assert runtime.run((), 0.0)[0].figures["pid"] != before


def test_without_torch_the_worker_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, wake: Wake) -> None:
    monkeypatch.setattr(torch, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="torch is not installed") as refused:
        Runtime(Settings(command=("torch",)), wake)
    assert "scaletest[torch]" in refused.value.hint


def test_words_are_read_and_later_ones_win() -> None:
    words = shlex.split("--model alexnet --mode train --batch 8 --batch 4 --size 64 --device cpu --threads 1")
    what = from_words(words)
    assert what == TorchWork(Model.ALEXNET, True, "cpu", 4, 10, 64, "float32", 1)
    assert from_words([]).side == 1024
    assert from_words(["--size", "100"]).flops == 2e6


@pytest.mark.parametrize(
    "text",
    ["--model vgg", "--mode test", "--model llama --mode train", "--mode train", "--batch 0", "--batches 0",
     "--size -1", "--model alexnet --size 62", "--dtype int8", "--device tpu", "--threads -1", "--batch x", "more"],
)  # fmt: skip
def test_what_cannot_be_computed_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        from_words(text.split())


@given(st.lists(st.text(max_size=10), max_size=5))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    try:
        assert isinstance(from_words(words), TorchWork)
    except InvalidValue:
        pass
