"""Analysis: known truth in, known answer out."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from scaletest.analysis.evaluation import evaluate
from scaletest.analysis.judge import judge, warnings
from scaletest.analysis.steps import Step, summarise
from scaletest.model import Measurement, Outcome, Plan, Record, Reply, VerdictKind
from scaletest.validation.runner import complete


def record(
    worker: str, ended: float, step: int = 1, ok: bool = True, total_s: float = 0.5
) -> Record:
    outcome = Outcome.SUCCEEDED if ok else Outcome.FAILED
    run_s, wait_s = 0.79 * total_s, 0.2 * total_s
    times = {"run_s": run_s, "wait_s": wait_s, "started_s": ended - run_s, "ended_s": ended}
    return Record("q", step, Reply("r", outcome, worker=worker, **times), total_s)


def step_of(
    workers: int, seconds: float, count: int, offset: float = 0.0, noise: float = 0.0
) -> list[Record]:
    chance = random.Random(workers)
    rows = []
    for number in range(workers):
        at = 100.0 + offset * number
        for _ in range(count):
            rows.append(record(f"w{number}", at, workers, total_s=seconds))
            at += seconds * (1 + noise * chance.uniform(-1, 1))
    return rows


def measured(
    steps: dict[int, list[Record]],
) -> tuple[list[Measurement], dict[tuple[int, int], list[Record]]]:
    """What a runner hands over: measurements, and the same records for both ways of a step."""
    measurements = [Measurement(workers, repeat) for repeat in (0, 1) for workers in steps]
    return measurements, {each.key: steps[each.workers] for each in measurements}


def steps_of(plan: Plan, steps: dict[int, list[Record]]) -> list[Step]:
    return summarise(plan, *measured(steps))


def verdict_of(
    plan: Plan, steps: dict[int, list[Record]], interrupted: str = ""
) -> tuple[VerdictKind, str]:
    verdict = judge(plan, steps_of(plan, steps), interrupted)
    return verdict.kind, verdict.reason


def test_linear_growth_passes() -> None:
    plan = Plan(limit=4, scale=1.9)
    kind, reason = verdict_of(plan, {n: step_of(n, 0.5, 10, 0.01) for n in plan.steps})
    assert kind is VerdictKind.PASS
    assert "2.00" in reason


def test_a_doubling_that_falls_short_fails_and_is_named() -> None:
    plan = Plan(limit=4, scale=1.8)
    kind, reason = verdict_of(
        plan, {1: step_of(1, 1, 10), 2: step_of(2, 1, 10), 4: step_of(4, 1.9, 10)}
    )
    assert kind is VerdictKind.FAIL
    assert "2 -> 4 workers" in reason
    assert "1.05" in reason


def test_a_last_step_that_is_no_doubling_is_judged_by_its_share() -> None:
    plan = Plan(limit=3, scale=2.0)
    steps = steps_of(plan, {n: step_of(n, 1, 10) for n in plan.steps})
    assert steps[-1].ratio is not None
    assert steps[-1].ratio.wanted == pytest.approx(1.5)


def test_a_ratio_that_noise_leaves_undecided_is_invalid() -> None:
    plan = Plan(limit=2, scale=2.0)
    kind, reason = verdict_of(plan, {n: step_of(n, 1, 10, noise=0.3) for n in plan.steps})
    assert kind is VerdictKind.INVALID
    assert "neither" in reason


@pytest.mark.parametrize(
    ("rows", "word"),
    [([], "no request was completed"), (step_of(1, 1, 3), "too few requests completed")],
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


def test_a_measuring_that_was_cut_short_is_undecided() -> None:
    # given enough requests of every step, the last of which ended early since a worker died, expect
    # INVALID
    plan = Plan(limit=2)
    measurements, records = measured({n: step_of(n, 1, 10) for n in plan.steps})
    measurements[-1] = replace(measurements[-1], stop="ended early")
    verdict = judge(plan, summarise(plan, measurements, records))
    assert verdict.kind is VerdictKind.INVALID
    assert verdict.reason == "the measurement with 2 workers was cut short"


@pytest.mark.parametrize(("requests", "word"), [(25, "5 of 25 records"), (19, "1 records")])
def test_records_that_are_missing_or_too_many_make_a_run_invalid(requests: int, word: str) -> None:
    plan = Plan(limit=2)
    measurements, records = measured({n: step_of(n, 1, 10) for n in plan.steps})
    measurements[-1] = replace(measurements[-1], requests=requests)
    verdict = judge(plan, summarise(plan, measurements, records))
    assert verdict.kind is VerdictKind.INVALID
    assert word in verdict.reason
    assert complete(measurements, records) == measurements[:-1]


def test_a_pass_says_what_was_wanted_of_a_last_step_that_is_no_doubling() -> None:
    plan = Plan(limit=3, scale=1.8)
    reason = verdict_of(plan, {n: step_of(n, 1 if n < 3 else 1.01, 10) for n in plan.steps})[1]
    assert "the least is 1.49 where 1.41 is wanted, from 2 to 3" in reason
    # and which slow requests nobody could have seen
    assert reason.endswith("(18 requests with 1 worker cannot show slow ones rarer than 1 in 7)")


def test_a_ratio_above_two_after_a_slow_base_step_is_invalid() -> None:
    # given one worker on a device three times slower than the others, expect INVALID; at 5 % a
    # warning
    plan = Plan(limit=2, scale=1.8)
    slow = {1: step_of(1, 3, 10), 2: [*step_of(1, 3, 10), *others(step_of(1, 1, 30))]}
    kind, reason = verdict_of(
        plan, {n: [replace(row, step=n) for row in rows] for n, rows in slow.items()}
    )
    assert kind is VerdictKind.INVALID
    assert "more than the added workers can explain" in reason
    little = {1: step_of(1, 1.05, 10), 2: step_of(2, 1, 10)}
    assert verdict_of(plan, little)[0] is VerdictKind.PASS
    assert "ratio 2.10" in warnings(steps_of(plan, little))[0]


def others(rows: list[Record]) -> list[Record]:
    return [replace(row, reply=replace(row.reply, worker="w1")) for row in rows]


def test_failures_fail_unless_tolerated() -> None:
    rows = [*step_of(1, 1, 10), record("w0", 105.0, ok=False)]
    assert verdict_of(Plan(limit=1), {1: rows})[0] is VerdictKind.FAIL
    kind, reason = verdict_of(Plan(limit=1, tolerate_failures=2), {1: rows})
    assert kind is VerdictKind.PASS
    assert "2 failed requests, which are tolerated" in reason


def test_overhead_is_total_minus_wait_minus_run() -> None:
    assert record("w", 1.0).overhead_s == pytest.approx(0.005)


def slow_tester(rows: list[Record], overhead_s: float) -> list[Record]:
    return [Record("q", row.step, row.reply, row.total_s + overhead_s) for row in rows]


def test_a_tester_that_costs_much_makes_a_run_invalid_before_any_ratio() -> None:
    plan = Plan(limit=2, scale=1.8)
    steps = {1: step_of(1, 0.5, 30), 2: slow_tester(step_of(2, 0.9, 30), 0.1)}
    kind, reason = verdict_of(plan, steps)
    assert kind is VerdictKind.INVALID
    assert "the tester itself cost 11%" in reason
    assert len(warnings(steps_of(plan, {1: slow_tester(step_of(1, 0.5, 30), 0.02)}))) == 1


def test_books_that_break_littles_law_make_a_run_invalid() -> None:
    # given 30 completions of one worker, a second apart, of requests that were half a second in the
    # system
    rows = [record("w0", 100.0 + number) for number in range(30)]
    kind, reason = verdict_of(Plan(limit=1), {1: rows})
    assert kind is VerdictKind.INVALID
    assert "0.50 of the requests in flight (Little's law)" in reason


def test_a_step_that_never_settled_can_neither_pass_nor_fail() -> None:
    # given a second step whose requests take ever less time, when judged, expect INVALID and the
    # cure
    plan = Plan(limit=2, scale=1.8)
    rows, at = [], [100.0, 100.0]
    for number in range(60):
        for worker in (0, 1):
            at[worker] += 1.0 - 0.01 * number
            rows.append(record(f"w{worker}", at[worker], 2, total_s=1.0 - 0.01 * number))
    verdict = judge(plan, steps_of(plan, {1: step_of(1, 1, 60), 2: rows}))
    assert verdict.kind is VerdictKind.INVALID
    assert "with 2 workers throughput had not settled" in verdict.reason
    assert "<warmup>" in verdict.remedy


def test_a_step_that_changed_halfway_is_invalid_and_says_by_how_much() -> None:
    rows, at = [], 100.0
    for number in range(400):
        at += 1.0 if number < 300 else 1.1
        rows.append(record("w0", at, total_s=1.0 if number < 300 else 1.1))
    kind, reason = verdict_of(Plan(limit=1), {1: rows})
    assert kind is VerdictKind.INVALID
    assert "changed by -8.1%" in reason


def test_a_small_change_and_a_dip_only_warn() -> None:
    rows, at = [], 100.0
    for number in range(400):
        at += 1.5 if 200 <= number < 212 else 1.0
        rows.append(record("w0", at, total_s=1.0))
    lines = warnings(steps_of(Plan(limit=1), {1: rows}))
    assert any("dipped by" in line for line in lines), lines


def test_from_three_repeats_on_the_interval_is_the_one_between_them() -> None:
    # 10, 11 and 12 requests/s: mean 11, standard deviation 1, t(2) = 4.303
    measurements, records = [], {}
    for repeat, per_s in enumerate((10, 10, 11, 11, 12, 12)):
        measurements.append(Measurement(1, repeat, 0.1, 6.0))
        records[1, repeat] = step_of(1, 1 / per_s, 60)
    (step,) = summarise(Plan(limit=1, repeats=3), measurements, records)
    assert step.between
    assert step.throughput.per_s == pytest.approx(11)
    assert step.throughput.half_width == pytest.approx(4.303 / 3**0.5, rel=1e-3)
    # and without repeats that were asked for it is the one within the run
    (step,) = summarise(Plan(limit=1), measurements, records)
    assert not step.between


def test_a_missing_repeat_is_invalid() -> None:
    plan = Plan(limit=1, repeats=2)
    verdict = judge(plan, steps_of(plan, {1: step_of(1, 1, 10)}))
    assert "not every step was measured" in verdict.reason


def test_the_way_up_alone_fails_no_doubling() -> None:
    # given a second step that is far below what is wanted, and a run that was killed before its way
    # down
    plan = Plan(limit=2)
    measurements, records = measured({1: step_of(1, 1, 60), 2: step_of(2, 2, 60)})
    steps = summarise(plan, measurements[:2], records)
    assert steps[1].ratio is not None
    assert steps[1].ratio.kind is VerdictKind.FAIL
    verdict = judge(plan, steps)
    assert (verdict.kind, verdict.reason) == (VerdictKind.INVALID, "not every step was measured")


def both_ways(rows: dict[int, list[Record]], down: dict[int, list[Record]]) -> list[Step]:
    """Steps of a run: these records on the way up, those on the way down."""
    measurements = [
        Measurement(workers, repeat, 0.1, 60.0, "precise") for repeat in (0, 1) for workers in rows
    ]
    records = {
        (workers, repeat): way[workers]
        for repeat, way in enumerate((rows, down))
        for workers in rows
    }
    return summarise(Plan(limit=2), measurements, records)


def test_a_way_with_too_few_requests_says_how_many_it_needs() -> None:
    plan = Plan(limit=2)
    up = {1: step_of(1, 1, 60), 2: step_of(2, 1, 60)}
    verdict = judge(plan, both_ways(up, {1: step_of(1, 1, 3), 2: step_of(2, 1, 60)}))
    assert verdict.kind is VerdictKind.INVALID
    assert (
        "with 1 worker: 3 in one of 2 measurements (needs 4, and 2 of every worker)"
        in verdict.reason
    )


def test_a_run_that_ended_before_it_was_precise_asks_for_time() -> None:
    # given steps whose interval is wider than the plan wants, so that only the time of the run kept
    # it from going on
    plan = Plan(limit=2, scale=1.99)
    up = {1: step_of(1, 1, 30, noise=0.5), 2: step_of(2, 1, 30, noise=0.5)}
    steps = both_ways(up, up)
    assert any(step.throughput.relative > plan.precision for step in steps)
    assert judge(plan, steps).remedy == "allow longer steps: <max_step> 120"
    # and where both are precise, more of the same would not do
    assert judge(replace(plan, precision=0.5), steps).remedy == "ask for <precision> 0.25"


def test_a_worker_that_does_much_less_than_others_gives_a_warning() -> None:
    rows = [
        *step_of(1, 1, 60),
        *[record("slow", 100.0 + 3 * number, 2, total_s=3.0) for number in range(20)],
    ]
    lines = warnings(steps_of(Plan(limit=2), {2: rows}))
    assert any("worker w0 did 3.0 times as much as slow" in line for line in lines), lines


def test_failures_are_grouped_and_counted() -> None:
    rows = [*step_of(1, 1, 10), record("w0", 105.0, ok=False), record("w0", 109.0, ok=False)]
    groups = evaluate(Plan(limit=1), *measured({1: rows}), random.Random(1)).failures
    assert [(group.count, group.first_s, group.last_s) for group in groups] == [(4, 105.0, 109.0)]
