"""What becomes of a request outside the fast lane: settled after RQ's own code ran it, put back, or kept as poison."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.retry import Retrying
from scaletest.broker.scripts import script
from scaletest.model.ended import counted
from scaletest.model.histogram import bucket


@dataclass(frozen=True, slots=True)
class Lot:
    """A request outside the fast lane. attempt is None under a stock worker, which takes no lease."""

    id: str
    queue: str
    worker: str
    attempt: int | None
    client: str = ""
    enqueued_us: int = 0
    started_us: int = 0


class Ledger:
    """Accounts for such requests. Every call waits while Redis is away and is safe to repeat."""

    def __init__(self, redis: Redis, retrying: Retrying) -> None:
        self._redis = redis
        self._retrying = retrying

    def look_up(self, job_id: str, queue: str) -> Lot:
        """What a stock worker runs now; started_us is the Redis time of this call."""

        def read() -> Lot:
            pipe = self._redis.pipeline(transaction=False)
            pipe.hmget(keys.rq_job(job_id), "reply_to", "enqueued_us", "worker_name")
            pipe.time()
            (client, enqueued, worker), (seconds, micros) = pipe.execute()
            now = seconds * 1_000_000 + micros
            return Lot(job_id, queue, (worker or b"").decode(), None, (client or b"").decode(), int(enqueued or 0), now)

        return self._retrying.run(read)

    def settle(self, lot: Lot, outcome: str, wait_s: float, run_s: float, reply: str = "") -> float:
        """Count the outcome and deliver the reply; Redis time in seconds, 0 when it did not count any more."""
        names = [
            keys.leases(lot.queue),
            keys.rq_queue(lot.queue),
            keys.counters(lot.queue),
            keys.ended(lot.queue),
            keys.slots(lot.queue),
        ]
        never_counted = lot.attempt is None and not lot.enqueued_us
        values = [
            lot.id,
            "" if lot.attempt is None else lot.attempt,
            lot.worker,
            lot.queue,
            lot.client,
            reply,
            int(never_counted),
            lot.started_us,
            *counted(outcome, bucket(wait_s), bucket(run_s)),
        ]
        return int(self._retrying.run(lambda: script("settle")(self._redis, names, values))) / 1e6

    def release(self, lot: Lot) -> bool:
        """Put the request back at the front of its queue; whether it was still ours."""
        names = [keys.leases(lot.queue), keys.rq_queue(lot.queue), keys.rq_started(lot.queue)]
        values = [lot.id, lot.attempt, lot.worker]
        return bool(self._retrying.run(lambda: script("release")(self._redis, names, values)))

    def poison(self, lot: Lot, reason: str) -> None:
        """Keep it, not executed, in RQ's failed registry."""
        names = [
            keys.leases(lot.queue),
            keys.rq_started(lot.queue),
            keys.rq_failed(lot.queue),
            keys.counters(lot.queue),
        ]
        stored = base64.b64encode(zlib.compress(reason.encode())).decode()
        values = [lot.id, lot.attempt, lot.worker, stored]
        self._retrying.run(lambda: script("poison")(self._redis, names, values))
