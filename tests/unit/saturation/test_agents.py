"""Several load agents as one tester."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from scaletest.broker.rendezvous import Rendezvous
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult
from scaletest.model.attempt import OK, Attempt
from scaletest.saturation.judging.step import assess_step
from scaletest.saturation.measure.agent import follow_orders
from scaletest.saturation.measure.agents import AgentsLoad, merge_results
from tests.unit.simulated import PLAN, step


@given(st.integers(1, 7), st.integers(0, 1 << 30))
@settings(max_examples=20)
def test_merged_agents_are_one_tester_bit_for_bit(agents: int, seed: int) -> None:
    # given so many agents, each with its part of the requests, whose findings go over the wire
    chance = random.Random(seed)
    rows = []
    for number in range(2000):
        due = number / 200
        rows.append(Attempt(number, due, due, due, due + chance.lognormvariate(-4, 1), OK))
    parts = [rows[index::agents] for index in range(agents)]
    known = {
        "open": True,
        "late_s": 0.0,
        "seconds": 10.0,
        "cpu": 0.1,
        "beat_s": 0.0,
        "throttled_periods": 0.0,
    }
    brought = [
        {
            **known,
            "agent": index,
            "samples": [
                structs.astuple(structs.replace(attempt, request=n))
                for n, attempt in enumerate(part)
            ],
        }
        for index, part in enumerate(parts)
    ]
    chance.shuffle(brought)
    joined = merge_results(json.loads(json.dumps(brought)), agents).samples
    # expect every request once, and the same percentiles and intervals
    assert sorted(attempt.request for attempt in joined) == list(range(2000))
    mine, theirs = assess_step(PLAN, step(), joined), assess_step(PLAN, step(), rows)
    assert (mine.latency, mine.goodput, mine.growth) == (
        theirs.latency,
        theirs.goodput,
        theirs.growth,
    )


class Table(Rendezvous):
    """A rendezvous in one process: an agent works when its order is there."""

    def __init__(self, agents: int, load: LevelLoad) -> None:
        self.agents, self.load, self.coming, self.done = (
            agents,
            load,
            iter(range(agents)),
            list[dict[str, Any]](),
        )

    def offset_s(self) -> float:
        return 0.0

    def read_plan(self) -> dict[str, Any]:
        return {}

    def register_agent(self) -> int:
        return next(self.coming)

    def give_orders(self, orders: list[dict[str, Any]]) -> None:
        self.orders = {index: [agent_order] for index, agent_order in enumerate(orders)}
        for _ in range(self.agents):
            follow_orders(self, lambda plan, name: self.load, sleep=lambda seconds: None)

    def wait_for_order(self, agent: int) -> dict[str, Any] | None:
        return self.orders[agent].pop() if self.orders[agent] else None

    def is_open(self) -> bool:
        return False

    def submit_result(self, order: int, result: dict[str, Any]) -> None:
        self.done.append(result)

    def wait_for_result(self, order: int) -> dict[str, Any] | None:
        return self.done.pop(0)


class Counting:
    """Ends what it is asked for at once."""

    def __init__(self) -> None:
        self.orders: list[LoadOrder] = []

    def measure(self, order: LoadOrder, stopping: Any, tell: Any) -> LoadResult:
        self.orders.append(order)
        return LoadResult(
            [Attempt(n, 0.0, 0.0, 0.0, 0.1, OK) for n in range(order.count)],
            1.0,
            0.0,
            0.0,
        )

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(("parallel", "count"), [(1, 5), (2, 5), (5, 7), (9, 2), (1, 0), (2, 0)])
def test_agents_that_keep_nothing_in_flight_have_nothing_to_do(parallel: int, count: int) -> None:
    # given three agents under closed load; expect the whole number in flight, and exactly so many
    # requests
    load = Counting()
    step = AgentsLoad(Table(3, load), 3).measure(
        LoadOrder(1.0, parallel=parallel, count=count), lambda: False, print
    )
    assert len(step.samples) == count
    assert sum(agent_order.count for agent_order in load.orders) == count
    assert sum(agent_order.parallel for agent_order in load.orders) == (
        parallel if count != 2 else 6
    )
    assert all(agent_order.parallel for agent_order in load.orders)
