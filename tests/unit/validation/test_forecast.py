"""What a plan will cost, before it is paid."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.cli.output import Output
from scaletest.validation.commands.validate_run import show_plan
from scaletest.validation.judging.forecast import expected_run_s, longest_load_s, longest_run_s
from scaletest.validation.plan import Plan


@pytest.mark.parametrize(
    ("plan", "seconds"),
    [
        # sleeps of 2 s up to 4 workers: on each way 4, 2 and 2 completions a worker and a drain of
        # 2 s, and 4 starts of 0.3 s
        (Plan(limit=4, seconds=2.0), 2 * (8 + 4 + 4 + 3 * 2) + 4 * 0.3),
        # 0.1 % wanted: one worker needs (1.96 x 0.005 / 0.001)^2 = 97 cycles
        (Plan(limit=1, seconds=0.5, precision=0.001), 2 * (50 * 0.5 + 0.5) + 0.3),
        # the longest step bounds it
        (Plan(limit=1, seconds=1.0, precision=0.0001, max_step_s=10), 10 + 2 * 1.0 + 0.3),
    ],
)
def test_a_forecast_follows_from_the_precision_and_the_longest_step(
    plan: Plan, seconds: float
) -> None:
    assert expected_run_s(plan) == pytest.approx(seconds)


def test_each_part_of_a_step_has_a_warm_up_of_its_own() -> None:
    fixed = Plan(limit=1, seconds=1.0, step_s=20.0, warmup_s=4.0)
    # two parts of 20 / 2 + 4 / 2 + 1, a drain of 1 s each and the start of a worker
    assert longest_load_s(fixed) == pytest.approx(26.0)
    assert expected_run_s(fixed) == pytest.approx(26.0 + 2 * 1.0 + 0.3)
    assert longest_load_s(replace(fixed, step_s=0.0, max_step_s=20.0)) == pytest.approx(24.0)


@given(
    st.integers(1, 300),
    st.floats(0.001, 1000),
    st.integers(1, 5),
    st.floats(0.0, 20.0) | st.none(),
)
def test_any_plan_has_a_forecast(
    limit: int, seconds: float, repeats: int, warmup_s: float | None
) -> None:
    plan = Plan(limit=limit, seconds=seconds, repeats=repeats, warmup_s=warmup_s)
    assert 0 < expected_run_s(plan) <= 1.000001 * longest_run_s(plan)


def test_a_dry_run_tells_how_long_the_run_may_take(capsys: pytest.CaptureFixture[str]) -> None:
    # 4 steps of 60 s, two drains of each and 8 workers to start
    show_plan(Plan(limit=8, seconds=0.1), Output(Path("-"), "text"))
    text = capsys.readouterr().out
    assert ", up to about 243 s if they scatter" in text
    assert "causes    a doubling that fails is measured for 3 s each way at least" in text
    # a step of a fixed length takes no longer
    show_plan(Plan(limit=8, seconds=0.1, step_s=9.0), Output(Path("-"), "text"))
    text = capsys.readouterr().out
    assert "up to about" not in text and "causes" not in text
