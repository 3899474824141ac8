"""What pages tell of RQ beside a snapshot: its failed jobs, and its suspension.

Every call is a read whose cost is bounded, whatever the queues hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.broker import keys
from scaletest.broker.connection import Redis

# Queues asked for in one pipeline.
QUEUES_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class RqState:
    """What RQ itself keeps beside the queues."""

    suspended: bool  # RQ's own switch stops all workers
    failed: dict[str, int]  # jobs in each queue's registry of failed jobs, where it has any


def rq_state(redis: Redis, queues: Sequence[str]) -> RqState:
    """Return RQ's state of these queues. Raises what redis-py raises when Redis is away."""
    suspended = bool(redis.exists(keys.RQ_SUSPENDED))
    failed: dict[str, int] = {}
    for start in range(0, len(queues), QUEUES_AT_ONCE):
        names = queues[start : start + QUEUES_AT_ONCE]
        pipe = redis.pipeline(transaction=False)
        for name in names:
            pipe.zcard(keys.rq_failed(name))
        # anybody may write to Redis: a key of another type is an error
        for name, count in zip(names, pipe.execute(raise_on_error=False), strict=True):
            if isinstance(count, int) and count:
                failed[name] = count
    return RqState(suspended, failed)
