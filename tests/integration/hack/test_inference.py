"""The inference service for tests does what its switches say."""

import json
from collections import Counter
from urllib import error, request

import pytest

from tests.integration.services import inference

FRONT = "hack.inference_front"


def post(url: str, body: object) -> tuple[int, str, str]:
    """Status, replica and text of an answer."""
    call = request.Request(url, json.dumps(body).encode(), method="POST")
    try:
        with request.urlopen(call, timeout=30) as answer:
            return answer.status, answer.headers["X-Replica"], answer.read().decode()
    except error.HTTPError as refused:
        return refused.code, "", refused.read().decode()


def metric(url: str, name: str) -> float:
    """A figure of a replica's metrics."""
    with request.urlopen(f"{url}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"vllm:{name}{{"))


def test_an_answer_has_as_many_tokens_as_its_usage_and_metrics_say() -> None:
    with inference("--step", "0.001") as url:
        body = {"prompt": "a b c", "max_tokens": 5}
        whole = json.loads(post(f"{url}/v1/completions", body)[2])
        assert whole["usage"] == {"prompt_tokens": 3, "completion_tokens": 5}
        streamed = post(f"{url}/v1/completions", {**body, "stream": True})[2]
        assert streamed.count('"text"') == 5
        assert streamed.endswith("data: [DONE]\n\n")
        assert (metric(url, "generation_tokens_total"), metric(url, "request_success_total")) == (
            10,
            2,
        )


def test_a_prompt_that_came_before_hits_the_cache() -> None:
    with inference("--step", "0.001", "--cache") as url:
        for _ in range(2):
            post(f"{url}/v1/completions", {"prompt": "a " * 64, "max_tokens": 1})
        assert metric(url, "prefix_cache_hits_total") == 64
        assert metric(url, "prefix_cache_queries_total") == 128


@pytest.mark.parametrize(
    ("balance", "shares"),
    [("turn", {"replica-0": 3, "replica-1": 3}), ("sticky", {"replica-0": 6})],
)
def test_replicas_are_added_and_requests_are_spread_as_asked(
    balance: str, shares: dict[str, int]
) -> None:
    with inference("--step", "0.001", "--balance", balance, module=FRONT) as url:
        addresses = json.loads(post(f"{url}/replicas/2", {})[2])
        assert len(addresses) == 2
        seen = Counter(post(f"{url}/v1/completions", {"prompt": "a"})[1] for _ in range(6))
        assert seen == shares
        assert len(json.loads(post(f"{url}/replicas/1", {})[2])) == 1
