"""The workload torch for real, on the CPU with tiny batches."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import Client
from scaletest.model import Request
from tests.conftest import call, wait_for
from tests.unit.valid import checked

ARGUMENTS = {
    "alexnet": ("--model", "alexnet"),
    "alexnet-train": ("--model", "alexnet", "--mode", "train"),
    "resnet50": ("--model", "resnet50"),
    "resnet50-train": ("--model", "resnet50", "--mode", "train"),
    "llama": ("--model", "llama"),
}
TINY = ("--device", "cpu", "--batch", "2", "--batches", "2")


@pytest.fixture(autouse=True)
def installed() -> None:
    """An extra of half a gigabyte is no part of a test environment, in CI neither."""
    if find_spec("torch") is None:
        pytest.skip("torch is not installed (pip install 'scaletest[torch]')")


def test_every_model_runs_through_the_queue(client: Client, start: Callable[..., Any]) -> None:
    start("--", "torch", *TINY)
    client.submit([Request(name, "q", arguments) for name, arguments in ARGUMENTS.items()])
    replies = wait_for(client, len(ARGUMENTS), 500)
    assert {name: replies[name].error for name in ARGUMENTS} == dict.fromkeys(ARGUMENTS, "")
    for reply in replies.values():
        assert (
            reply.figures["samples"],
            reply.figures["batches"],
            reply.figures["torch_device"],
        ) == (4, 2, "cpu")


def test_samples_per_second_come_out_of_a_validation(tmp_path: Path) -> None:
    line = (
        "validate",
        "--local",
        "--limit",
        "1",
        "--seconds",
        "0.1",
        "--precision",
        "0.2",
        "--max-step",
        "30",
    )
    arguments = ("torch", *ARGUMENTS["alexnet"], *TINY)
    done = call(*line, "--run-dir", str(tmp_path / "run"), "--format", "json", "--", *arguments)
    (step,) = checked(json.loads(done.stdout))["steps"]
    assert step["work"]["samples"]["per_s"] == pytest.approx(4 * step["throughput_per_s"])
