"""Analysis: known truth in, known answer out."""

from __future__ import annotations

import random

import pytest

from scaletest.analysis.judge import judge, summarise, warnings
from scaletest.analysis.student import t95
from scaletest.analysis.throughput import throughput
from scaletest.model import Outcome, Plan, Record, Reply, VerdictKind


def record(worker: str, ended: float, step: int = 1, ok: bool = True, total_s: float = 0.5) -> Record:
    outcome = Outcome.SUCCEEDED if ok else Outcome.FAILED
    run_s, wait_s = 0.79 * total_s, 0.2 * total_s
    return Record("q", step, Reply("r", outcome, worker=worker, ended_s=ended, run_s=run_s, wait_s=wait_s), total_s)


def step_of(workers: int, seconds: float, count: int, offset: float = 0.0, noise: float = 0.0) -> list[Record]:
    chance = random.Random(workers)
    rows = []
    for number in range(workers):
        at = 100.0 + offset * number
        for _ in range(count):
            rows.append(record(f"w{number}", at, workers, total_s=seconds))
            at += seconds * (1 + noise * chance.uniform(-1, 1))
    return rows


@pytest.mark.parametrize("offset", [0.0, 0.07])
def test_workers_in_lockstep_are_counted_exactly(offset: float) -> None:
    # given 8 workers that finish in bursts every half second, when measured, expect 16 a second, not 17
    assert throughput(step_of(8, 0.5, 10, offset), 8).per_s == pytest.approx(16.0)


def test_interval_covers_the_truth() -> None:
    # given run times that scatter evenly by 30 %, over 200 seeds, expect the 95 % interval to cover most of the time
    covered = 0
    for seed in range(200):
        chance = random.Random(seed)
        rows = []
        for number in range(4):
            at = 0.0
            for _ in range(20):
                rows.append(record(f"w{number}", at))
                at += chance.uniform(0.7, 1.3)
        rate = throughput(rows, 4)
        covered += abs(rate.per_s - 4.0) <= rate.half_width
    assert 180 <= covered <= 199


def test_too_few_is_said() -> None:
    assert not throughput([], 1).enough
    assert not throughput(step_of(1, 1.0, 7), 1).enough
    assert throughput(step_of(1, 1.0, 8), 1).enough
    assert not throughput(step_of(4, 1.0, 2), 4).enough
    # given a worker that never finished anything
    assert not throughput(step_of(3, 1.0, 10), 4).enough


def test_t_quantiles_fall() -> None:
    values = [t95(n) for n in range(200)]
    assert values == sorted(values, reverse=True)
    assert t95(1) == pytest.approx(12.706, rel=1e-4)
    assert t95(10**6) == pytest.approx(1.96, rel=1e-4)


def verdict_of(plan: Plan, steps: dict[int, list[Record]], interrupted: str = "") -> tuple[VerdictKind, str]:
    verdict = judge(plan, summarise(plan, steps), interrupted)
    return verdict.kind, verdict.reason


def test_linear_growth_passes() -> None:
    plan = Plan(limit=4, scale=1.9)
    kind, reason = verdict_of(plan, {n: step_of(n, 0.5, 10, 0.01) for n in plan.steps})
    assert kind is VerdictKind.PASS
    assert "2.00" in reason


def test_a_doubling_that_falls_short_fails_and_is_named() -> None:
    plan = Plan(limit=4, scale=1.8)
    kind, reason = verdict_of(plan, {1: step_of(1, 1, 10), 2: step_of(2, 1, 10), 4: step_of(4, 1.9, 10)})
    assert kind is VerdictKind.FAIL
    assert "2 -> 4 workers" in reason
    assert "1.05" in reason


def test_a_last_step_that_is_no_doubling_is_judged_by_its_share() -> None:
    plan = Plan(limit=3, scale=2.0)
    steps = summarise(plan, {n: step_of(n, 1, 10) for n in plan.steps})
    assert steps[-1].ratio is not None
    assert steps[-1].ratio.wanted == pytest.approx(1.5)


def test_noise_that_decides_nothing_is_invalid() -> None:
    plan = Plan(limit=2, scale=2.0)
    kind, reason = verdict_of(plan, {n: step_of(n, 1, 10, noise=0.3) for n in plan.steps})
    assert kind is VerdictKind.INVALID
    assert "neither" in reason


@pytest.mark.parametrize(
    ("rows", "word"), [([], "no request was completed"), (step_of(1, 1, 3), "too few requests completed")]
)
def test_nothing_or_too_little_is_invalid(rows: list[Record], word: str) -> None:
    kind, reason = verdict_of(Plan(limit=1), {1: rows})
    assert kind is VerdictKind.INVALID
    assert word in reason


def test_a_missing_step_is_invalid() -> None:
    assert verdict_of(Plan(limit=2), {1: step_of(1, 1, 10)})[0] is VerdictKind.INVALID


def test_an_interruption_is_invalid_whatever_was_measured() -> None:
    assert verdict_of(Plan(limit=1), {1: step_of(1, 1, 10)}, "Ctrl-C") == (
        VerdictKind.INVALID,
        "interrupted: Ctrl-C",
    )


def test_failures_fail_unless_tolerated() -> None:
    rows = [*step_of(1, 1, 10), record("w0", 1.0, ok=False)]
    assert verdict_of(Plan(limit=1), {1: rows})[0] is VerdictKind.FAIL
    assert verdict_of(Plan(limit=1, tolerate_failures=1), {1: rows})[0] is VerdictKind.PASS


def test_overhead_is_what_remains() -> None:
    assert record("w", 1.0).overhead_s == pytest.approx(0.005)


def slow_tester(rows: list[Record], overhead_s: float) -> list[Record]:
    return [Record("q", row.step, row.reply, row.total_s + overhead_s) for row in rows]


def test_a_tester_that_costs_much_makes_a_run_invalid_before_any_ratio() -> None:
    plan = Plan(limit=2, scale=1.8)
    steps = {1: step_of(1, 0.5, 30), 2: slow_tester(step_of(2, 0.9, 30), 0.1)}
    kind, reason = verdict_of(plan, steps)
    assert kind is VerdictKind.INVALID
    assert "the tester itself cost 11%" in reason
    assert len(warnings(summarise(plan, {1: slow_tester(step_of(1, 0.5, 30), 0.02)}))) == 1


def test_books_that_break_littles_law_make_a_run_invalid() -> None:
    # given 30 completions of one worker, a second apart, of requests that were half a second in the system
    rows = [record("w0", float(number)) for number in range(30)]
    kind, reason = verdict_of(Plan(limit=1), {1: rows})
    assert kind is VerdictKind.INVALID
    assert "0.50 of the requests in flight (Little's law)" in reason
