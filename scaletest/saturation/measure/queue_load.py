"""The load on a queue of scaletest's workers: records of its requests become samples."""

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from msgspec import structs

from scaletest.broker import Client
from scaletest.load import ClosedLoop, OpenLoop
from scaletest.load.level_load import LoadOrder, LoadResult
from scaletest.load.loops import LoadLoop
from scaletest.model import Outcome, Record
from scaletest.model.attempt import OK, TIMED_OUT, UNSENT, Attempt
from scaletest.observe.node.used_time import Effort

# How often a step tells what it has done.
LOOK_S = 0.25
# A submission that is later than this is late.
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
    """Loads one queue."""

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
        """make: creates a client per step, so that no step gets late replies."""
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
        began, started = self._clock(), threading.Event()

        def take(record: Record) -> None:
            started.wait()
            ended = loop.read_at - began
            due = max(0.0, ended - record.total_s)
            reply = record.reply
            outcome = OK if record.ok else str(reply.reason or reply.outcome)
            if reply.outcome is Outcome.TIMED_OUT:
                outcome = TIMED_OUT
            samples.append(
                Attempt(
                    0,
                    due,
                    due,
                    due,
                    ended,
                    outcome,
                    server_s=reply.run_s,
                    pod=reply.pod or reply.worker,
                )
            )

        more: dict[str, Any] = {"observer": turns, "clock": self._clock, **self._options}
        loop: LoadLoop
        if order.pace is not None:
            more |= {"began": began, "ends_s": math.inf if order.count else order.seconds}
            loop = OpenLoop(client, self._queue, take, order.pace, maximum=self._maximum, **more)
        else:
            loop = ClosedLoop(client, self._queue, take, total=order.count or None, **more)
            loop.set_parallel(order.parallel)
        started.set()
        try:
            while not stopping():
                loop.check()
                passed_s = self._clock() - began
                done, wanted = passed_s, order.seconds
                if order.count:
                    done, wanted = len(samples), order.count
                if done >= wanted or loop.in_flight > order.most_behind:
                    break
                loop.wait_idle(min(LOOK_S, max(0.01, order.seconds - (self._clock() - began))))
                tell(len(samples), sum(not sample.ok for sample in samples))
            seconds = min(self._clock() - began, order.seconds)
            cpu, throttling = effort.cores(), effort.throttling
            throttled_s, throttled_periods = throttling.seconds(), throttling.part()
            loop.stop()
            loop.wait_idle(order.patience_s)
            now = self._clock() - began
        finally:
            loop.close()
        # not before the loop has ended: until then replies come in, and a request would be counted
        # twice
        pending = [since - began for since in loop.waiting_since]
        overdue = loop.overdue_since if isinstance(loop, OpenLoop) else []
        # what has no reply is backlog from when it was due, as is what was never submitted
        samples += [Attempt(0, due, due, due, now, TIMED_OUT) for due in pending]
        if order.pace is not None:
            # submissions follow their pace in order, so the n-th request due is the n-th that was
            # late
            samples.sort(key=lambda sample: sample.due_s)
            lateness = zip(samples, turns.lags, turns.waits, strict=False)
            samples[: len(turns.lags)] = [
                structs.replace(sample, noticed_s=sample.due_s + lag, sent_s=sample.due_s + wait)
                for sample, lag, wait in lateness
            ]
        samples += [Attempt(0, at - began, at - began, now, now, UNSENT) for at in overdue]
        carried = sum(len(argument.encode()) for argument in self._options["arguments"])
        busy = sorted(turns.busy)
        return LoadResult(
            [
                structs.replace(sample, request=number, agent=self._agent, payload=carried)
                for number, sample in enumerate(samples)
            ],
            seconds=seconds,
            cpu=cpu,
            beat_s=busy[int(0.99 * (len(busy) - 1))] if busy else 0.0,
            throttled_s=throttled_s,
            unsent=len(overdue),
            throttled_periods=throttled_periods,
        )
