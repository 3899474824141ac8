"""A quick look: the steps that fit into its time, up to where workers pay, and what it prints."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.render.bars import Bar, bar_lines
from scaletest.validation.judging.quick import (
    LONGEST_LOAD_S,
    REQUESTS_PER_WORKER,
    QuickAnswer,
    QuickSteps,
    cores_needed,
    fit_quick_steps,
    quick_answer,
)
from scaletest.validation.plan import Plan
from scaletest.validation.report.quick import quick_lines
from tests.unit.golden_files import golden
from tests.unit.made_runs import COMMAND, loaded, make, rows, sampled, stored

MOST_LINES = 15


@pytest.mark.parametrize(
    ("run_s", "limit", "steps"),
    [
        (0.2, 8, QuickSteps(8, 2.0)),
        (1.4, 16, QuickSteps(4, REQUESTS_PER_WORKER * 1.4)),
        # a limit between two powers is a step
        (0.1, 6, QuickSteps(6, 2.0)),
        (1.25, 6, QuickSteps(4, 5.0)),
        # a request that fits into no step
        (9.0, 8, None),
    ],
)
def test_longer_requests_get_fewer_steps(
    run_s: float, limit: int, steps: QuickSteps | None
) -> None:
    assert fit_quick_steps(run_s, limit) == steps


def test_the_command_to_use_says_how_long_a_long_request_takes(tmp_path: Path) -> None:
    steps = [rows(workers, 2.5, 30) for workers in (1, 2)]
    plan = Plan(limit=2, seconds=2.5, command=("work", "a b"), queue="q")
    lines = list(quick_lines(loaded(stored(tmp_path, plan, steps)).result))
    assert "  scaletest validate --limit 4 --seconds 3s -- work 'a b'" in lines


@given(st.floats(0.0, 2.1), st.integers(2, 4096))
def test_the_steps_never_take_longer_than_they_may(run_s: float, limit: int) -> None:
    steps = fit_quick_steps(run_s, limit)
    plan = Plan(limit=steps.limit, step_s=steps.step_s)
    assert len(plan.steps) * (steps.step_s + run_s) <= LONGEST_LOAD_S
    assert steps.step_s >= REQUESTS_PER_WORKER * run_s
    assert 2 <= steps.limit <= limit


@pytest.mark.parametrize(
    ("seconds", "answer"),
    [
        ({1: 0.5, 2: 0.5, 4: 0.5}, QuickAnswer(4, 4)),
        ({1: 0.5, 2: 0.5, 4: 1.0}, QuickAnswer(2, 4)),
        ({1: 0.5, 2: 1.0, 4: 1.0}, QuickAnswer(1, 4)),
        ({1: 0.5, 3: 0.7, 4: 0.7}, QuickAnswer(4, 4)),
        ({1: 0.5, 3: 0.9, 4: 0.9}, QuickAnswer(1, 4)),
    ],
)
def test_workers_pay_as_long_as_a_doubling_brings_half_of_what_is_ideal(
    tmp_path: Path, seconds: dict[int, float], answer: QuickAnswer
) -> None:
    plan = Plan(limit=max(seconds), queue="q")
    steps = [rows(workers, each, 30) for workers, each in seconds.items()]
    assert quick_answer(loaded(stored(tmp_path, plan, steps)).result.steps) == answer


def test_there_is_no_answer_when_nothing_ended_with_a_single_worker(tmp_path: Path) -> None:
    run = loaded(stored(tmp_path, Plan(limit=2, queue="q"), [rows(1, 0.5, 10, fail_every=1)]))
    assert quick_answer(run.result.steps) is None
    assert quick_answer([]) is None
    assert any("failed" in line for line in quick_lines(run.result))


@pytest.mark.parametrize(
    ("steps", "reason"), [((1,), "before two steps were measured"), ((1, 2), "this is what was")]
)
def test_an_interrupted_look_promises_no_bars_that_it_has_not(
    tmp_path: Path, steps: tuple[int, ...], reason: str
) -> None:
    measured = [rows(workers, 0.5, 30) for workers in steps]
    run = loaded(stored(tmp_path, Plan(limit=2, queue="q"), measured))
    first, second, *_ = quick_lines(replace(run.result, interrupted="Ctrl-C"))
    assert first.startswith(f"interrupted: Ctrl-C; {reason}")
    assert ("1 worker" in second) is (len(steps) > 1)


def test_bars_have_their_names_in_one_column() -> None:
    bars = [Bar("1 worker", 1.0, "1x"), Bar("16 workers", 16.5, "16.5x"), Bar("none", 0.0, "0x")]
    assert list(bar_lines(bars, full_value=16, width=8)) == [
        "  1 worker  ▌         1x",
        "16 workers  ████████  16.5x",
        "      none            0x",
    ]


@pytest.mark.parametrize("case", ["fail", "failures", "limited"])
def test_the_answer_is_short(tmp_path: Path, case: str) -> None:
    lines = list(quick_lines(make(case, tmp_path).result))
    assert len(lines) <= MOST_LINES
    golden(f"quick-{case}.txt", "\n".join((*lines, "")))


def test_a_program_that_scales_gets_a_larger_limit_to_measure(tmp_path: Path) -> None:
    steps = [rows(workers, 0.5, 30) for workers in (1, 2, 4)]
    run = loaded(stored(tmp_path, Plan(limit=4, command=COMMAND, queue="q"), steps))
    golden("quick-scales.txt", "\n".join((*quick_lines(run.result), "")))


def test_the_cause_is_named_with_its_evidence(tmp_path: Path) -> None:
    text = "\n".join(quick_lines(sampled(tmp_path / "run").result))
    assert "What stops it: waiting for a CPU" in text
    assert "cores are busy" in text
    assert "What to try:" in text


def test_a_program_that_uses_most_cores_alone_is_stopped_by_the_cpu(tmp_path: Path) -> None:
    # given threads that fill 1.6 of 2 cores, so that no state of a request grew beyond doubt
    result = sampled(tmp_path / "run").result
    alone = result.resources[0]
    threaded = replace(alone, nodes=tuple(replace(node, requests_cpu=1.6) for node in alone.nodes))
    assert cores_needed([threaded], 1) is None
    assert cores_needed([threaded], 2) == (1.6, 2.0)
    # without the CPU time of the first step the next one counts
    unknown = replace(alone, nodes=tuple(replace(node, requests_cpu=None) for node in alone.nodes))
    assert cores_needed([unknown, replace(threaded, workers=2)], 2) is None
    assert cores_needed([unknown], 64) is None
    text = "\n".join(quick_lines(replace(result, causes=None, resources=[threaded])))
    assert "What stops it: the CPU; a request alone uses 1.6 of 2 cores, and 4 workers" in text
    assert "fewer threads in each program" in text
    assert "not clear" in "\n".join(quick_lines(replace(result, causes=None, resources=[])))
