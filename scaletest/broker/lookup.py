"""What pages tell of RQ beside a snapshot: its failed jobs, its suspension, and single requests.

Every call is a read whose cost is bounded, whatever the queues hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.queues import text_of
from scaletest.model import checks

# Queues asked for in one pipeline.
QUEUES_AT_ONCE = 200
# So many waiting requests are searched for one; finding it near the front is what matters.
MOST_SEARCHED = 10_000
LEASES_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class RqState:
    """suspended: RQ's own switch stops all workers. failed: jobs in each queue's registry of failed
    jobs, without queues that have none.
    """

    suspended: bool
    failed: dict[str, int]


def rq_state(redis: Redis, queues: Sequence[str]) -> RqState:
    """RQ's state of these queues. Raises what redis-py raises when Redis is away."""
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


@dataclass(frozen=True, slots=True)
class RequestState:
    """A request that Redis knows of. Texts are "" and times None where unknown.

    status: RQ's word, as queued or started. queue: where it was enqueued. enqueued_s: Redis time.
    place: how many requests wait before it, None when it is not among the first MOST_SEARCHED.
    worker, attempt: who holds its lease.
    """

    id: str
    queue: str
    status: str
    enqueued_s: float | None
    place: int | None
    worker: str
    attempt: str


def request_state(redis: Redis, queue: str, request: str) -> RequestState | None:
    """A waiting, running or kept request of a queue; None when Redis knows nothing of it."""
    checks.queue_name(queue)
    checks.request_id(request)
    pipe: Any = redis.pipeline(transaction=False)
    pipe.hmget(keys.rq_job(request), "origin", "status", "enqueued_us")
    pipe.lpos(keys.rq_queue(queue), request, maxlen=MOST_SEARCHED)
    fields, place = pipe.execute(raise_on_error=False)
    origin, status, enqueued = map(text_of, fields if isinstance(fields, list) else [None] * 3)
    attempt, worker = _lease(redis, queue, request)
    if not (origin or status or worker or isinstance(place, int)):
        return None
    return RequestState(
        request,
        checks.cut(origin, 200),
        checks.cut(status, 50),
        int(enqueued) / 1e6 if enqueued.isdecimal() and len(enqueued) < 20 else None,
        place if isinstance(place, int) else None,
        worker,
        attempt,
    )


def _lease(redis: Redis, queue: str, request: str) -> tuple[str, str]:
    """Attempt and worker of a running request; "" without a lease."""
    leases = redis.zscan_iter(keys.leases(queue), match=f"{request}:*", count=LEASES_AT_ONCE)
    for member, _ in leases:
        attempt, _, worker = text_of(member).removeprefix(f"{request}:").partition(":")
        return attempt, worker
    return "", ""
