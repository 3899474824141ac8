"""What a plan will cost, before it is paid."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.cli.output import Output
from scaletest.validation.commands.validate_run import show_plan
from scaletest.validation.judging.forecast import forecast, longest_load_s, longest_run_s
from scaletest.validation.plan import Plan


@pytest.mark.parametrize(
    ("plan", "spread", "seconds", "narrowest", "widest"),
    [
        # sleeps of 2 s up to 4 workers: on each way 4, 2 and 2 completions a worker and a drain of
        # 2 s, and 4 starts of 0.3 s
        (Plan(limit=4, seconds=2.0), 0.0, 2 * (8 + 4 + 4 + 3 * 2) + 4 * 0.3, 0.0, 0.0),
        # 10 % of scatter and 2 % wanted: one worker needs (1.96 x 0.1 / 0.02)^2 = 97 cycles
        (Plan(limit=1, seconds=0.5), 0.1, 2 * (50 * 0.5 + 0.5) + 0.3, 0.0196, 0.0204),
        # the longest step bounds it, and the width shows that
        (Plan(limit=1, seconds=1.0, max_step_s=10), 0.5, 10 + 2 * 1.0 + 0.3, 0.3, math.inf),
    ],
)
def test_a_forecast_follows_from_scatter_precision_and_the_longest_step(
    plan: Plan, spread: float, seconds: float, narrowest: float, widest: float
) -> None:
    forecasted = forecast(plan, spread)
    assert forecasted.seconds == pytest.approx(seconds)
    assert all(narrowest <= width <= widest for width in forecasted.half_widths)


def test_each_part_of_a_step_has_a_warm_up_of_its_own() -> None:
    fixed = Plan(limit=1, seconds=1.0, step_s=20.0, warmup_s=4.0)
    # two parts of 20 / 2 + 4 / 2 + 1, a drain of 1 s each and the start of a worker
    assert longest_load_s(fixed) == pytest.approx(26.0)
    assert forecast(fixed, 0.0).seconds == pytest.approx(26.0 + 2 * 1.0 + 0.3)
    assert longest_load_s(replace(fixed, step_s=0.0, max_step_s=20.0)) == pytest.approx(24.0)


@given(
    st.integers(1, 300),
    st.floats(0.001, 1000),
    st.floats(0, 3),
    st.integers(1, 5),
    st.floats(0.0, 20.0) | st.none(),
)
def test_any_plan_has_a_forecast(
    limit: int, seconds: float, spread: float, repeats: int, warmup_s: float | None
) -> None:
    plan = Plan(limit=limit, seconds=seconds, repeats=repeats, warmup_s=warmup_s)
    forecasted = forecast(plan, spread)
    assert 0 < forecasted.seconds < float("inf")
    assert len(forecasted.half_widths) == len(plan.steps)
    assert forecasted.seconds <= 1.000001 * longest_run_s(plan)


def test_a_dry_run_tells_how_long_the_run_may_take(capsys: pytest.CaptureFixture[str]) -> None:
    # 4 steps of 60 s, two drains of each and 8 workers to start
    show_plan(Plan(limit=8, seconds=0.1), Output(Path("-"), "text"))
    assert "takes     up to about 243 s if they scatter more" in capsys.readouterr().out
    # a step of a fixed length takes no longer
    show_plan(Plan(limit=8, seconds=0.1, step_s=9.0), Output(Path("-"), "text"))
    assert "up to about" not in capsys.readouterr().out
