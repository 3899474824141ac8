"""The rendezvous of load agents, who share one plan and begin each order at one instant.

Times are Redis server time, so that agents on several machines begin together: each knows the
offset of its own clock, within half a round trip. The coordinator deletes everything when it closes
the rendezvous. If it was killed, the keys expire, and its agents end. Headers with credentials are
part of the plan: whoever may read this Redis may read them.
"""

import json
import time
import zlib
from contextlib import suppress
from typing import Any

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.redis_errors import REDIS_ERRORS
from scaletest.model.errors import UsageError
from scaletest.model.wire import decompress

# Keys live so long without their coordinator, which asks for results every second. It may be
# suspended for a while.
EXPIRE_S = 600
# How long one call waits for an order or a result.
POLL_S = 1.0
# How often the offset of the clock is measured: the quickest answer is the most exact one.
CLOCK_READINGS = 9
# How long an unpacked document may be.
MOST_BYTES = 512 * 1024 * 1024


class Rendezvous:
    """One rendezvous of a coordinator and its agents."""

    def __init__(self, redis: Redis, name: str) -> None:
        self._redis = redis
        self.name = name

    def _key(self, part: str) -> str:
        return keys.agents(self.name, part)

    def open(self, plan: dict[str, Any]) -> None:
        """Publish the plan that all agents follow."""
        self._redis.set(self._key("plan"), json.dumps(plan), ex=EXPIRE_S)

    def plan(self) -> dict[str, Any]:
        """Read the plan. UsageError when there is no such rendezvous."""
        text: Any = self._redis.get(self._key("plan"))
        if text is None:
            raise UsageError(
                f"there is no rendezvous of agents {self.name!r}",
                hint="agents are started by saturate <agents> N",
            )
        return dict(json.loads(text))

    def join(self) -> int:
        """Register a new agent; return its number, from 0."""
        pipe = self._redis.pipeline()
        pipe.incr(self._key("joined"))
        pipe.expire(self._key("joined"), EXPIRE_S)
        return int(pipe.execute()[0]) - 1

    def joined(self) -> int:
        """Return how many agents have joined."""
        self._keep_alive()
        return int(self._redis.get(self._key("joined")) or 0)

    def _keep_alive(self) -> None:
        """Renew the plan's time to live, for the coordinator."""
        self._redis.expire(self._key("plan"), EXPIRE_S)

    def order(self, orders: list[dict[str, Any]]) -> None:
        """Give every agent its order, and withdraw an earlier request to stop."""
        self._keep_alive()
        pipe = self._redis.pipeline()
        pipe.delete(self._key("stop"))
        for index, order in enumerate(orders):
            self._push(pipe, f"orders:{index}", order)
        pipe.execute()

    def next_order(self, index: int) -> dict[str, Any] | None:
        """Return the next order of this agent; None when none came within a second."""
        return self._pop(f"orders:{index}")

    def alive(self) -> bool:
        """Return whether the rendezvous goes on."""
        return bool(self._redis.exists(self._key("plan")))

    def stop(self) -> None:
        """Tell all agents to end their orders."""
        self._redis.set(self._key("stop"), "1", ex=EXPIRE_S)

    def stopped(self) -> bool:
        """Return whether agents shall end their orders."""
        return bool(self._redis.exists(self._key("stop")))

    def bring(self, number: int, measured: dict[str, Any]) -> None:
        """Hand in what an agent measured for order `number`."""
        pipe = self._redis.pipeline()
        self._push(pipe, f"done:{number}", measured)
        pipe.execute()

    def brought(self, number: int) -> dict[str, Any] | None:
        """Return what the next agent measured; None when none came within a second."""
        self._keep_alive()
        return self._pop(f"done:{number}")

    def _push(self, pipe: Any, part: str, document: dict[str, Any]) -> None:
        pipe.rpush(self._key(part), zlib.compress(json.dumps(document).encode(), 1))
        pipe.expire(self._key(part), EXPIRE_S)

    def _pop(self, part: str) -> dict[str, Any] | None:
        """Wait a second for a document, and unpack it.

        Its length is limited, since other writers to this Redis may be hostile.
        """
        row: Any = self._redis.blpop([self._key(part)], timeout=POLL_S)
        if row is None:
            return None
        return dict(json.loads(decompress(row[1], MOST_BYTES, "what an agent brought")))

    def close(self) -> None:
        """Delete all keys, which ends the agents; without Redis the keys expire."""
        with suppress(*REDIS_ERRORS):
            names = list(self._redis.scan_iter(match=f"{keys.agents(self.name, '')}*", count=1000))
            if names:
                self._redis.delete(*names)

    def offset_s(self) -> float:
        """Return Redis server time less this process's clock, by the quickest of some readings."""
        readings = []
        for _ in range(CLOCK_READINGS):
            before = time.monotonic()
            seconds, micros = self._redis.time()
            after = time.monotonic()
            readings.append((after - before, seconds + micros / 1e6 - (before + after) / 2))
        return min(readings)[1]
