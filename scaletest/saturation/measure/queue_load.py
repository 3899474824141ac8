"""The load on a queue of scaletest's workers: records of its requests become samples."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import structs

from scaletest.broker import Client
from scaletest.load import ClosedLoop, OpenLoop
from scaletest.load.level_load import LoadOrder, LoadResult, NoteProgress, nearly_longest
from scaletest.load.loops import LoadLoop
from scaletest.model import Outcome, Record
from scaletest.model.attempt import OK, TIMED_OUT, UNSENT, Attempt
from scaletest.observe.node.used_time import Effort

# How often a step tells what it has done.
CHECK_EVERY_S = 0.25
# A submission that is later than this is late.
LATE_AFTER_S = 0.010


class _Turns:
    """Listens to a loop: how late each submission was, in order, and how busy the loop was."""

    def __init__(self, maximum: int) -> None:
        self.waits_s: list[float] = []  # from when a request was due to its submission
        self.lags_s: list[float] = []  # the tester's own part of that
        self.busy_s: list[float] = []  # of each turn
        self._maximum = maximum
        # whether requests wait here because `maximum` are in flight: they wait for the service, and
        # that is backlog, and no lateness of the tester
        self._held = False

    def note_turn(self, busy_s: float, in_flight: int) -> None:
        """Note a turn of the loop."""
        self.busy_s.append(busy_s)
        self._held = self._held or in_flight >= self._maximum

    def note_lateness(self, seconds: float) -> None:
        """Note a submission; held requests are submitted over several turns."""
        self._held = self._held and seconds > LATE_AFTER_S
        self.waits_s.append(seconds)
        self.lags_s.append(0.0 if self._held else seconds)

    def add_lateness(self, samples: Sequence[Attempt]) -> list[Attempt]:
        """Return the samples by due time, with how late each was noticed and sent.

        Submissions follow their pace in order, so the n-th request due is the n-th late one.
        """
        ordered = sorted(samples, key=lambda sample: sample.due_s)
        ordered[: len(self.lags_s)] = [
            structs.replace(sample, noticed_s=sample.due_s + lag, sent_s=sample.due_s + wait)
            for sample, lag, wait in zip(ordered, self.lags_s, self.waits_s, strict=False)
        ]
        return ordered


class QueueLoad:
    """Loads one queue."""

    def __init__(
        self,
        make_client: Callable[[], Client],
        queue: str,
        *,
        arguments: tuple[str, ...] = (),
        time_limit_s: float = 0.0,
        maximum: int = 1000,
        agent: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """make_client: creates a client per step, so that no step gets late replies."""
        self._make_client, self._queue, self._maximum = make_client, queue, maximum
        self._clock, self._agent = clock, agent
        self._options: dict[str, Any] = {"arguments": arguments, "time_limit_s": time_limit_s}

    def measure(
        self,
        order: LoadOrder,
        stopping: Callable[[], bool],
        note_progress: NoteProgress,
    ) -> LoadResult:
        """Measure one step; see `LevelLoad.measure`."""
        with self._make_client() as client:
            return self._measure(client, order, stopping, note_progress)

    def close(self) -> None:
        """Do nothing: nothing stays open between steps."""

    def _measure(
        self,
        client: Client,
        order: LoadOrder,
        stopping: Callable[[], bool],
        note_progress: NoteProgress,
    ) -> LoadResult:
        turns, effort = _Turns(self._maximum), Effort()
        samples: list[Attempt] = []
        began = self._clock()
        has_loop = threading.Event()

        def take(record: Record) -> None:
            has_loop.wait()  # replies may come before the loop has its name
            samples.append(_to_attempt(record, ended_s=loop.read_at - began))

        loop = self._start_loop(client, order, take, turns, began)
        has_loop.set()
        try:
            # until the step's time or count is over, or it falls behind
            while not stopping():
                loop.check()
                left_s = began + order.seconds - self._clock()
                is_done = len(samples) >= order.count if order.count else left_s <= 0
                if is_done or loop.in_flight > order.most_behind:
                    break
                loop.wait_idle(min(CHECK_EVERY_S, max(0.01, left_s)))
                note_progress(len(samples), sum(not sample.ok for sample in samples))
            seconds = min(self._clock() - began, order.seconds)
            cpu, throttled_periods = effort.cores(), effort.throttling.part()
            loop.stop()
            loop.wait_idle(order.patience_s)
            now_s = self._clock() - began
        finally:
            loop.close()

        # what has no reply is backlog from when it was due, as is what was never submitted; not
        # before the loop has ended, as until then replies come in, and would be counted twice
        for since in loop.waiting_since:
            due_s = since - began
            samples.append(Attempt(0, due_s, due_s, due_s, now_s, TIMED_OUT))
        if order.pace is not None:
            samples = turns.add_lateness(samples)
        for since in loop.overdue_since:
            samples.append(Attempt(0, since - began, since - began, now_s, now_s, UNSENT))
        payload = sum(len(argument.encode()) for argument in self._options["arguments"])
        return LoadResult(
            [
                structs.replace(sample, request=number, agent=self._agent, payload=payload)
                for number, sample in enumerate(samples)
            ],
            seconds=seconds,
            cpu=cpu,
            beat_s=nearly_longest(turns.busy_s),
            throttled_periods=throttled_periods,
        )

    def _start_loop(
        self,
        client: Client,
        order: LoadOrder,
        take: Callable[[Record], None],
        turns: _Turns,
        began: float,
    ) -> LoadLoop:
        """Begin to load the queue, as open or closed load; `take` receives the records."""
        settings: dict[str, Any] = {"observer": turns, "clock": self._clock, **self._options}
        if order.pace is None:
            loop = ClosedLoop(client, self._queue, take, total=order.count or None, **settings)
            loop.set_parallel(order.parallel)
            return loop
        return OpenLoop(
            client,
            self._queue,
            take,
            order.pace,
            maximum=self._maximum,
            began=began,
            ends_s=math.inf if order.count else order.seconds,
            **settings,
        )


def _to_attempt(record: Record, ended_s: float) -> Attempt:
    """Return the attempt of a record whose reply came at this time of the step."""
    reply = record.reply
    if reply.outcome is Outcome.TIMED_OUT:
        outcome = TIMED_OUT
    else:
        outcome = OK if record.ok else str(reply.reason or reply.outcome)
    due_s = max(0.0, ended_s - record.total_s)
    pod = reply.pod or reply.worker
    return Attempt(0, due_s, due_s, due_s, ended_s, outcome, server_s=reply.run_s, pod=pod)
