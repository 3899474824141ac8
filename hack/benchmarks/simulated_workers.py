"""Simulated workers, which send what real ones send, word by word.

Lane and heartbeat of the product make their commands; only the waiting for answers is done by one
event loop for all.
"""

from __future__ import annotations

import heapq
import itertools
import json
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import hiredis

from scaletest.broker import keys
from scaletest.broker.fast_lane import FastLane, FinishedRequest, TakenRequest
from scaletest.broker.heartbeat import DEFAULT_INTERVAL_S, SOONEST_REAP_S, Heartbeat
from scaletest.broker.retrying import Retrying
from scaletest.broker.samples import SamplerLease
from scaletest.broker.scripts import script

TICK_S = DEFAULT_INTERVAL_S / 2
# For requests, for heartbeats, and for commands of RQ's tools.
CONNECTIONS_A_WORKER = 3
# Whatever is run here, the most frequent first.
SCRIPTS = (
    "beat",
    "cycle",
    "reap",
    "metrics",
    "roster",
    "desert",
    "submit",
    "client_beat",
    "sample",
    "watch",
)
Command = tuple[Any, ...]


class Capture:
    """A client that keeps what it is asked to send; it answers as to an idle worker."""

    def __init__(self, real: Any) -> None:
        self.connection_pool = real.connection_pool
        self.command: Command = ()

    def evalsha(self, digest: str, *arguments: Any) -> Any:
        self.command = ("EVALSHA", digest, *arguments)
        return (1, 0) if script_of(digest) == "beat" else (0, 0, 0, None)


def script_of(digest: str) -> str:
    """Return the name of a script; its digest when nobody here may run it."""
    return next((name for name in SCRIPTS if script(name).digest == digest), digest)


class Conversation:
    """One connection: words go out, and whoever asked gets the answer."""

    def __init__(self, loop: Loop, path: str) -> None:
        self._loop = loop
        self._reader = hiredis.Reader()
        self._waiting: deque[Callable[[Any], None]] = deque()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.socket.setblocking(False)
        loop.selector.register(self.socket, selectors.EVENT_READ, self)

    def say(self, answered: Callable[[Any], None], *commands: Command) -> None:
        """Send commands in one packet; the answer to the last of them counts."""
        for _ in commands[1:]:
            self._waiting.append(_ignore)
        self._waiting.append(answered)
        self.socket.sendall(b"".join(hiredis.pack_command(command) for command in commands))

    def readable(self) -> None:
        self._reader.feed(self.socket.recv(65536))
        while (answer := self._reader.gets()) is not False:
            if isinstance(answer, Exception):
                raise answer
            if self._waiting:
                self._waiting.popleft()(answer)

    def close(self) -> None:
        self._loop.selector.unregister(self.socket)
        self.socket.close()


def _ignore(answer: Any) -> None:
    """Return the answer to a command that only prepares the next."""


class Loop:
    """Waits for all answers, and calls what is due."""

    def __init__(self) -> None:
        self.selector = selectors.EpollSelector()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self.late_s: list[float] = []

    def at(self, due: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (due, next(self._number), call))

    def run_until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Go on until that is so, at most for so long; whether it is."""
        end = time.monotonic() + seconds
        while not done():
            now = time.monotonic()
            if now >= end:
                return False
            while self._due and self._due[0][0] <= now:
                due, _, call = heapq.heappop(self._due)
                self.late_s.append(now - due)
                call()
            wait = min(0.05, max(0.0, self._due[0][0] - time.monotonic())) if self._due else 0.05
            for key, _ in self.selector.select(wait):
                key.data.readable()
        return True


class Simulated:
    """One worker."""

    holds = False  # or it keeps the requests that it takes, and never ends them

    def __init__(
        self,
        loop: Loop,
        path: str,
        capture: Capture,
        name: str,
        queue: str,
        *,
        connections: int = CONNECTIONS_A_WORKER,
    ) -> None:
        self._loop, self._capture = loop, capture
        self.name, self._queue = name, queue
        self.taken: list[TakenRequest] = []
        self.beats = self.reaps = 0
        self._dead = False
        self._lane = FastLane(capture, name, queue, DEFAULT_INTERVAL_S, Retrying(name))  # type: ignore[arg-type]
        sampling = SamplerLease(queue, f"node-{hash(name) % 1000}", name)
        self._heartbeat = Heartbeat(capture, name, queue, details=self._details, sampling=sampling)  # type: ignore[arg-type]
        self._heartbeat._wake.close()  # the loop wakes it
        self.conversations = [Conversation(loop, path) for _ in range(connections)]
        self._main, self._beating, *commands = self.conversations
        for conversation in commands:
            conversation.say(_ignore, ("SUBSCRIBE", f"{keys.RQ}pubsub:{name}"))

    def _details(self) -> dict[str, str | int | float]:
        return {
            "successful_job_count": 0,
            "failed_job_count": 0,
            "total_working_time": 0.0,
            "hostname": "host",
            "queues": self._queue,
            "pid": 1,
            "birth": "2026-01-01T00:00:00.000000Z",
            "version": "3.0.0",
            "python_version": "3.11",
            "ip_address": "10.0.0.1",
            "node": f"node-{hash(self.name) % 1000}",
            "pod": self.name,
        }

    def start(self) -> None:
        """Register as a real one does: with a beat, then ask for work."""
        self._beat(lambda _: self._cycle(None))
        self._loop.at(time.monotonic() + TICK_S * (0.5 + hash(self.name) % 1000 / 1000), self._tick)

    def _tick(self) -> None:
        if self._dead:
            return
        self._loop.at(time.monotonic() + TICK_S, self._tick)
        self._beat(self._come_again)

    def _come_again(self, next_s: float | None) -> None:
        """Beat once more when a lease ends before the next tick."""
        if next_s is not None and next_s < TICK_S:
            self._loop.at(time.monotonic() + max(SOONEST_REAP_S, next_s), self._look)

    def _look(self) -> None:
        if not self._dead:
            self._beat(self._come_again)

    def _beat(self, then: Callable[[float | None], None]) -> None:
        """Beat, and reap on this worker's turn. then: gets seconds until the next lease ends."""
        self._heartbeat._beat()

        def answered(row: Any) -> None:
            self.beats += 1
            if row[1]:
                self._reap(then)
            else:
                then(None)

        self._beating.say(answered, self._capture.command)

    def _reap(self, then: Callable[[float | None], None]) -> None:
        self._heartbeat._reap()

        def answered(row: Any) -> None:
            self.reaps += 1
            if row[2]:
                self._reap(then)
            else:
                then(None if row[3] is None else row[3] / 1e6)

        self._beating.say(answered, self._capture.command)

    def _cycle(self, done: FinishedRequest | None) -> None:
        self._lane._next_call()
        self._main.say(self._answered, self._lane._command(done, "1"))

    def _answered(self, row: Any) -> None:
        taken = self._lane._parse(row)
        if isinstance(taken, TakenRequest):
            self.taken.append(taken)
            if not Simulated.holds:
                reply = (
                    json.dumps({"id": taken.id, "outcome": "succeeded", "worker": self.name})[:-1]
                    + "}"
                )
                self._cycle(FinishedRequest(taken, "succeeded", 0, 0, reply, False))
            else:
                self._heartbeat.note_start(taken.id, taken.attempt)
            return
        self._lane._next_call()
        move = (
            "BLMOVE",
            keys.rq_queue(self._queue),
            keys.taking(self._queue),
            "LEFT",
            "RIGHT",
            str(DEFAULT_INTERVAL_S),
        )
        self._main.say(self._answered, move, self._lane._command(None, "2"))

    def kill(self) -> None:
        """Vanish without a word, once."""
        if self._dead:
            return
        self._dead = True
        for conversation in self.conversations:
            conversation.close()
