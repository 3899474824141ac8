"""Signals that come while a thread waits."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from scaletest.load import Statistics, offered_load
from scaletest.load.offered_load import OfferedLoad
from scaletest.processes.wake import Wake, wait_first
from scaletest.runs.stopping import StopRequest
from tests.unit.fakes import FakeClient, replied

OFTEN_S = 0.0002
WAITS = 3000


@contextmanager
def signals(handle: Callable[[], object]) -> Iterator[None]:
    """Signals in quick succession to the main thread, whose handler calls this."""
    before = signal.signal(signal.SIGALRM, lambda *_: handle())
    signal.setitimer(signal.ITIMER_REAL, OFTEN_S, OFTEN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_handler_wakes_the_thread_that_it_interrupts_wherever_that_is() -> None:
    # given a handler that runs at every point of the wait; with threading.Event this hangs
    wake = Wake()
    with signals(wake.set):
        for _ in range(WAITS):
            assert wake.wait(60)
            wake.clear()
    wake.close()


def test_an_end_that_a_signal_asks_for_keeps_its_first_reason() -> None:
    stop = StopRequest()
    names = iter(["Ctrl-C"] + ["SIGTERM"] * 1_000_000)
    with signals(lambda: stop(next(names))):
        assert stop.wake.wait(60)
        assert stop.wake.wait(60)
    assert (stop.asked(), stop.reason) == (True, "Ctrl-C")


def test_the_first_of_several_ends_the_wait_and_all_stay_as_they_are() -> None:
    first, second = Wake(), Wake()
    assert not wait_first(0.0, first, second)
    second.set()
    second.set()
    assert wait_first(60, first, second)
    assert (first.is_set(), second.is_set()) == (False, True)
    second.clear()
    assert not second.is_set()


def test_what_is_closed_leaves_alone_whoever_has_its_descriptor_now() -> None:
    wake = Wake()
    taken = wake.fileno()
    wake.close()
    read, write = os.pipe()
    assert taken in (read, write)
    wake.set()
    wake.clear()
    wake.close()
    os.set_blocking(read, False)
    with pytest.raises(BlockingIOError):
        os.read(read, 1)
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("rate", [None, 0.001])
def test_a_load_ends_as_soon_as_it_is_asked_to(
    rate: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a load that looks around once an hour, and is told to end meanwhile
    monkeypatch.setattr(offered_load, "LOOK_EVERY_S", 3600.0)
    load = OfferedLoad(
        "q",
        parallel=None,
        max_parallel=None,
        time_limit_s=0.0,
        delay_s=0.0 if rate else 3600.0,
        rate=rate,
        poisson=None,
        batch=None,
        duration_s=0.0,
        log_messages=False,
        arguments=(),
    )
    client: Any = FakeClient(lambda request: replied(request.id))
    stop, statistics = Wake(), Statistics("q")
    control = load.begin(client, statistics, load.pace())
    threading.Timer(0.05, stop.set).start()
    assert load.run(control, stop, 60)
    control.loop.close()
