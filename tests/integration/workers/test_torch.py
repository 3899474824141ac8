"""The workload torch for real, on the CPU with tiny batches."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from scaletest.broker import Client
from scaletest.model import Request
from tests.conftest import wait_for

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
