"""The forecast of a search: how long it takes at most."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from scaletest.load.level_load import LoadOrder, LoadResult
from scaletest.saturation.judging.forecast import forecast
from scaletest.saturation.judging.sequence import LONGEST
from scaletest.saturation.measure.steps import Runner
from tests.unit.simulated import PLAN, Simulated
from tests.unit.told import telling


class OnItsOwnClock:
    """A simulated service as a load that takes as long as its requests do."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def measure(self, order: LoadOrder, stopping: Any, tell: Any) -> LoadResult:
        if order.pace is None:
            rows = Simulated().closed(order.parallel, order.seconds)
        else:
            due = itertools.takewhile(lambda at: at < order.seconds, order.pace)
            rows = Simulated().open(list(itertools.islice(due, order.count or None)))
        ended = max(attempt.ended_s for attempt in rows)
        self.now_s += ended if order.count else max(order.seconds, ended)
        return LoadResult(rows, ended if order.count else order.seconds, 0.1, 0.0, 0.0, 0)

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("load", ["open", "closed"])
def test_a_dry_run_tells_how_long_a_run_takes(load: str) -> None:
    plan = replace(PLAN, load=load)
    load, silent = OnItsOwnClock(), telling([])

    def sleep(seconds: float) -> None:
        load.now_s += seconds

    runner = Runner(
        plan,
        load,
        lambda step, samples: None,
        silent,
        clock=lambda: load.now_s,
        sleep=sleep,
    )
    result = runner.run()
    expected = forecast(plan)
    assert expected.usual_s is not None and expected.longest_s is not None
    assert expected.usual_s == pytest.approx(result.elapsed_s, rel=0.2)
    assert result.elapsed_s <= expected.longest_s
    measured = sum(step.step.phase not in ("warm", "operate") for step in result.steps)
    assert measured <= expected.most


def test_a_dry_run_marks_the_time_that_it_cannot_forecast() -> None:
    # given steps that end by a number of requests whose rate the search is to find
    assert forecast(replace(PLAN, count=100)).usual_s is None
    # expect a latency limit to make it four times as long at most, and agents half a second a step
    plain, limited = forecast(PLAN), forecast(replace(PLAN, limit="p99<50ms"))
    assert 3 * plain.longest_s < limited.longest_s <= LONGEST * plain.longest_s
    agents = forecast(replace(PLAN, agents=4))
    assert agents.usual_s - plain.usual_s == pytest.approx(0.5 * (plain.steps + 2))
