"""The bar of injected causes: which runs are missing, what a run is judged by, and what a summary
says.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from hack.benchmarks import causes
from hack.benchmarks.causes_injectors import GAP, INJECTORS, NONE, Injected
from hack.benchmarks.causes_runs import _request_wait_s, _right
from scaletest.model import Outcome, Reply, State


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


@pytest.mark.parametrize(("tells_cpu", "wait_s"), [(False, 0.2), (True, 0.1)])
def test_cpu_reports_of_commands_are_joined_with_requests_of_their_worker(
    tells_cpu: bool, wait_s: float
) -> None:
    reply = Reply(
        "r",
        Outcome.SUCCEEDED,
        exit_code=0,
        run_s=0.3,
        worker="vm-9-7-ab",
        started_s=10.0,
        ended_s=10.31,
    )
    cpu_reports = {7: [(9.9, 5.0), (10.3, 0.2), (10.7, 6.0)], 8: [(10.3, 7.0)]}
    injected = dataclasses.replace(SERVICE, tells_cpu=tells_cpu)
    assert _request_wait_s(injected, reply, cpu_reports) == pytest.approx(wait_s)


def test_every_injector_states_its_cause(tmp_path: Path) -> None:
    for name in ("cpu", "flock", "fcntl", "slow-worker", "slow-client", "linear"):
        folder = tmp_path / name
        folder.mkdir()
        with INJECTORS[name](folder, 1.0) as injected:
            assert injected.state in (*State, GAP, NONE) and injected.command
