"""The verdict of a validation: known truth in, known answer out."""

import random
from dataclasses import replace
from typing import Any

import pytest

from scaletest.model import Measurement, Outcome, Record, Reply, VerdictKind
from scaletest.validation.judging.judge import judge
from scaletest.validation.judging.steps import Step, summarise
from scaletest.validation.judging.warnings import find_warnings
from scaletest.validation.measure.runner import complete_measurements
from scaletest.validation.plan import Plan


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


def slow_tester(rows: list[Record], overhead_s: float) -> list[Record]:
    return [replace(row, total_s=row.total_s + overhead_s) for row in rows]


def slow_base() -> dict[int, list[Record]]:
    """One worker on a device three times slower than that of the other."""
    first = step_of(1, 3, 10)
    second = [replace(row, reply=replace(row.reply, worker="w1")) for row in step_of(1, 1, 30)]
    return {1: first, 2: [replace(row, step=2) for row in [*first, *second]]}


def changed_halfway() -> list[Record]:
    rows, at = [], 100.0
    for number in range(400):
        seconds = 1.0 if number < 300 else 1.1
        at += seconds
        rows.append(record("w0", at, total_s=seconds))
    return rows


ONE_FAILED = {1: [*step_of(1, 1, 10), record("w0", 105.0, ok=False)]}


@pytest.mark.parametrize(
    ("plan", "steps", "kind", "words"),
    [
        (
            Plan(limit=4, scale=1.9),
            {n: step_of(n, 0.5, 10, 0.01) for n in (1, 2, 4)},
            VerdictKind.PASS,
            ["2.00"],
        ),
        (
            Plan(limit=4, scale=1.8),
            {1: step_of(1, 1, 10), 2: step_of(2, 1, 10), 4: step_of(4, 1.9, 10)},
            VerdictKind.FAIL,
            ["2 -> 4 workers", "1.05"],
        ),
        (
            Plan(limit=2, scale=1.99),
            {n: step_of(n, 1, 10, noise=0.3) for n in (1, 2)},
            VerdictKind.INVALID,
            ["to call"],
        ),
        # a last step that is no doubling; and a tail that nobody could have seen
        (
            Plan(limit=3, scale=1.8),
            {n: step_of(n, 1 if n < 3 else 1.01, 10) for n in (1, 2, 3)},
            VerdictKind.PASS,
            ["the least is 1.49 where 1.41 is wanted, from 2 to 3"],
        ),
        (
            Plan(limit=2, thresholds=("run.p90<9s",)),
            {n: step_of(n, 1, 40) for n in (1, 2)},
            VerdictKind.PASS,
            [
                "(too few requests to judge tail latency: with 78 requests at 1 worker, slow ones"
                " rarer than 1 in 27 would go unnoticed)"
            ],
        ),
        (Plan(limit=1), {1: []}, VerdictKind.INVALID, ["no request was completed"]),
        (Plan(limit=1), {1: step_of(1, 1, 3)}, VerdictKind.INVALID, ["too few requests completed"]),
        # a step is missing, or a repeat
        (Plan(limit=2), {1: step_of(1, 1, 10)}, VerdictKind.INVALID, ["not every step"]),
        (
            Plan(limit=1, repeats=2),
            {1: step_of(1, 1, 10)},
            VerdictKind.INVALID,
            ["not every step was measured"],
        ),
        (
            Plan(limit=2, scale=1.8),
            slow_base(),
            VerdictKind.INVALID,
            ["more than the added workers can explain"],
        ),
        (Plan(limit=1), ONE_FAILED, VerdictKind.FAIL, []),
        (
            Plan(limit=1, tolerate_failures=2),
            ONE_FAILED,
            VerdictKind.PASS,
            ["one step, no doubling to judge"],
        ),
        # before any ratio
        (
            Plan(limit=2, scale=1.8),
            {1: step_of(1, 0.5, 30), 2: slow_tester(step_of(2, 0.9, 30), 0.1)},
            VerdictKind.INVALID,
            ["scaletest itself cost 11%"],
        ),
        # completions of one worker, a second apart, of requests that took half a second
        (
            Plan(limit=1),
            {1: [record("w0", 100.0 + number) for number in range(30)]},
            VerdictKind.INVALID,
            ["0.50 of the requests in flight (Little's law)"],
        ),
        (Plan(limit=1), {1: changed_halfway()}, VerdictKind.INVALID, ["changed by -8.1%"]),
    ],
)
def test_a_verdict_follows_from_what_was_measured(
    plan: Plan, steps: dict[int, list[Record]], kind: VerdictKind, words: list[str]
) -> None:
    verdict = judge(plan, steps_of(plan, steps))
    assert verdict.kind is kind
    assert all(word in verdict.reason for word in words), verdict.reason


def test_a_base_step_that_is_a_little_slow_and_a_tester_that_costs_a_little_only_warn() -> None:
    plan = Plan(limit=2, scale=1.8)
    steps = steps_of(plan, {1: step_of(1, 1.05, 10), 2: step_of(2, 1, 10)})
    assert judge(plan, steps).kind is VerdictKind.PASS
    assert "ratio 2.10" in find_warnings(steps)[0]
    assert len(find_warnings(steps_of(plan, {1: slow_tester(step_of(1, 0.5, 30), 0.02)}))) == 1


def test_an_interruption_is_invalid_whatever_was_measured() -> None:
    plan = Plan(limit=1)
    verdict = judge(plan, steps_of(plan, {1: step_of(1, 1, 10)}), interrupted="Ctrl-C")
    assert (verdict.kind, verdict.reason) == (VerdictKind.INVALID, "interrupted: Ctrl-C")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        # a worker died
        ({"stop": "ended early"}, "the measurement with 2 workers was cut short"),
        ({"requests": 25}, "20 records with 2 workers are there, but 25 were written"),
        ({"requests": 19}, "20 records with 2 workers are there, but 19 were written"),
    ],
)
def test_a_measurement_that_is_not_whole_makes_a_run_invalid(
    change: dict[str, Any], word: str
) -> None:
    plan = Plan(limit=2)
    measurements, records = measured({n: step_of(n, 1, 10) for n in plan.steps})
    measurements[-1] = replace(measurements[-1], **change)
    verdict = judge(plan, summarise(plan, measurements, records))
    assert verdict.kind is VerdictKind.INVALID
    assert word in verdict.reason
    assert (
        "requests" not in change
        or complete_measurements(measurements, records) == measurements[:-1]
    )


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


def test_the_way_up_alone_fails_no_doubling() -> None:
    # given a second step that is far below what is wanted, and a run that was killed before its way
    # down
    plan = Plan(limit=2)
    measurements, records = measured({1: step_of(1, 1, 60), 2: step_of(2, 2, 60)})
    steps = summarise(plan, measurements[:2], records)
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
    assert "with 1 worker: 3 in one pass (needs 4, and 2 of every worker)" in verdict.reason


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
    lines = find_warnings(steps_of(Plan(limit=2), {2: rows}))
    assert any("worker w0 did 3.0 times as much as slow" in line for line in lines), lines
