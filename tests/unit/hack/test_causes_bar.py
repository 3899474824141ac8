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
        "right": {"cause": None, "object": None, "share": None, **right},
    }


@pytest.mark.parametrize(("wrong", "met"), [(1, True), (2, False)])
def test_19_of_20_causes_must_be_right(wrong: int, met: bool) -> None:
    rows = [row("tcp", seed, cause=seed > wrong, object=True) for seed in range(1, 21)]
    assert causes.summary([*rows, row("tcp", 21)]) == [
        {
            "injector": "tcp",
            "runs": 21,
            "cause": [20 - wrong, 20],
            "object": [20, 20],
            "share": [0, 0],
            "met": met,
        }
    ]


def judged(injected: Injected, share: float, **named: Any) -> dict[str, Any]:
    cause = {"state": "network", "object": "10.0.0.1:80", "share": {"value": 0.9}, **named}
    return _right(injected, {"truth": {"share": share}, "named": cause, "slow": None})


SERVICE = Injected((), State.NETWORK, "10.0.0.1:80")


def test_a_run_is_right_by_cause_object_and_share() -> None:
    assert judged(SERVICE, 0.95) == {"cause": True, "object": True, "share": True}
    assert judged(SERVICE, 0.95, object="") == {"cause": True, "object": False, "share": True}
    assert judged(SERVICE, 0.75) == {"cause": True, "object": True, "share": False}
    assert judged(SERVICE, 0.95, state="disk") == {"cause": False, "object": False, "share": None}
