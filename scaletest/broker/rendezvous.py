"""Where load agents meet: one plan, orders that all begin at one instant, and what each brings back.

Times are Redis server time, so that agents on several machines begin together: each knows by how much its own clock is
off, within half a round trip. Everything is deleted when the coordinator closes the meeting. One that was killed is not
heard of any more: then the meeting ends by itself, and its agents with it. Headers with credentials are part of the
plan: whoever may read this Redis may read them.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from scaletest.broker import keys
from scaletest.broker.connection import REDIS_ERRORS, Redis
from scaletest.model.errors import UsageError
from scaletest.model.packing import unpack

# Without a word of the coordinator, which looks for results every second. It may be stopped for a while.
EXPIRE_S = 600
POLL_S = 1.0
CLOCK_LOOKS = 9
MOST_BYTES = 512 * 1024 * 1024


class Rendezvous:
    """One meeting, of a coordinator and its agents."""

    def __init__(self, redis: Redis, name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._redis, self.name, self._clock = redis, name, clock

    def _key(self, part: str) -> str:
        return keys.agents(self.name, part)

    def open(self, plan: dict[str, Any]) -> None:
        """Publish what all agents do."""
        self._redis.set(self._key("plan"), json.dumps(plan), ex=EXPIRE_S)

    def plan(self) -> dict[str, Any]:
        """What all agents do. UsageError when there is no such meeting."""
        text: Any = self._redis.get(self._key("plan"))
        if text is None:
            raise UsageError(f"there is no meeting {self.name!r}", hint="agents are started by saturate --agents N")
        return dict(json.loads(text))

    def join(self) -> int:
        """The number of a new agent, from 0."""
        pipe = self._redis.pipeline()
        pipe.incr(self._key("joined"))
        pipe.expire(self._key("joined"), EXPIRE_S)
        return int(pipe.execute()[0]) - 1

    def joined(self) -> int:
        """How many agents came."""
        self._go_on()
        found: Any = self._redis.get(self._key("joined"))
        return int(found or 0)

    def _go_on(self) -> None:
        self._redis.expire(self._key("plan"), EXPIRE_S)

    def order(self, orders: list[dict[str, Any]]) -> None:
        """Give every agent its order, and forget that the last one was to be stopped."""
        self._go_on()
        pipe = self._redis.pipeline()
        pipe.delete(self._key("stop"))
        for index, one in enumerate(orders):
            pipe.rpush(self._key(f"orders:{index}"), zlib.compress(json.dumps(one).encode(), 1))
            pipe.expire(self._key(f"orders:{index}"), EXPIRE_S)
        pipe.execute()

    def next_order(self, index: int) -> dict[str, Any] | None:
        """The next order of this agent; None when none came within a second."""
        found: Any = self._redis.blpop([self._key(f"orders:{index}")], timeout=POLL_S)
        return None if found is None else _unpacked(found[1])

    def alive(self) -> bool:
        """Whether the meeting goes on."""
        return bool(self._redis.exists(self._key("plan")))

    def stop(self) -> None:
        """Tell all agents to end what they do."""
        self._redis.set(self._key("stop"), "1", ex=EXPIRE_S)

    def stopped(self) -> bool:
        """Whether they are to."""
        return bool(self._redis.exists(self._key("stop")))

    def bring(self, number: int, found: dict[str, Any]) -> None:
        """What an agent found for order `number`."""
        pipe = self._redis.pipeline()
        pipe.rpush(self._key(f"done:{number}"), zlib.compress(json.dumps(found).encode(), 1))
        pipe.expire(self._key(f"done:{number}"), EXPIRE_S)
        pipe.execute()

    def brought(self, number: int) -> dict[str, Any] | None:
        """What one agent found; None when none came within a second."""
        self._go_on()
        found: Any = self._redis.blpop([self._key(f"done:{number}")], timeout=POLL_S)
        return None if found is None else _unpacked(found[1])

    def close(self) -> None:
        """Delete everything; agents end then. A Redis that is gone has nothing left, or forgets it by itself."""
        with suppress(*REDIS_ERRORS):
            names = list(self._redis.scan_iter(match=f"{keys.agents(self.name, '')}*", count=1000))
            if names:
                self._redis.delete(*names)

    def offset_s(self) -> float:
        """Redis server time less this process's clock, by the quickest of some looks."""
        best, offset = float("inf"), 0.0
        for _ in range(CLOCK_LOOKS):
            before = self._clock()
            seconds, micros = self._redis.time()
            after = self._clock()
            if after - before < best:
                best, offset = after - before, seconds + micros / 1e6 - (before + after) / 2
        return offset


def _unpacked(data: bytes) -> dict[str, Any]:
    """Whoever may write to this Redis could fill our memory; within bounds it may."""
    return dict(json.loads(unpack(data, MOST_BYTES, "what an agent brought")))
