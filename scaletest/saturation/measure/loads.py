"""Loads of a search: a queue of scaletest's workers, and any load whose machine is looked at.

Records of the queue's requests become samples.

A look finds who uses the cores of this machine, and where the time of a service on it goes. Both
are told apart by their processes: the tester is this process with what it started, the service
whoever listens on the port, with what it started. A thread looks; it may take as little of a core
as a worker's looks.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from scaletest.broker import Client
from scaletest.load import ClosedLoop, OpenLoop
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult
from scaletest.load.loops import LoadLoop
from scaletest.model import Activity, Outcome, Record, State
from scaletest.model.activity import Wait
from scaletest.model.attempt import OK, TIMED_OUT, UNSENT, Attempt
from scaletest.model.machine_use import MOST_ACTIVITIES, MachineUse
from scaletest.observe.blocking import Blocking
from scaletest.observe.node.used_time import Effort, machine_time, own_used_s, used_s
from scaletest.observe.sampler import ProgramWatch, RequestSampler
from scaletest.observe.sampling import OwnSchedule
from scaletest.observe.sockets import CLIENTS, Sockets
from scaletest.observe.tree import Tree

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
        began, started = self._clock(), threading.Event()

        def take(record: Record) -> None:
            started.wait()
            ended = loop.read_at - began
            due = max(0.0, ended - record.total_s)
            reply = record.reply
            samples.append(
                Attempt(
                    0,
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
        started.set()
        try:
            while not (stopping() or self._over(loop, order, samples, self._clock() - began)):
                loop.wait_idle(min(LOOK_S, max(0.01, order.seconds - (self._clock() - began))))
                tell(len(samples), sum(not sample.ok for sample in samples))
            seconds = min(self._clock() - began, order.seconds)
            cores, throttled, periods = (
                effort.cores(),
                effort.throttling.seconds(),
                effort.throttling.part(),
            )
            loop.stop()
            loop.wait_idle(order.patience_s)
            now = self._clock() - began
        finally:
            loop.close()
        # not before the loop has ended: until then replies come in, and a request would be counted
        # twice
        pending = [at - began for at in loop.waiting_since]
        unsent = loop.overdue_since if isinstance(loop, OpenLoop) else []
        # what has no reply is backlog from when it was due, as is what was never submitted
        samples += [Attempt(0, due, due, due, now, TIMED_OUT) for due in pending]
        rows = _noticed(samples, turns) if order.pace is not None else _numbered(samples)
        rows += [
            Attempt(len(rows) + n, at - began, at - began, now, now, UNSENT)
            for n, at in enumerate(unsent)
        ]
        busy = sorted(turns.busy)
        carried = sum(len(argument.encode()) for argument in self._options["arguments"])
        named = [structs.replace(row, agent=self._agent, payload=carried) for row in rows]
        late = busy[int(0.99 * (len(busy) - 1))] if busy else 0.0
        return LoadResult(
            named, seconds, cores, late, throttled, len(unsent), throttled_periods=periods
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


def _noticed(samples: list[Attempt], turns: _Turns) -> list[Attempt]:
    """Submissions follow their pace in order, so the n-th request due is the n-th that was late."""
    ordered = _numbered(sorted(samples, key=lambda sample: sample.due_s))
    nothing = [0.0] * len(ordered)
    late = zip(ordered, [*turns.lags, *nothing], [*turns.waits, *nothing], strict=False)
    return [
        structs.replace(sample, noticed_s=sample.due_s + lag, sent_s=sample.due_s + wait)
        for sample, lag, wait in late
    ]


def _numbered(samples: list[Attempt]) -> list[Attempt]:
    return [structs.replace(sample, request=number) for number, sample in enumerate(samples)]


def _word(record: Record) -> str:
    if record.ok:
        return OK
    reply = record.reply
    return TIMED_OUT if reply.outcome is Outcome.TIMED_OUT else str(reply.reason or reply.outcome)


logger = logging.getLogger("scaletest.saturation")
LONGEST_S = 0.5


class Watched:
    """The load, and what is around it.

    servers: finds the first processes of the service, none when it is elsewhere. port: on which
    they serve.
    """

    def __init__(
        self, load: LevelLoad, servers: Callable[[], Sequence[int]], port: int = 0
    ) -> None:
        self._load, self._servers, self._port = load, servers, port
        self._told = False

    def measure(
        self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        """As LevelLoad says."""
        around = self._begin()
        if around is None:
            return self._load.measure(order, stopping, tell)
        try:
            measured = self._load.measure(order, stopping, tell)
        finally:
            use = around.close()
        return replace(measured, around=use)

    def close(self) -> None:
        """End the load."""
        self._load.close()

    def _begin(self) -> _Around | None:
        try:
            return _Around(list(self._servers())[:MOST_ACTIVITIES], self._port)
        except (OSError, ValueError) as error:
            if not self._told:
                self._told = True
                logger.warning("what else this machine does is not known: %s", error)
            return None


class _Around:
    """One step, from now on: a thread looks at the processes of a service that are there before and
    after.
    """

    def __init__(self, servers: Sequence[int], port: int) -> None:
        self._servers, self._port = servers, port
        self._own = OwnSchedule()
        self._began, self._machine = time.monotonic(), machine_time()
        self._used_s, self._served_s, self._schedule = (
            own_used_s(),
            used_s(servers),
            self._own.read(),
        )
        self._ends = threading.Event()
        self._activities: tuple[Activity, ...] = ()
        self._thread = threading.Thread(target=self._look, name="scaletest-looks", daemon=True)
        if servers:
            self._thread.start()

    def close(self) -> MachineUse | None:
        """What happened since; None when that cannot be told."""
        self._ends.set()
        if self._servers:
            self._thread.join()
        passed_s = time.monotonic() - self._began
        try:
            machine = machine_time()
        except OSError:
            return None
        after = self._own.read()
        waited_s = after.wait_s - self._schedule.wait_s if after and self._schedule else 0.0

        def cores(seconds: float) -> float:
            return max(0.0, seconds) / passed_s

        return MachineUse(
            cores=float(machine.cores),
            busy=cores(machine.busy_s - self._machine.busy_s),
            tester=cores(own_used_s() - self._used_s),
            service=cores(used_s(self._servers) - self._served_s),
            waited=min(1.0, cores(waited_s)),
            activities=self._activities,
        )

    def _look(self) -> None:
        sampler = RequestSampler()
        blocking = Blocking(Sockets(served=self._port), denied=sampler.tell)
        trees = [Tree(pid, blocking) for pid in self._servers]
        watches = [sampler.begin() for _ in trees]
        for watch, tree in zip(watches, trees, strict=True):
            watch.resume(tree)
        while not self._ends.wait(_until(watches)):
            for watch in watches:
                if watch.due <= time.monotonic():
                    watch.look()
        activities = [watch.close(None) for watch in watches]
        self._activities = tuple(
            idle_between_requests(activity) for activity in activities if activity is not None
        )
        for tree in trees:
            tree.close()


def idle_between_requests(activity: Activity) -> Activity:
    """A service that waits for its clients waits at sockets, and is idle."""
    waited_s = sum(wait.seconds for wait in activity.waits if _for_clients(wait))
    if not waited_s:
        return activity
    seconds = dict(activity.seconds)
    seconds[State.NETWORK] = max(0.0, seconds.get(State.NETWORK, 0.0) - waited_s)
    seconds[State.IDLE] = seconds.get(State.IDLE, 0.0) + waited_s
    return replace(activity, seconds=seconds, waits=tuple(map(_idle, activity.waits)))


def _idle(wait: Wait) -> Wait:
    return replace(wait, state=State.IDLE) if _for_clients(wait) else wait


def _for_clients(wait: Wait) -> bool:
    return wait.state is State.NETWORK and wait.object == CLIENTS


def _until(watches: Sequence[ProgramWatch]) -> float:
    return max(0.0, min(LONGEST_S, min(watch.due for watch in watches) - time.monotonic()))
