"""How far a worker's stop has come."""

from typing import cast

import pytest
from rq import SimpleWorker

from scaletest_workers import stopping
from scaletest_workers.stopping import StopState


class StopFlags:
    """What RQ's worker knows of its stop."""

    _stop_requested = False
    _stopped_job_id: str | None = None


def test_a_copy_of_the_first_signal_before_the_stop_has_begun_forces_nothing() -> None:
    # given RQ's handler of the first signal, which has replaced itself and not called ours yet
    stop = StopState(cast("SimpleWorker", StopFlags()), grace_s=30.0)
    # when a copy of that signal comes in between, expect that it only asks for the stop
    assert not stop.force()
    assert stop.requested
    assert not stop.forced
    assert not stop.interrupt.wait(0)
    # and that the stop begins as usual, whose next copies force nothing either
    stop.begin()
    assert stop.draining.wait(0)
    assert not stop.force()
    stop.end()


def test_a_second_signal_forces_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "SAME_SIGNAL_S", 0.0)
    stop = StopState(cast("SimpleWorker", StopFlags()), grace_s=30.0)
    stop.begin()
    stop.end()
    assert stop.force()
    assert stop.forced
    assert stop.interrupt.wait(0)
