"""A worker that stops while it is measured must not pass as the end of the step, and one that
others keep waiting hides no throughput.
"""

import random
from dataclasses import replace
from heapq import heappop, heappush, heapreplace

import pytest

from scaletest.model import Measurement, Outcome, Record, Reply, VerdictKind
from scaletest.stats.completions import Completions
from scaletest.validation.judging.evaluation import evaluate
from scaletest.validation.judging.stall import find_stall, find_starved
from scaletest.validation.judging.steps import summarise
from scaletest.validation.plan import Plan
from tests.unit.made import measured


def test_a_worker_that_stops_half_way_makes_the_run_invalid() -> None:
    # given two workers, one of which has no device any more after half of the step
    measurements, records = measured({1: 1.0, 2: 1.0}, count=60)
    half_s = records[2, 0][0].reply.started_s + 15.0
    records[2, 0] = [
        row for row in records[2, 0] if row.reply.worker == "w0" or row.reply.ended_s < half_s
    ]
    result = evaluate(Plan(limit=2, queue="q"), measurements, records, random.Random(1))
    assert result.verdict.kind is VerdictKind.INVALID
    assert "w1 finished nothing in the last 15" in result.verdict.reason
    assert [step.sound for step in result.steps] == [True, False]


def test_one_long_last_request_is_no_stall() -> None:
    assert find_stall(Completions({"a": [1, 2, 5, 6], "b": [1, 2, 3, 10]})) is None
    # within three of the longest, 7 s
    assert find_stall(Completions({"a": [1, 2, 3, 4], "b": [1, 2, 3, 10]})) is None


@pytest.mark.parametrize(
    "ends", [{}, {"a": []}, {"a": [1.0, 2.0]}, {"a": [1.0], "b": [9.0]}, {"a": [], "b": [1, 2]}]
)
def test_too_few_requests_are_no_stall(ends: dict[str, list[float]]) -> None:
    assert find_stall(Completions(ends)) is None


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
        wrong += find_stall(Completions(ends)) is not None
    assert wrong <= 2


def refused_at_the_door(
    workers: int, seconds: float, repeat: int = 0, seed: int = 1
) -> tuple[Measurement, list[Record]]:
    """A step against a service of two slots, 0.13 s a request, that sends others away for a second.

    Who is served asks again at once, so a few workers have the service for themselves.
    """
    chance = random.Random(f"{workers} {repeat} {seed}")
    begin_s = 1000.0 + 100.0 * repeat
    # (asks at, worker, since when it has its request)
    asking = [(begin_s + chance.uniform(0.0, 0.01), index, begin_s) for index in range(workers)]
    slots, rows = [0.0, 0.0], []
    while asking:
        now, index, began_s = heappop(asking)
        if slots[0] > now:
            heappush(asking, (now + 1.0 + chance.uniform(0.0, 0.01), index, began_s))
            continue
        ended_s = now + chance.gauss(0.13, 0.005)
        heapreplace(slots, ended_s)
        reply = Reply(
            f"{workers}-{repeat}-{len(rows)}",
            Outcome.SUCCEEDED,
            exit_code=0,
            run_s=ended_s - began_s,
            worker=f"w{index}",
            node="here",
            enqueued_s=began_s,
            started_s=began_s,
            ended_s=ended_s,
        )
        rows.append(Record("q", workers, reply, ended_s - began_s, repeat))
        # who still holds a request when the load ends finishes it
        if ended_s < begin_s + seconds:
            heappush(asking, (ended_s + chance.uniform(0.01, 0.02), index, ended_s))
    return Measurement(workers, repeat, 0.1, seconds, "longest step"), rows


@pytest.mark.parametrize("seed", range(5))
def test_flat_throughput_fails_a_doubling_although_workers_starve(seed: int) -> None:
    steps = [
        refused_at_the_door(workers, 12.0, repeat, seed)
        for repeat in (0, 1)
        for workers in (1, 2, 4, 8)
    ]
    measurements = [measurement for measurement, _ in steps]
    records = {measurement.key: rows for measurement, rows in steps}
    plan = Plan(limit=8, scale=1.8, queue="q")
    result = evaluate(plan, measurements, records, random.Random(1))
    # given workers that were let in for the first time when most of the step was over
    late = [line for line in result.warnings if "finished its first request" in line]
    assert late and late[0].startswith(("4 workers: w", "8 workers: w"))
    # expect the throughput that all have together, for which it does not matter who has it
    rates = {step.workers: step.throughput for step in result.steps}
    assert rates[8].enough and rates[8].per_s == pytest.approx(rates[2].per_s, rel=0.15)
    assert result.verdict.kind is VerdictKind.FAIL
    assert result.verdict.reason.startswith("2 -> 4 workers: ratio ")


def test_a_long_first_request_is_no_starvation_where_throughput_grows() -> None:
    # given a step whose first worker begins with a request of 40 s
    measurements, records = measured({1: 1.0, 2: 1.0}, count=60)
    begun, *others = (row for row in records[2, 0] if row.reply.worker == "w0")
    long = replace(begun.reply, ended_s=begun.reply.ended_s + 40.0)
    records[2, 0] = [
        replace(begun, reply=long),
        *(row for row in others if row.reply.ended_s > long.ended_s),
        *(row for row in records[2, 0] if row.reply.worker == "w1"),
    ]
    assert find_starved(Completions.of(records[2, 0])) is not None
    steps = summarise(Plan(limit=2, queue="q"), measurements, records)
    assert [step.samples[0].starved for step in steps] == [None, None]


def test_completions_dealt_in_turn_have_cycles_of_n_over_throughput() -> None:
    hogged = Completions({"a": [1.0, 2.0, 3.0, 4.0, 5.0, 7.0], "b": [6.0, 8.0]})
    dealt = hogged.dealt_in_turn
    assert dealt.by_worker == {"a": [1.0, 3.0, 5.0, 7.0], "b": [2.0, 4.0, 6.0, 8.0]}
