"""A worker that stops while it is measured must not pass as the end of the step."""

from __future__ import annotations

import random

import pytest

from scaletest.analysis.evaluation import evaluate
from scaletest.analysis.throughput import stall
from scaletest.model import Plan, VerdictKind
from tests.unit.made import measured


def test_a_worker_that_stops_half_way_makes_the_run_invalid() -> None:
    # given two workers, one of which has no device any more after half of the step
    measurements, records = measured({1: 1.0, 2: 1.0}, count=60)
    records[2, 0] = [
        row for row in records[2, 0] if row.reply.worker == "w0" or row.reply.ended_s < 1030
    ]
    result = evaluate(Plan(limit=2, queue="q"), measurements, records, random.Random(1))
    assert result.verdict.kind is VerdictKind.INVALID
    assert "w1 finished nothing in the last 30" in result.verdict.reason
    assert [step.sound for step in result.steps] == [True, False]


def test_one_long_last_request_is_no_stall() -> None:
    assert stall({"a": [1, 2, 5, 6], "b": [1, 2, 3, 10]}) is None
    assert (
        stall({"a": [1, 2, 3, 4], "b": [1, 2, 3, 10]}) is None
    )  # within three of the longest, 7 s


@pytest.mark.parametrize(
    "ends", [{}, {"a": []}, {"a": [1.0, 2.0]}, {"a": [1.0], "b": [9.0]}, {"a": [], "b": [1, 2]}]
)
def test_too_few_requests_are_no_stall(ends: dict[str, list[float]]) -> None:
    assert stall(ends) is None


@pytest.mark.parametrize("workers", [2, 8, 64])
def test_chance_seldom_looks_like_a_stall(workers: int) -> None:
    # given exponential run times, measured until one instant
    chance, wrong = random.Random(5), 0
    for _ in range(200):
        ends = {}
        for index in range(workers):
            now, times = 0.0, []
            while now < 12:
                times.append(now)
                now += chance.expovariate(1.0)
            ends[str(index)] = times
        wrong += stall(ends) is not None
    assert wrong <= 2
