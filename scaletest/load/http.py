"""Load over HTTP: one thread, one event loop, as many connections as requests are in flight.

Open load starts a request when it is due. While the maximum is in flight, due requests wait here,
and their latency includes that wait. Nothing here judges a step.

The timers of the event loop fire within some 0.1 ms; otherwise it equals asyncio's own. epoll
counts time-outs in whole milliseconds and asyncio rounds them up, so a timer would fire up to 1 ms
late, 0.5 ms on average. Open load counts a request from its intended start, so that each latency
would include this error of the tester. An epoll descriptor can itself be waited for, and select
counts in microseconds.
"""

from __future__ import annotations

import asyncio
import select
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterator

from scaletest.load.http_call import HttpCall, Sender, open_sender
from scaletest.load.level_load import LoadOrder, LoadResult
from scaletest.load.payloads import Payloads
from scaletest.model.attempt import UNSENT, Attempt
from scaletest.observe.node.used_time import Effort

# select takes no descriptor from here on
FD_SETSIZE = 1024


def new_loop() -> asyncio.AbstractEventLoop:
    """The event loop; without epoll asyncio's own, because kqueue counts in nanoseconds anyway."""
    if not hasattr(selectors, "EpollSelector"):
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(_Exact())


class _Exact(getattr(selectors, "EpollSelector", selectors.DefaultSelector)):  # type: ignore[misc]
    """epoll, waited for with select."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events; see BaseSelector."""
        number: int = self.fileno()
        if timeout is not None and timeout > 0 and number < FD_SETSIZE:
            select.select((number,), (), (), timeout)
            timeout = 0
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(timeout)
        return ready


LOOK_S = 0.25
# At most this many starts before replies are read again.
BURST = 64


class HttpLoad:
    """Sends `call` with payloads in turn. Connections stay open from step to step.

    agent: name of this load agent, for records.
    """

    def __init__(self, call: HttpCall, payloads: Payloads, *, agent: str = "") -> None:
        self._call = call
        self._payloads = payloads
        self._agent = agent
        self._runner = asyncio.Runner(loop_factory=new_loop)
        self._sender = self._runner.run(open_sender(call))

    def measure(
        self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        """Measure one step; see `LevelLoad.measure`."""
        step = _HttpStep(self._call, self._payloads, self._sender, order, self._agent)
        return self._runner.run(step.run(stopping, tell))

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._sender.close())
        self._runner.close()


class _HttpStep:
    """One step of one load."""

    def __init__(
        self, call: HttpCall, payloads: Payloads, via: Sender, order: LoadOrder, agent: str
    ) -> None:
        self._call, self._payloads, self._via, self._order, self._agent = (
            call,
            payloads,
            via,
            order,
            agent,
        )
        self._samples: list[Attempt] = []
        self._waiting: deque[tuple[int, float, float]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = self._ended = self._failed = self._flying = 0
        self._over = False
        self._failure: BaseException | None = None
        self._wake = asyncio.Event()
        self._beats: list[float] = []

    def _now(self) -> float:
        return time.monotonic() - self._began

    async def run(
        self, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        """Send requests, wait for those in flight, and return the measurement."""
        effort = Effort()
        self._began = time.monotonic()
        beating = asyncio.create_task(self._beat())
        pacing = asyncio.create_task(
            self._open() if self._order.pace is not None else self._closed()
        )
        while not pacing.done():
            await asyncio.wait((pacing,), timeout=LOOK_S)
            tell(self._ended, self._failed)
            is_behind = self._number - self._ended > self._order.most_behind
            if stopping() or (is_behind and self._order.pace is not None):
                self._over = True
                self._wake.set()
        pacing.result()
        seconds = min(self._now(), self._order.seconds) if not self._order.count else self._now()
        beating.cancel()
        used, throttling = effort.cores(), effort.throttling
        throttled, periods = throttling.seconds(), throttling.part()
        unsent = await self._drain()
        if self._failure is not None:
            raise self._failure
        beats = sorted(self._beats)
        late = beats[int(0.99 * (len(beats) - 1))] if beats else 0.0
        return LoadResult(
            self._samples,
            max(seconds, 1e-6),
            used,
            late,
            throttled,
            unsent,
            throttled_periods=periods,
        )

    async def _open(self) -> None:
        assert self._order.pace is not None
        loop = asyncio.get_running_loop()
        at = next(self._order.pace, None)
        while at is not None and at < self._order.seconds and not self._over:
            now = self._now()
            if at > now:
                timer = loop.call_at(loop.time() + at - now, self._wake.set)
                await self._wake.wait()
                timer.cancel()
                self._wake.clear()
                continue
            at = self._enqueue_due(self._order.pace, at, now)
            self._pump()
            await asyncio.sleep(0)
        if not self._order.count and not self._over and self._now() < self._order.seconds:
            await self._rest(self._order.seconds - self._now())
        while self._order.count and self._waiting and not self._over:
            await asyncio.sleep(LOOK_S / 10)  # exactly `count` are sent, however long that takes

    def _enqueue_due(self, pace: Iterator[float], at: float | None, now: float) -> float | None:
        """Enqueue the requests that are due, from the one at `at` on, at most BURST of them.

        Returns when the next request is due; None after the last.
        """
        for _ in range(BURST):
            if at is None or at > now or at >= self._order.seconds:
                break
            self._waiting.append((self._number, at, now))
            self._number += 1
            at = next(pace, None) if not self._full() else None
        return at

    async def _closed(self) -> None:
        for _ in range(self._order.parallel):
            self._next_closed()
        self._pump()
        if not self._order.count:
            await self._rest(self._order.seconds)
        while self._order.count and not self._full() and not self._over:
            await self._rest(LOOK_S)
        self._over = True

    async def _rest(self, seconds: float) -> None:
        """Sleep until the time is over or the step ends."""
        ends = self._now() + seconds
        while not self._over and self._now() < ends:
            try:
                await asyncio.wait_for(self._wake.wait(), ends - self._now())
            except TimeoutError:
                return
            self._wake.clear()
            if self._order.count and self._full():
                return

    def _full(self) -> bool:
        return bool(self._order.count) and self._number >= self._order.count

    def _next_closed(self) -> None:
        if self._over or self._full():
            self._wake.set()
            return
        now = self._now()
        self._waiting.append((self._number, now, now))
        self._number += 1

    def _pump(self) -> None:
        """Start waiting requests as long as connections are free."""
        while self._waiting and self._flying < self._call.connections:
            self._flying += 1
            task = asyncio.create_task(self._request(*self._waiting.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._flying -= 1
        if task.cancelled():
            pass
        elif task.exception() is not None:
            # the request could not even be sent; a step without its record would be wrong
            self._failure = task.exception()
            self._over = True
            self._wake.set()
        elif self._order.pace is None:
            self._next_closed()
        self._pump()

    async def _request(self, number: int, due: float, noticed: float) -> None:
        body = self._payloads.get(number)
        sent = self._now()
        response = await self._via.send(body)
        attempt = Attempt(
            number,
            due,
            noticed,
            sent,
            self._now(),
            *response,
            agent=self._agent,
            payload=len(body or b""),
        )
        self._samples.append(attempt)
        self._ended += 1
        self._failed += not attempt.ok

    async def _drain(self) -> int:
        """Wait for requests in flight; record those never sent, and return their number."""
        self._over = True
        left, self._waiting = list(self._waiting), deque()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._order.patience_s + 1.0)
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        now = self._now()
        for number, due, noticed in left:
            self._samples.append(Attempt(number, due, noticed, now, now, UNSENT, agent=self._agent))
        return len(left)

    async def _beat(self) -> None:
        """Note how late timers of this event loop fire: closed load's only measure of that."""
        while True:
            wanted = time.monotonic() + 0.01
            await asyncio.sleep(0.01)
            self._beats.append(max(0.0, time.monotonic() - wanted))
