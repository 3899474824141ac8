"""The bar of injected causes: which runs are missing, what a run is judged by, and what a summary
says.
"""

from typing import Any

import pytest

from hack.benchmarks import causes
from hack.benchmarks.causes_injectors import Injected
from hack.benchmarks.causes_runs import _right
from scaletest.model import State


def row(name: str, seed: int, **right: bool | None) -> dict[str, Any]:
    return {
        "injector": name,
        "seed": seed,
        "right": {"cause": None, "object": None, "interval": None, **right},
    }


@pytest.mark.parametrize(("wrong", "met"), [(3, True), (4, False)])
def test_17_of_20_causes_of_a_row_must_be_right(wrong: int, met: bool) -> None:
    rows = [row("tcp", seed, cause=seed > wrong, object=True) for seed in range(1, 21)]
    line, of_all = causes.summary([*rows, row("tcp", 21)])
    assert line == {
        "injector": "tcp",
        "runs": 21,
        "cause": [20 - wrong, 20],
        "object": [20, 20],
        "interval": [0, 0],
        "observed": [1.0, 1.0],
        "met": met,
    }
    assert (of_all["injector"], of_all["met"]) == ("all", False)


@pytest.mark.parametrize(("seen", "met"), [((0.95, 0.91, 0.5), True), ((0.95, 0.85, 0.8), False)])
def test_most_of_the_added_time_must_be_observed(seen: tuple[float, ...], met: bool) -> None:
    rows = [{**row("tcp", seed), "observed": part} for seed, part in enumerate(seen)]
    line, of_all = causes.summary(rows)
    assert (line["observed"][0], line["met"]) == (sorted(seen)[1], met)
    assert of_all["met"] == (min(seen) >= 0.75)


def judged(injected: Injected, share: float, **named: Any) -> dict[str, Any]:
    interval = {"value": 0.9, "low": 0.8, "high": 0.97}
    cause = {"state": "network", "object": "10.0.0.1:80", "share": interval, **named}
    return _right(injected, {"truth": {"share": share}, "named": cause, "slow": None})


SERVICE = Injected((), State.NETWORK, "10.0.0.1:80")


def test_a_run_is_right_by_cause_object_and_interval() -> None:
    assert judged(SERVICE, 0.95) == {"cause": True, "object": True, "interval": True}
    assert judged(SERVICE, 0.95, object="") == {"cause": True, "object": False, "interval": True}
    assert judged(SERVICE, 0.75) == {"cause": True, "object": True, "interval": False}
    assert judged(SERVICE, 0.95, state="disk") == {
        "cause": False,
        "object": False,
        "interval": None,
    }
