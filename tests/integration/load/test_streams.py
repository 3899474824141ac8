"""Streams of an inference service, as the load sees them."""

import json
from typing import Any
from urllib.request import urlopen

import pytest

from scaletest.load.http import HttpLoad
from scaletest.load.level_load import LoadOrder
from scaletest.load.prompts import Prompts
from scaletest.load.requests import make_call
from scaletest.model.attempt import INCOMPLETE, OK, RESET
from scaletest.model.http_options import HttpOptions
from tests.conftest import call
from tests.integration.services import inference


def stream(url: str, kind: str, count: int = 8, in_flight: int = 2) -> Any:
    """Attempts of as many streams, so many at a time."""
    options = HttpOptions("", "", (), openai=kind, replica_header="X-Replica")
    load = HttpLoad(make_call(options, url, 30.0, in_flight), prompts=Prompts(kind, "m", 32, 6))
    try:
        order = LoadOrder(1.0, parallel=in_flight, count=count)
        return load.measure(order, lambda: False, lambda ended, failed: None).samples
    finally:
        load.close()


@pytest.mark.parametrize("kind", ["chat", "completions"])
def test_tokens_are_counted_by_usage_and_the_first_comes_before_the_end(kind: str) -> None:
    with inference("--step", "0.01") as url:
        for attempt in stream(url, kind):
            assert (attempt.outcome, attempt.pod) == (OK, "replica-0")
            assert (attempt.tokens, attempt.prompt_tokens) == (6, 32)
            assert not attempt.counts_chunks
            assert attempt.sent_s < attempt.first_s < attempt.ended_s


def test_the_service_has_as_many_requests_as_were_asked_for_and_never_more() -> None:
    with inference("--slots", "8") as url:
        assert {row.outcome for row in stream(url, "completions", count=120, in_flight=24)} == {OK}
        with urlopen(f"{url}/metrics", timeout=30) as answer:
            metrics = answer.read().decode()
    assert 'vllm:most_requests{model_name="m"} 24\n' in metrics


def test_without_usage_chunks_are_counted_and_said_so() -> None:
    with inference("--step", "0.001", "--no-usage") as url:
        assert {(row.tokens, row.counts_chunks) for row in stream(url, "completions")} == {
            (6, True)
        }


def test_a_stream_that_is_cut_is_no_success() -> None:
    with inference("--step", "0.005", "--half-close", "2") as url:
        outcomes = [row.outcome for row in stream(url, "completions")]
    assert outcomes.count(OK) == 4
    assert sum(outcome in (RESET, INCOMPLETE) for outcome in outcomes) == 4


def test_saturate_shows_the_tokens_of_streams() -> None:
    with inference("--step", "0.005", "--slots", "2") as url:
        done = call(
            *("saturate", url, "--openai", "completions", "--model", "m", "--output-tokens", "4"),
            *("--load", "closed", "--start", "2", "--maximum", "4", "--precision", "0.2"),
            *("--step-time", "1", "--warm", "0.5", "--format", "json"),
        )
    assert done.returncode in (0, 4), done.stderr
    streams = [step["streams"] for step in json.loads(done.stdout)["steps"]]
    assert all(row["output_tokens"] == 4 and row["tokens_per_s"] > 0 for row in streams)
    assert not any(row["counts_chunks"] for row in streams)
