"""The closed loop on a real server, with its worker played by the test."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from scaletest.broker import Client, Queues, connect
from scaletest.broker.fast_lane import Taken
from scaletest.load import ClosedLoop
from scaletest.model import Outcome, Record
from tests.conftest import eventually
from tests.integration.lanes import done, lane_of


@pytest.fixture
def served(url: str, queues: Queues) -> Iterator[dict[str, Any]]:
    """A worker in a thread that answers at once, `most` requests in all; `outcome` and `most` may
    be changed.
    """
    state: dict[str, Any] = {"stop": False, "outcome": Outcome.SUCCEEDED, "most": math.inf}
    served = 0

    def serve() -> None:
        nonlocal served
        lane = lane_of(connect(url))
        finished = None
        while not state["stop"]:
            taken = lane.cycle(finished, take=served < state["most"], block_s=0.05)
            finished = done(taken, state["outcome"]) if isinstance(taken, Taken) else None
            served += finished is not None
            time.sleep(0 if served < state["most"] else 0.01)
        lane.cycle(finished, take=False)
        lane.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield state
    state["stop"] = True
    thread.join()


def test_records_carry_their_step_and_the_total_is_kept(
    client: Client, served: dict[str, Any]
) -> None:
    # given a worker that has served 50 when the step changes
    served["most"] = 50
    records: list[Record] = []
    loop = ClosedLoop(client, "q", records.append, total=200)
    loop.set_parallel(4, step=1)
    eventually(lambda: len(records) == 50 and loop.in_flight == 4)
    loop.set_parallel(8, step=2)
    served["most"] = math.inf
    assert loop.wait_idle(60)
    loop.close()
    # expect that each carries the step in which it was submitted
    assert [record.step for record in records] == [1] * 54 + [2] * 146


def test_the_load_survives_a_reader_that_fails(
    client: Client, served: dict[str, Any], monkeypatch: Any
) -> None:
    # given a reader that breaks for a reason that nobody thought of, with replies in hand
    real, broken = client.replies, [3]

    def replies(timeout_s: float) -> Any:
        samples = real(timeout_s)
        if samples and broken[0]:
            broken[0] -= 1
            raise RuntimeError("nobody thought of this")
        return samples

    monkeypatch.setattr(client, "replies", replies)
    records: list[Record] = []
    loop = ClosedLoop(client, "q", records.append, total=100)
    loop.set_parallel(4)
    # expect every request to be answered all the same: what was read and dropped is asked for again
    assert loop.wait_idle(60)
    loop.close()
    assert len({record.reply.id for record in records}) == 100


def test_the_load_slows_down_when_all_requests_fail(
    client: Client, served: dict[str, Any], monkeypatch: Any
) -> None:
    # given a worker that fails at once, and a clock that shows how long the loop wants to wait with
    # nothing in flight
    served["outcome"] = Outcome.FAILED
    real, waits, skipped = client.replies, [], [0.0]

    def replies(timeout_s: float) -> Any:
        if not loop.in_flight and loop._backoff_s:
            waits.append(round(timeout_s, 2))
            skipped[0] += timeout_s
            return []
        return real(timeout_s)

    loop = ClosedLoop(
        client, "q", lambda _: None, total=20, clock=lambda: time.monotonic() + skipped[0]
    )
    monkeypatch.setattr(client, "replies", replies)
    loop.set_parallel(1)
    assert loop.wait_idle(60)
    loop.close()
    # expect each failure to make the next request wait longer, up to a limit
    assert waits[:4] == [0.05, 0.1, 0.2, 0.4]
    assert max(waits) == 2.0
