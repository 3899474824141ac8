"""The rendezvous of load agents, who share one plan and begin each order at one instant.

Times are Redis server time, so that agents on several machines begin together: each knows the
offset of its own clock, within half a round trip. The coordinator deletes the plan when it closes
the rendezvous, which ends the agents. All keys expire, also when it was killed. Headers with
credentials are part of the plan: all who may read this Redis can read them.
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
    """One rendezvous of a coordinator and its agents.

    Methods raise REDIS_ERRORS when Redis is away, but for `close`.
    """

    def __init__(self, redis: Redis, name: str) -> None:
        self._redis = redis
        self.name = name

    # -- for the coordinator
    # ----------------------------------------------------------------------------------------------

    def publish_plan(self, plan: dict[str, Any]) -> None:
        """Begin the rendezvous: publish the plan, of JSON values, that all agents follow."""
        self._redis.set(self._key("plan"), json.dumps(plan), ex=EXPIRE_S)

    def count_agents(self) -> int:
        """Return how many agents have registered, and renew the plan."""
        self._renew_plan()
        return int(self._redis.get(self._key("joined")) or 0)

    def give_orders(self, orders: list[dict[str, Any]]) -> None:
        """Give every agent its order, by its number, and withdraw an earlier request to stop."""
        self._renew_plan()
        pipe = self._redis.pipeline()
        pipe.delete(self._key("stop"))
        for agent, order in enumerate(orders):
            self._push(pipe, f"orders:{agent}", order)
        pipe.execute()

    def request_stop(self) -> None:
        """Ask all agents to end the order that they follow."""
        self._redis.set(self._key("stop"), "1", ex=EXPIRE_S)

    def wait_for_result(self, order: int) -> dict[str, Any] | None:
        """Take the next result that an agent submitted for an order; None when none in POLL_S.

        Renews the plan, too. InvalidValue when the result is damaged, or too long.
        """
        self._renew_plan()
        return self._pop(f"done:{order}")

    def close(self) -> None:
        """Delete the plan, which ends the agents. All other keys expire."""
        with suppress(*REDIS_ERRORS):
            self._redis.delete(self._key("plan"))

    # -- for agents
    # ----------------------------------------------------------------------------------------------

    def read_plan(self) -> dict[str, Any]:
        """Return the published plan. UsageError when there is no such rendezvous."""
        text: Any = self._redis.get(self._key("plan"))
        if text is None:
            raise UsageError(
                f"there is no rendezvous of agents {self.name!r}",
                hint="agents are started by saturate <agents> N",
            )
        return dict(json.loads(text))

    def register_agent(self) -> int:
        """Register a new agent; return its number, from 0."""
        pipe = self._redis.pipeline()
        pipe.incr(self._key("joined"))
        pipe.expire(self._key("joined"), EXPIRE_S)
        return int(pipe.execute()[0]) - 1

    def wait_for_order(self, agent: int) -> dict[str, Any] | None:
        """Take the next order of the agent of that number; None when none came in POLL_S."""
        return self._pop(f"orders:{agent}")

    def is_open(self) -> bool:
        """Return whether there is a plan: neither closed nor expired."""
        return bool(self._redis.exists(self._key("plan")))

    def is_stop_requested(self) -> bool:
        """Return whether agents shall end the order that they follow."""
        return bool(self._redis.exists(self._key("stop")))

    def submit_result(self, order: int, result: dict[str, Any]) -> None:
        """Submit the result of an agent for the order with this number."""
        pipe = self._redis.pipeline()
        self._push(pipe, f"done:{order}", result)
        pipe.execute()

    # -- for both
    # ----------------------------------------------------------------------------------------------

    def offset_s(self) -> float:
        """Return Redis server time less this process's monotonic clock, in s.

        The quickest of some readings gives it, within half of that reading's round trip.
        """
        readings = []
        for _ in range(CLOCK_READINGS):
            before = time.monotonic()
            seconds, micros = self._redis.time()
            after = time.monotonic()
            readings.append((after - before, seconds + micros / 1e6 - (before + after) / 2))
        return min(readings)[1]

    # -- keys and documents
    # ----------------------------------------------------------------------------------------------

    def _key(self, part: str) -> str:
        return keys.agents(self.name, part)

    def _renew_plan(self) -> None:
        """Renew the plan's time to live: the rendezvous lives as long as there is a plan."""
        self._redis.expire(self._key("plan"), EXPIRE_S)

    def _push(self, pipe: Any, part: str, document: dict[str, Any]) -> None:
        """Add a document to a list of the rendezvous, when `pipe` is executed."""
        # the quickest level: results are long, and the coordinator waits for them
        pipe.rpush(self._key(part), zlib.compress(json.dumps(document).encode(), level=1))
        pipe.expire(self._key(part), EXPIRE_S)

    def _pop(self, part: str) -> dict[str, Any] | None:
        """Wait POLL_S for a document, take it, and unpack it; None when none came.

        Its length is limited, since other writers to this Redis may be hostile. InvalidValue when
        it is too long, or damaged.
        """
        row: Any = self._redis.blpop([self._key(part)], timeout=POLL_S)
        if row is None:
            return None
        text = decompress(row[1], most_bytes=MOST_BYTES, name="what an agent brought")
        return dict(json.loads(text))
