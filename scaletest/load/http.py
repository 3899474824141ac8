"""Load over HTTP: one thread, one event loop, as many connections as requests are in flight.

Open load starts a request when it is due. While the maximum is in flight, due requests wait here,
and their latency includes that wait. Nothing here judges a step.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator

from scaletest.load.exact_timers import new_loop
from scaletest.load.http_call import HttpCall, Sender, open_sender
from scaletest.load.level_load import LoadOrder, LoadResult
from scaletest.load.payloads import Bodies
from scaletest.model.attempt import UNSENT, Attempt
from scaletest.observe.node.used_time import Effort

# How often the step tells what it has done, and looks whether it shall stop.
LOOK_S = 0.25
# At most this many starts before replies are read again.
BURST = 64


class HttpLoad:
    """Sends `call` with payloads in turn. Connections stay open from step to step."""

    def __init__(
        self,
        call: HttpCall,
        payloads: Bodies,
        *,
        agent: str = "",
        seen: Callable[[Attempt], None] | None = None,
    ) -> None:
        """agent: name of this load agent, for records. seen: is told each attempt that ended."""
        self._seen = seen
        self._call = call
        self._payloads = payloads
        self._agent = agent
        self._runner = asyncio.Runner(loop_factory=new_loop)
        self._sender = self._runner.run(open_sender(call))

    def measure(
        self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        """Measure one step; see `LevelLoad.measure`."""
        step = _HttpStep(self._call, self._payloads, self._sender, order, self._agent, self._seen)
        return self._runner.run(step.run(stopping, tell))

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._sender.close())
        self._runner.close()


class _HttpStep:
    """One step of one load."""

    def __init__(
        self,
        call: HttpCall,
        payloads: Bodies,
        via: Sender,
        order: LoadOrder,
        agent: str,
        seen: Callable[[Attempt], None] | None,
    ) -> None:
        self._call, self._payloads, self._via = call, payloads, via
        self._order, self._agent, self._seen = order, agent, seen
        self._samples: list[Attempt] = []
        self._waiting: deque[tuple[int, float, float]] = deque()  # number, due, noticed
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
        order, effort = self._order, Effort()
        self._began = time.monotonic()
        beating = asyncio.create_task(self._beat())
        pacing = asyncio.create_task(
            self._send_closed() if order.pace is None else self._send_open(order.pace)
        )
        while not pacing.done():
            await asyncio.wait((pacing,), timeout=LOOK_S)
            tell(self._ended, self._failed)
            is_behind = self._number - self._ended > order.most_behind
            if stopping() or (is_behind and order.pace is not None):
                self._over = True
                self._wake.set()
        pacing.result()
        seconds = self._now() if order.count else min(self._now(), order.seconds)
        beating.cancel()
        cpu, throttling = effort.cores(), effort.throttling
        throttled_s, throttled_periods = throttling.seconds(), throttling.part()
        # wait for requests in flight, and record those that were never sent
        self._over = True
        unsent, self._waiting = list(self._waiting), deque()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=order.patience_s + 1.0)
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        now = self._now()
        for number, due, noticed in unsent:
            self._samples.append(Attempt(number, due, noticed, now, now, UNSENT, agent=self._agent))
        if self._failure is not None:
            raise self._failure
        beats = sorted(self._beats)
        return LoadResult(
            self._samples,
            seconds=max(seconds, 1e-6),
            cpu=cpu,
            beat_s=beats[int(0.99 * (len(beats) - 1))] if beats else 0.0,
            throttled_s=throttled_s,
            unsent=len(unsent),
            throttled_periods=throttled_periods,
        )

    async def _send_open(self, pace: Iterator[float]) -> None:
        loop, order = asyncio.get_running_loop(), self._order
        due = next(pace, None)
        while due is not None and due < order.seconds and not self._over:
            now = self._now()
            if due > now:
                timer = loop.call_at(loop.time() + due - now, self._wake.set)
                await self._wake.wait()
                timer.cancel()
                self._wake.clear()
                continue
            for _ in range(BURST):
                if due is None or due > now or due >= order.seconds:
                    break
                self._waiting.append((self._number, due, now))
                self._number += 1
                due = next(pace, None) if not self._is_full() else None
            self._start_waiting()
            await asyncio.sleep(0)
        if not order.count and not self._over and self._now() < order.seconds:
            await self._rest(order.seconds - self._now())
        while order.count and self._waiting and not self._over:
            await asyncio.sleep(LOOK_S / 10)  # exactly `count` are sent, however long that takes

    async def _send_closed(self) -> None:
        for _ in range(self._order.parallel):
            self._enqueue_next()
        self._start_waiting()
        if not self._order.count:
            await self._rest(self._order.seconds)
        while self._order.count and not self._is_full() and not self._over:
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
            if self._is_full():
                return

    def _is_full(self) -> bool:
        return bool(self._order.count) and self._number >= self._order.count

    def _enqueue_next(self) -> None:
        """Enqueue a request of closed load, unless the step is over."""
        if self._over or self._is_full():
            self._wake.set()
            return
        now = self._now()
        self._waiting.append((self._number, now, now))
        self._number += 1

    def _start_waiting(self) -> None:
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
            self._enqueue_next()
        self._start_waiting()

    async def _request(self, number: int, due: float, noticed: float) -> None:
        body = self._payloads.get(number)
        sent = self._now()
        response = await self._via.send(body)
        stream, first_s = response.stream, None
        if stream is not None and stream.first_at is not None:
            first_s = stream.first_at - self._began
        attempt = Attempt(
            number,
            due,
            noticed,
            sent,
            self._now(),
            response.outcome,
            response.size,
            response.server_s,
            pod=response.replica,
            agent=self._agent,
            payload=len(body or b""),
            first_s=first_s,
            tokens=stream.output_tokens if stream else 0,
            prompt_tokens=(stream.tokens("prompt_tokens") or 0) if stream else 0,
            counts_chunks=stream is not None and stream.tokens("completion_tokens") is None,
        )
        self._samples.append(attempt)
        if self._seen is not None:
            self._seen(attempt)
        self._ended += 1
        self._failed += not attempt.ok

    async def _beat(self) -> None:
        """Note how late timers of this event loop fire: closed load's only measure of that."""
        while True:
            wanted = time.monotonic() + 0.01
            await asyncio.sleep(0.01)
            self._beats.append(max(0.0, time.monotonic() - wanted))
