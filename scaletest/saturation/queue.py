"""A queue of scaletest's workers as what is loaded: the loops of the load room, their records as samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from scaletest.broker import Client
from scaletest.load import ClosedLoop, OpenLoop
from scaletest.load.loop import Loop
from scaletest.load.order import Measured, Order
from scaletest.model import Outcome, Record
from scaletest.model.sample import OK, TIMED_OUT, UNSENT, Sample
from scaletest.system.effort import Effort

LOOK_S = 0.25


class _Turns:
    """Listens to a loop: how late each submission was, in order."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        self.busy: list[float] = []

    def turn(self, busy_s: float, in_flight: int) -> None:
        """A turn of the loop."""
        self.busy.append(busy_s)

    def late(self, seconds: float) -> None:
        """A submission."""
        self.lags.append(seconds)


class QueueLoad:
    """Loads one queue. make: a new client for each step, so that one step's late replies never reach the next."""

    def __init__(
        self,
        make: Callable[[], Client],
        queue: str,
        *,
        arguments: tuple[str, ...] = (),
        time_limit_s: float = 0.0,
        maximum: int = 1000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make, self._queue, self._maximum, self._clock = make, queue, maximum, clock
        self._options: dict[str, Any] = {"arguments": arguments, "time_limit_s": time_limit_s}

    def measure(self, order: Order, stopping: Callable[[], bool], tell: Callable[[int, int], None]) -> Measured:
        """As LevelLoad says."""
        with self._make() as client:
            return self._measure(client, order, stopping, tell)

    def close(self) -> None:
        """Nothing stays open between steps."""

    def _measure(
        self, client: Client, order: Order, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> Measured:
        turns, effort, samples = _Turns(), Effort(), list[Sample]()
        began = self._clock()

        def take(record: Record) -> None:
            ended = self._clock() - began
            due = max(0.0, ended - record.total_s)
            reply = record.reply
            samples.append(
                Sample(
                    len(samples),
                    1,
                    True,
                    due,
                    due,
                    due,
                    ended,
                    _word(record),
                    0,
                    reply.run_s,
                    reply.pod or reply.worker,
                )
            )

        loop = self._loop(client, take, order, turns)
        try:
            while not (stopping() or self._over(loop, order, samples, self._clock() - began)):
                loop.wait_idle(min(LOOK_S, max(0.01, order.seconds - (self._clock() - began))))
                tell(len(samples), sum(not one.ok for one in samples))
            seconds = min(self._clock() - began, order.seconds)
            cores, throttled = effort.cores(), effort.throttled_s()
            unsent = _stop(loop)
            loop.wait_idle(order.patience_s)
            pending, now = loop.in_flight, self._clock() - began
        finally:
            loop.close()
        rows = _noticed(samples, turns.lags) if order.pace is not None else samples
        rows += [Sample(len(rows) + one, 1, True, seconds, seconds, seconds, now, TIMED_OUT) for one in range(pending)]
        rows += [Sample(len(rows) + one, 1, True, seconds, seconds, now, now, UNSENT) for one in range(unsent)]
        busy = sorted(turns.busy)
        return Measured(rows, seconds, cores, busy[int(0.99 * (len(busy) - 1))] if busy else 0.0, throttled, unsent)

    def _loop(self, client: Client, take: Callable[[Record], None], order: Order, turns: _Turns) -> Loop:
        if order.pace is not None:
            return OpenLoop(
                client, self._queue, take, order.pace, maximum=self._maximum, observer=turns, **self._options
            )
        loop = ClosedLoop(client, self._queue, take, total=order.count or None, observer=turns, **self._options)
        loop.set_parallel(order.parallel)
        return loop

    def _over(self, loop: Loop, order: Order, samples: list[Sample], now: float) -> bool:
        loop.check()
        if order.count and len(samples) >= order.count:
            return True
        return (not order.count and now >= order.seconds) or loop.in_flight > order.most_behind


def _stop(loop: Loop) -> int:
    """Submit nothing more; how many were due and were not submitted."""
    if isinstance(loop, ClosedLoop):
        loop.set_parallel(0)
        return 0
    assert isinstance(loop, OpenLoop)
    loop.stop()
    return loop.overdue


def _noticed(samples: list[Sample], lags: list[float]) -> list[Sample]:
    """Submissions follow their pace in order, so the n-th request due is the n-th that was late."""
    ordered = sorted(samples, key=lambda one: one.due_s)
    return [
        one._replace(request=number, noticed_s=one.due_s + lag, sent_s=one.due_s + lag)
        for number, (one, lag) in enumerate(zip(ordered, [*lags, *[0.0] * len(ordered)], strict=False))
    ]


def _word(record: Record) -> str:
    if record.ok:
        return OK
    reply = record.reply
    return TIMED_OUT if reply.outcome is Outcome.TIMED_OUT else str(reply.reason or reply.outcome)
