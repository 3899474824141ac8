"""Lanes of workers that are registered, as those of worker processes are, and requests of clients
that are gone.
"""

import json
from typing import Any

from scaletest.broker import keys
from scaletest.broker.fast_lane import FastLane, FinishedRequest
from scaletest.broker.heartbeat import Heartbeat
from scaletest.broker.retrying import Retrying
from scaletest.model import Outcome


def lane_of(
    redis: Any, name: str = "w", interval_s: float = 600.0, patience_s: float = 20.0
) -> FastLane:
    """A lane of queue `q` whose worker has beaten once."""
    Heartbeat(redis, name, "q", interval_s=interval_s)._beat()
    return FastLane(redis, name, "q", interval_s, Retrying("test", patience_s=patience_s))


def done(taken: Any, outcome: Outcome = Outcome.SUCCEEDED) -> FinishedRequest:
    """What a lane says about a request that ended so."""
    reply = json.dumps(
        {"id": taken.id, "outcome": outcome.value, "exit_code": 0, "wait_s": 0, "run_s": 0}
    )
    return FinishedRequest(taken, outcome.value, 1e-6, 1e-6, reply, False)


def abandon(redis: Any, *ids: str, client: str = "dead") -> None:
    """Submit requests of a client that was never heard of, an hour ago."""
    hour_ago_us = int((redis.time()[0] - 3600) * 1e6)
    pipe = redis.pipeline(transaction=False)
    for name in ids:
        fields = {
            "data": "{}",
            "reply_to": client,
            "enqueued_us": hour_ago_us,
            "client_ttl_us": 60_000_000,
        }
        pipe.hset(keys.rq_job(name), mapping=fields)
        pipe.rpush(keys.rq_queue("q"), name)
        pipe.hincrby(keys.counters("q"), "submitted", 1)
    pipe.execute()


def waiting(redis: Any) -> list[str]:
    """Ids of what waits in queue `q`, from the front."""
    return [name.decode() for name in redis.lrange(keys.rq_queue("q"), 0, -1)]
