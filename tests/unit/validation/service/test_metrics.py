"""What replicas tell of themselves, and what it says about a run."""

import math
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from scaletest.load.http_call import HttpCall
from scaletest.model.verdict import VerdictKind
from scaletest.validation.service.judging import evaluate_service
from scaletest.validation.service.metrics import Look, metrics_between, parse_metrics, watch_metrics
from scaletest.validation.service.plan import ServicePlan
from scaletest.validation.service.visit import ReplicaMetrics
from tests.conftest import eventually
from tests.unit.validation.service.simulated import Service
from tests.unit.validation.service.test_service import validated

PLAN = ServicePlan((1, 2), in_flight=12, step_s=4.0)
TEXT = """\
# HELP vllm:num_requests_running Number of requests
vllm:num_requests_running{model_name="a b"} 3.0
vllm:request_success_total{finished_reason="stop"} 5
vllm:request_success_total{finished_reason="length"} 7 1700000000
vllm:generation_tokens_total nonsense
other_total 9
"""


def test_figures_are_summed_over_labels_and_nonsense_is_left_out() -> None:
    assert parse_metrics(TEXT) == {"held": 3.0, "requests": 12.0}


def test_counters_grow_and_gauges_are_means_between_the_looks() -> None:
    looks = [
        Look(
            float(at),
            {
                "a": {"held": float(at), "requests": 10.0 * at, "tokens": 6.0 * at},
                "b": {"held": 1.0},
            },
        )
        for at in range(6)
    ]
    found = metrics_between(looks, 0.5, 4.5)
    assert found["a"] == ReplicaMetrics(requests=30.0, tokens_per_s=6.0, held=2.5)
    assert found["b"].requests is None
    assert metrics_between(looks, 0.5, 1.5) == {}


class Answers(BaseHTTPRequestHandler):
    """Answers with the next of these, and with the last again and again."""

    answers: list[bytes]

    def do_GET(self) -> None:
        self.wfile.write(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])

    def log_message(self, *message: object) -> None:
        """Be silent."""


@contextmanager
def watch(*answers: bytes) -> Iterator[Sequence[Look]]:
    """Watch a replica that answers so."""
    handler = type("Handler", (Answers,), {"answers": list(answers)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            with watch_metrics({"a": url}, HttpCall(url)) as looks:
                yield looks
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaletest.validation.service.metrics.LOOK_S", 0.01)


@pytest.mark.usefixtures("_often")
def test_metrics_are_read_after_errors_that_pass() -> None:
    sound = b"HTTP/1.0 200 OK\r\n\r\nvllm:num_requests_running 3.0\n"
    cut = b"HTTP/1.0 200 OK\r\nContent-Length: 99\r\n\r\nvllm"
    failed = b"HTTP/1.0 503 Unavailable\r\n\r\n"
    with watch(failed, b"no HTTP at all\r\n", cut, sound) as looks:
        found = eventually(lambda: metrics_between(looks, 0.0, math.inf))
    assert found["a"].held == 3.0


def judged(change: Any, plan: ServicePlan = PLAN, **service: Any) -> Any:
    """The verdict on a run whose visits are changed."""
    result = validated(Service(**service), plan)
    visits: list[Any] = [row for step in result.steps for row in step.results]
    return evaluate_service(plan, [change(visit) for visit in visits], random.Random(1)).verdict


def told(visit: Any, **figures: float) -> Any:
    """The visit with what one replica told."""
    return replace(visit, metrics={"a": ReplicaMetrics(**figures)})


def test_a_cache_that_serves_more_in_some_steps_measures_the_cache() -> None:
    verdict = judged(
        lambda visit: told(visit, cache_queries=100.0, cache_hits=40.0 * (visit.repeat % 2))
    )
    assert verdict.kind is VerdictKind.INVALID
    assert "prefix cache" in verdict.reason


def test_tokens_that_somebody_else_got_are_noticed() -> None:
    verdict = judged(lambda visit: told(visit, tokens_per_s=2.0 * visit.tokens_per_s))
    assert verdict.kind is VerdictKind.INVALID
    assert "do not add up" in verdict.reason


def test_replicas_that_hold_fewer_requests_than_were_sent_have_a_router_in_front() -> None:
    verdict = judged(lambda visit: told(visit, held=5.0, requests=9.0), least_gap_s=0.08)
    assert verdict.kind is VerdictKind.FAIL
    assert "lets 5 of 24 requests in flight through" in verdict.reason


def test_balance_is_known_by_the_replicas_own_count() -> None:
    def change(visit: Any) -> Any:
        rows = {
            f"r{number}": ReplicaMetrics(requests=0.0 if number else 50.0)
            for number in range(visit.count)
        }
        return replace(visit, replicas={}, metrics=rows)

    verdict = judged(change, choose=lambda number, count: 0)
    assert verdict.kind is VerdictKind.FAIL
    assert "cause: balance" in verdict.reason
