"""Closed and open loop without Redis: what they submit, when, and from when on they measure."""

import itertools
import threading
from contextlib import nullcontext
from typing import Any

import pytest

from scaletest.load import ClosedLoop, OpenLoop, Statistics, Steering, pace
from scaletest.load.closed_loop import FAILURES_TO_BACK_OFF
from scaletest.load.level_load import LoadOrder
from scaletest.model import Outcome, Record
from scaletest.model.attempt import OK, TIMED_OUT
from scaletest.saturation.measure.queue_load import QueueLoad
from tests.conftest import eventually
from tests.unit.fakes import Clock, FakeClient, replied


def test_a_closed_loop_fills_in_turns_and_takes_back_the_rest() -> None:
    client: Any = FakeClient()
    loop = ClosedLoop(client, "q", lambda _: None)
    loop.set_parallel(1000)
    eventually(lambda: len(client.submitted) == 1000)
    assert loop.in_flight == 1000
    loop.close()
    assert len(client.cancelled) == 1000


def test_a_delay_keeps_each_slot_empty_for_so_long() -> None:
    # given a request that was answered at time 0, and a delay of 5 s
    clock, records = Clock(), []
    client: Any = FakeClient(lambda request: replied(request.id))
    loop = ClosedLoop(client, "q", records.append, delay_s=5.0, clock=clock)
    loop.set_parallel(2)
    eventually(lambda: len(records) == 2)
    before = len(client.waits)
    eventually(lambda: len(client.waits) > before + 2)
    assert len(client.submitted) == 2
    clock.now = 5.0
    eventually(lambda: len(records) == 4)
    loop.close()
    assert len(client.submitted) == 4


def test_single_failures_do_not_slow_the_load_down() -> None:
    # given a clock that stands still and requests of which every second fails, expect no pause
    # after any of them
    count = itertools.count()
    client: Any = FakeClient(
        lambda request: replied(
            request.id, outcome=(Outcome.FAILED if next(count) % 2 else Outcome.SUCCEEDED)
        )
    )
    loop = ClosedLoop(client, "q", lambda _: None, total=40, clock=Clock())
    loop.set_parallel(1)
    assert loop.wait_idle(120)
    loop.close()
    assert len(client.submitted) == 40


def test_nothing_but_failures_slows_the_load_down() -> None:
    client: Any = FakeClient(lambda request: replied(request.id, outcome=Outcome.FAILED))
    loop = ClosedLoop(client, "q", lambda _: None, clock=Clock())
    loop.set_parallel(1)
    eventually(lambda: loop._backoff_s)
    loop.close()
    assert len(client.submitted) == FAILURES_TO_BACK_OFF


def test_open_load_measures_from_the_intended_start() -> None:
    # given 10 requests a second for a second, and a client that is only let go after 3 s
    clock, records = Clock(), []
    go = threading.Event()

    class Stalled(FakeClient):
        def submit(self, requests: Any) -> int:
            if not go.is_set():
                go.wait(60)
                clock.now = 3.0
            return super().submit(requests)

    client: Any = Stalled(lambda request: replied(request.id, wait_s=0.0, run_s=0.0))
    loop = OpenLoop(
        client, "q", records.append, iter([n / 10 for n in range(10)]), maximum=100, clock=clock
    )
    go.set()
    assert loop.wait_idle(120)
    loop.close()
    # expect the stall in every request that should have started meanwhile
    assert [record.total_s for record in records] == pytest.approx(
        [3.0 - number / 10 for number in range(10)]
    )


def test_open_load_does_not_wait_for_replies_but_for_room() -> None:
    clock = Clock()
    client: Any = FakeClient()
    loop = OpenLoop(client, "q", lambda _: None, pace.constant(10), maximum=7, clock=clock)
    clock.now = 0.35
    eventually(lambda: len(client.submitted) == 4)
    clock.now = 5.0
    eventually(lambda: len(client.submitted) == 7)
    client.reply(replied("c-1"))
    eventually(lambda: len(client.submitted) == 8)
    loop.close()


def test_open_load_has_an_end_that_nobody_can_notice_late() -> None:
    # given 10 requests a second for a second, of which 3 may be in flight
    clock = Clock()
    client: Any = FakeClient()
    loop = OpenLoop(
        client, "q", lambda _: None, pace.constant(10), maximum=3, ends_s=1.0, clock=clock
    )
    # when nobody looks before two seconds have passed
    clock.now = 2.0
    eventually(lambda: len(client.submitted) == 3)
    # expect that those due in that second were due, and no more
    assert not loop.wait_idle(0.01)
    loop.stop()
    assert loop.overdue == 7
    assert loop.overdue_since == pytest.approx([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    loop.close()


def test_steering_clamps_and_never_waits_for_redis() -> None:
    # given a client whose Redis is away: every call blocks
    away = threading.Event()

    class Away(FakeClient):
        def submit(self, requests: Any) -> int:
            away.wait(60)
            return super().submit(requests)

        def wake(self) -> None:
            away.wait(60)

    client: Any = Away()
    statistics = Statistics("q")
    loop = ClosedLoop(client, "q", statistics.add, observer=statistics)
    steering = Steering(loop, statistics, load="closed", maximum=10)
    values = [steering.set_parallel(value) for value in (4, 99, 0, 7)]
    steering.reset()
    assert values == [4, 10, 0, 7]
    assert steering.snapshot().parallel == steering.parallel == 7
    away.set()
    eventually(lambda: loop.in_flight == 7)
    loop.close()


def opened(
    client: Any, clock: Clock, rate: float = 10, maximum: int = 100
) -> tuple[OpenLoop, Steering, list[Record]]:
    """A constant rate on that clock, with what steers it and what comes of it."""
    records: list[Record] = []
    statistics = Statistics("q", clock=clock, wall=lambda: 1e9)
    loop = OpenLoop(client, "q", records.append, pace.constant(rate), maximum=maximum, clock=clock)
    return loop, Steering(loop, statistics, load="", maximum=maximum), records


def instant_client(**options: Any) -> Any:
    """A client whose requests are answered at once."""
    return FakeClient(lambda request: replied(request.id, wait_s=0.0, run_s=0.0), **options)


def test_a_rate_changes_while_it_runs_and_old_requests_keep_their_intended_start() -> None:
    # given 10 requests a second, for half a second in which nobody looks
    clock = Clock()
    client = instant_client(room=1)
    loop, steering, records = opened(client, clock)
    eventually(lambda: len(client.submitted) == 1)
    clock.now = 0.55
    # when the rate doubles and somebody looks at 0.7 s
    steering.set_rate(20)
    clock.now = 0.7
    client.room = 100
    # expect five more of the old rate, measured from when they were due, and those of the new
    eventually(lambda: len(records) == 9)
    assert [0.7 - record.total_s for record in records[1:]] == pytest.approx(
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.575, 0.625, 0.675]
    )
    assert (steering.rate, steering.load, steering.snapshot().load) == (
        20,
        "20 requests/s",
        "20 requests/s",
    )
    loop.close()


def test_a_paused_rate_goes_on_with_the_former_one_and_makes_up_for_nothing() -> None:
    clock = Clock()
    client = instant_client()
    loop, steering, records = opened(client, clock)
    clock.now = 0.25
    eventually(lambda: len(records) == 3)
    steering.set_rate(0)
    clock.now = 50.0
    before = len(client.waits)
    eventually(lambda: len(client.waits) > before + 2)
    assert len(records) == 3
    assert (steering.snapshot().rate, steering.snapshot().resume_with) == (0, 10)
    steering.set_rate(steering.snapshot().resume_with or 0)
    clock.now = 50.16
    eventually(lambda: len(records) == 5)
    assert [50.16 - record.total_s for record in records[3:]] == pytest.approx([50.05, 50.15])
    loop.close()


def test_what_a_full_queue_refused_stays_due_over_changes_of_the_rate() -> None:
    # given five requests that the queue refused, and two changes before it has room
    clock = Clock()
    client = instant_client(room=0)
    clock.now = 0.0
    loop, steering, records = opened(client, clock)
    clock.now = 0.45
    eventually(lambda: loop.refused)
    steering.set_rate(0)
    steering.set_rate(1)
    client.room = 100
    clock.now = 9.0
    eventually(lambda: len(records) == 5 + 9)
    assert sorted(9.0 - record.total_s for record in records)[:6] == pytest.approx(
        [0.0, 0.1, 0.2, 0.3, 0.4, 0.95]
    )
    assert len({record.reply.id for record in records}) == len(records)
    loop.close()


def test_a_reply_that_comes_while_a_step_ends_is_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given three requests in flight, of which the first is answered while the loop is closed
    client: Any = FakeClient()
    real = OpenLoop.close

    def close(loop: OpenLoop) -> None:
        client.reply(replied("c-1"))
        eventually(lambda: loop.in_flight == 2)
        real(loop)

    monkeypatch.setattr(OpenLoop, "close", close)
    order = LoadOrder(60.0, pace=iter([0.0, 0.0, 0.0, 1e6]), patience_s=0.0)
    load = QueueLoad(lambda: nullcontext(client), "q")  # type: ignore[arg-type,return-value]
    step = load.measure(order, lambda: len(client.submitted) == 3, lambda ended, failed: None)
    # expect its record, and the other two as what has no reply
    assert sorted(sample.outcome for sample in step.samples) == [OK, TIMED_OUT, TIMED_OUT]
