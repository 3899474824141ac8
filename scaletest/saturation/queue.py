"""A queue of scaletest's workers as the target of a load; its records become samples."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from scaletest.broker import Client
from scaletest.load import ClosedLoop, OpenLoop
from scaletest.load.level_load import LoadOrder, LoadResult
from scaletest.load.loop import LoadLoop
from scaletest.model import Outcome, Record
from scaletest.model.attempt import OK, TIMED_OUT, UNSENT, Attempt
from scaletest.system.effort import Effort

LOOK_S = 0.25
IN_TIME_S = 0.010


class _Turns:
    """Listens to a loop: how late each submission was, in order, and how much of that was the
    tester's fault.

    What waits here because `maximum` are in flight waits for the service: that is backlog, and no
    lateness.
    """

    def __init__(self, maximum: int) -> None:
        self.waits: list[float] = []
        self.lags: list[float] = []
        self.busy: list[float] = []
        self._maximum, self._held = maximum, False

    def turn(self, busy_s: float, in_flight: int) -> None:
        """A turn of the loop."""
        self.busy.append(busy_s)
        self._held = self._held or in_flight >= self._maximum

    def late(self, seconds: float) -> None:
        """A submission; after a delay, held requests are submitted over several turns."""
        self._held = self._held and seconds > IN_TIME_S
        self.waits.append(seconds)
        self.lags.append(0.0 if self._held else seconds)


class QueueLoad:
    """Loads one queue. make: creates a client per step, so that no step gets late replies."""

    def __init__(
        self,
        make: Callable[[], Client],
        queue: str,
        *,
        arguments: tuple[str, ...] = (),
        time_limit_s: float = 0.0,
        maximum: int = 1000,
        agent: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make, self._queue, self._maximum, self._clock = make, queue, maximum, clock
        self._agent = agent
        self._options: dict[str, Any] = {"arguments": arguments, "time_limit_s": time_limit_s}

    def measure(
        self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        """As LevelLoad says."""
        with self._make() as client:
            return self._measure(client, order, stopping, tell)

    def close(self) -> None:
        """Nothing stays open between steps."""

    def _measure(
        self,
        client: Client,
        order: LoadOrder,
        stopping: Callable[[], bool],
        tell: Callable[[int, int], None],
    ) -> LoadResult:
        turns, effort, samples = _Turns(self._maximum), Effort(), list[Attempt]()
        began, made = self._clock(), threading.Event()

        def take(record: Record) -> None:
            made.wait()
            ended = loop.read_at - began
            due = max(0.0, ended - record.total_s)
            reply = record.reply
            samples.append(
                Attempt(
                    0,
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

        loop = self._loop(client, take, order, turns, began)
        made.set()
        try:
            while not (stopping() or self._over(loop, order, samples, self._clock() - began)):
                loop.wait_idle(min(LOOK_S, max(0.01, order.seconds - (self._clock() - began))))
                tell(len(samples), sum(not one.ok for one in samples))
            seconds = min(self._clock() - began, order.seconds)
            cores, throttled, held = (
                effort.cores(),
                effort.throttled_s(),
                effort.throttled_periods(),
            )
            _stop(loop)
            loop.wait_idle(order.patience_s)
            now = self._clock() - began
        finally:
            loop.close()
        # not before the loop has ended: until then replies come in, and a request would be counted
        # twice
        pending = [at - began for at in loop.waiting_since]
        unsent = loop.overdue_since if isinstance(loop, OpenLoop) else []
        # what has no reply is backlog from when it was due, as is what was never submitted
        samples += [Attempt(0, 1, True, due, due, due, now, TIMED_OUT) for due in pending]
        rows = _noticed(samples, turns) if order.pace is not None else _numbered(samples)
        rows += [
            Attempt(len(rows) + n, 1, True, at - began, at - began, now, now, UNSENT)
            for n, at in enumerate(unsent)
        ]
        busy = sorted(turns.busy)
        carried = sum(len(argument.encode()) for argument in self._options["arguments"])
        named = [one._replace(agent=self._agent, payload=carried) for one in rows]
        late = busy[int(0.99 * (len(busy) - 1))] if busy else 0.0
        return LoadResult(
            named, seconds, cores, late, throttled, len(unsent), throttled_periods=held
        )

    def _loop(
        self,
        client: Client,
        take: Callable[[Record], None],
        order: LoadOrder,
        turns: _Turns,
        began: float,
    ) -> LoadLoop:
        more: dict[str, Any] = {"observer": turns, "clock": self._clock, **self._options}
        if order.pace is not None:
            more |= {"began": began, "ends_s": math.inf if order.count else order.seconds}
            return OpenLoop(client, self._queue, take, order.pace, maximum=self._maximum, **more)
        loop = ClosedLoop(client, self._queue, take, total=order.count or None, **more)
        loop.set_parallel(order.parallel)
        return loop

    def _over(self, loop: LoadLoop, order: LoadOrder, samples: list[Attempt], now: float) -> bool:
        loop.check()
        if order.count and len(samples) >= order.count:
            return True
        return (not order.count and now >= order.seconds) or loop.in_flight > order.most_behind


def _stop(loop: LoadLoop) -> None:
    """Submit nothing more."""
    if isinstance(loop, ClosedLoop):
        loop.set_parallel(0)
    elif isinstance(loop, OpenLoop):
        loop.stop()


def _noticed(samples: list[Attempt], turns: _Turns) -> list[Attempt]:
    """Submissions follow their pace in order, so the n-th request due is the n-th that was late."""
    ordered = _numbered(sorted(samples, key=lambda one: one.due_s))
    nothing = [0.0] * len(ordered)
    late = zip(ordered, [*turns.lags, *nothing], [*turns.waits, *nothing], strict=False)
    return [
        one._replace(noticed_s=one.due_s + lag, sent_s=one.due_s + wait) for one, lag, wait in late
    ]


def _numbered(samples: list[Attempt]) -> list[Attempt]:
    return [one._replace(request=number) for number, one in enumerate(samples)]


def _word(record: Record) -> str:
    if record.ok:
        return OK
    reply = record.reply
    return TIMED_OUT if reply.outcome is Outcome.TIMED_OUT else str(reply.reason or reply.outcome)
