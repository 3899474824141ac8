"""Load over HTTP: one thread, one event loop, as many connections as requests are in flight.

Open load starts a request when it is due. While the maximum is in flight, due requests wait here,
and their latency includes that wait. Nothing here judges a step.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from scaletest.load.exact_timers import new_loop
from scaletest.load.http_call import HttpCall, Sender, open_sender
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult, NoteProgress, nearly_longest
from scaletest.load.prompts import Prompts
from scaletest.model.attempt import UNSENT, Attempt
from scaletest.model.errors import UsageError
from scaletest.observe.control_groups import raise_open_files
from scaletest.observe.node.used_time import Effort

# How often the step tells what it has done, and looks whether it shall stop.
CHECK_EVERY_S = 0.25
# How often a step of a number of requests looks whether all were sent.
COUNT_CHECK_S = 0.025
# At most this many starts before replies are read again.
STARTS_AT_ONCE = 64
# Files and sockets that a load needs beside its connections.
OTHER_FILES = 64


@dataclass(frozen=True, slots=True)
class HttpWork:
    """The requests of this process, or of each agent, to a service."""

    call: HttpCall
    bodies: list[bytes | None]
    prompts: Prompts | None = None  # makes the bodies, instead of these

    def make_load(
        self, agent: str = "", seen: Callable[[Attempt], None] | None = None
    ) -> LevelLoad:
        """Make the load that sends them; see `HttpLoad`.

        UsageError when it may not open so many connections.
        """
        files = self.call.connections + OTHER_FILES
        if raise_open_files(files) < files:
            raise UsageError(
                f"this process may not open {self.call.connections} connections",
                hint="raise ulimit -n, or give <max_in_flight> or a smaller <in_flight>",
            )
        return HttpLoad(self.call, self.bodies, prompts=self.prompts, agent=agent, seen=seen)


class HttpLoad:
    """Sends `call` with bodies in turn. Connections stay open from step to step."""

    def __init__(
        self,
        call: HttpCall,
        bodies: Sequence[bytes | None] = (None,),
        *,
        prompts: Prompts | None = None,
        agent: str = "",
        seen: Callable[[Attempt], None] | None = None,
    ) -> None:
        """prompts: makes a body for each request, instead of `bodies`.

        agent: name of this load agent, for records. seen: is told each attempt that ended.
        """
        self._call, self._agent, self._seen = call, agent, seen
        self._make_body = prompts.get if prompts else lambda number: bodies[number % len(bodies)]
        self._runner = asyncio.Runner(loop_factory=new_loop)
        self._sender = self._runner.run(open_sender(call))

    def measure(
        self,
        order: LoadOrder,
        stopping: Callable[[], bool],
        note_progress: NoteProgress,
    ) -> LoadResult:
        """Measure one step; see `LevelLoad.measure`."""
        step = _HttpStep(
            self._call, self._make_body, self._sender, order, self._agent, seen=self._seen
        )
        return self._runner.run(step.run(stopping, note_progress))

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._sender.close())
        self._runner.close()


class _HttpStep:
    """One step of one load."""

    def __init__(
        self,
        call: HttpCall,
        make_body: Callable[[int], bytes | None],
        sender: Sender,
        order: LoadOrder,
        agent: str,
        *,
        seen: Callable[[Attempt], None] | None,
    ) -> None:
        self._call, self._make_body, self._sender = call, make_body, sender
        self._order, self._agent, self._seen = order, agent, seen
        self._samples: list[Attempt] = []
        self._failed = 0
        # requests that were due: number, due, noticed; and those in flight
        self._waiting: deque[tuple[int, float, float]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0  # of the next request
        self._over = False  # nothing more is sent
        self._failure: BaseException | None = None
        self._wake = asyncio.Event()
        self._beats: list[float] = []

    def _now(self) -> float:
        return time.monotonic() - self._began

    async def run(self, stopping: Callable[[], bool], note_progress: NoteProgress) -> LoadResult:
        """Send requests, wait for those in flight, and return the measurement."""
        order, effort = self._order, Effort()
        self._began = time.monotonic()
        beating = asyncio.create_task(self._measure_timers())
        pacing = asyncio.create_task(
            self._send_closed() if order.pace is None else self._send_open(order.pace)
        )
        while not pacing.done():
            await asyncio.wait((pacing,), timeout=CHECK_EVERY_S)
            note_progress(len(self._samples), self._failed)
            is_behind = self._number - len(self._samples) > order.most_behind
            if stopping() or (is_behind and order.pace is not None):
                self._end_sending()
        pacing.result()
        seconds = self._now() if order.count else min(self._now(), order.seconds)
        beating.cancel()
        # the tester's use is that of the load, without the wait for the last responses
        cpu, throttled_periods = effort.cores(), effort.throttling.part()
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
        return LoadResult(
            self._samples,
            seconds=max(seconds, 1e-6),
            cpu=cpu,
            beat_s=nearly_longest(self._beats),
            throttled_periods=throttled_periods,
        )

    def _end_sending(self) -> None:
        self._over = True
        self._wake.set()

    async def _send_open(self, pace: Iterator[float]) -> None:
        """Send requests when they are due."""
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
            for _ in range(STARTS_AT_ONCE):
                if due is None or due > now or due >= order.seconds:
                    break
                self._waiting.append((self._number, due, now))
                self._number += 1
                due = next(pace, None) if not self._has_count() else None
            self._start_waiting()
            await asyncio.sleep(0)
        if not order.count and not self._over and self._now() < order.seconds:
            await self._sleep(order.seconds - self._now())
        while order.count and self._waiting and not self._over:
            await asyncio.sleep(COUNT_CHECK_S)  # exactly `count` are sent, however long it takes

    async def _send_closed(self) -> None:
        """Keep requests in flight: each one that ends enqueues the next (`_note_end`)."""
        for _ in range(self._order.parallel):
            self._enqueue_next()
        self._start_waiting()
        if not self._order.count:
            await self._sleep(self._order.seconds)
        while self._order.count and not self._has_count() and not self._over:
            await self._sleep(CHECK_EVERY_S)
        self._over = True

    async def _sleep(self, seconds: float) -> None:
        """Sleep until the time is over or the step ends."""
        ends = self._now() + seconds
        while not self._over and self._now() < ends:
            try:
                await asyncio.wait_for(self._wake.wait(), ends - self._now())
            except TimeoutError:
                return
            self._wake.clear()
            if self._has_count():
                return

    def _has_count(self) -> bool:
        """Whether as many requests were begun as were ordered."""
        return bool(self._order.count) and self._number >= self._order.count

    def _enqueue_next(self) -> None:
        """Enqueue a request of closed load, unless the step is over."""
        if self._over or self._has_count():
            self._wake.set()
            return
        now = self._now()
        self._waiting.append((self._number, now, now))
        self._number += 1

    def _start_waiting(self) -> None:
        """Start waiting requests as long as connections are free."""
        while self._waiting and len(self._tasks) < self._call.connections:
            task = asyncio.create_task(self._send_request(*self._waiting.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        """Let the next request begin after one that ended."""
        self._tasks.discard(task)
        if task.cancelled():
            return
        if task.exception() is not None:
            # the request could not even be sent; a step without its record would be wrong
            self._failure = task.exception()
            self._end_sending()
        elif self._order.pace is None:
            self._enqueue_next()
        self._start_waiting()

    async def _send_request(self, number: int, due: float, noticed: float) -> None:
        """Send one request and record it."""
        body = self._make_body(number)
        sent = self._now()
        response = await self._sender.send(body)
        stream = response.stream
        first_s = None
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
        self._failed += not attempt.ok

    async def _measure_timers(self) -> None:
        """Note how late timers of this event loop fire: closed load's only measure of that."""
        while True:
            wanted = time.monotonic() + 0.01
            await asyncio.sleep(0.01)
            self._beats.append(max(0.0, time.monotonic() - wanted))
