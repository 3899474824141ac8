"""Account for requests outside the fast lane: settle, put back, or keep them as poison."""

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
class TakenJob:
    """A request outside the fast lane. attempt: None under a stock worker, which has no lease."""

    id: str
    queue: str
    worker: str
    attempt: int | None
    client: str = ""
    enqueued_us: int = 0
    started_us: int = 0


class Accounting:
    """Settles, releases or poisons such requests; calls wait for Redis and can be repeated."""

    def __init__(self, redis: Redis, retrying: Retrying) -> None:
        self._redis = redis
        self._retrying = retrying

    def look_up(self, job_id: str, queue: str) -> TakenJob:
        """The request that a stock worker runs now; started_us is the Redis time of this call."""

        def read() -> TakenJob:
            pipe = self._redis.pipeline(transaction=False)
            pipe.hmget(keys.rq_job(job_id), "reply_to", "enqueued_us", "worker_name")
            pipe.time()
            (client, enqueued, worker), (seconds, micros) = pipe.execute()
            now = seconds * 1_000_000 + micros
            return TakenJob(
                job_id,
                queue,
                (worker or b"").decode(),
                None,
                (client or b"").decode(),
                int(enqueued or 0),
                now,
            )

        return self._retrying.run(read)

    def settle(
        self, taken_job: TakenJob, outcome: str, wait_s: float, run_s: float, reply: str = ""
    ) -> float:
        """Count outcome, deliver reply; Redis time in s, 0 when another worker's counted."""
        names = [
            keys.leases(taken_job.queue),
            keys.rq_queue(taken_job.queue),
            keys.counters(taken_job.queue),
            keys.ended(taken_job.queue),
            keys.slots(taken_job.queue),
        ]
        never_counted = taken_job.attempt is None and not taken_job.enqueued_us
        values = [
            taken_job.id,
            "" if taken_job.attempt is None else taken_job.attempt,
            taken_job.worker,
            taken_job.client,
            reply,
            int(never_counted),
            taken_job.started_us,
            *counted(outcome, bucket(wait_s), bucket(run_s)),
        ]
        return int(self._retrying.run(lambda: script("settle")(self._redis, names, values))) / 1e6

    def release(self, taken_job: TakenJob) -> bool:
        """Put the request back at the front of its queue; whether its lease was still held."""
        names = [
            keys.leases(taken_job.queue),
            keys.rq_queue(taken_job.queue),
            keys.rq_started(taken_job.queue),
        ]
        values = [taken_job.id, taken_job.attempt, taken_job.worker]
        return bool(self._retrying.run(lambda: script("release")(self._redis, names, values)))

    def poison(self, taken_job: TakenJob, reason: str) -> None:
        """Keep the request, not executed, in RQ's failed registry."""
        names = [
            keys.leases(taken_job.queue),
            keys.rq_started(taken_job.queue),
            keys.rq_failed(taken_job.queue),
            keys.counters(taken_job.queue),
        ]
        stored = base64.b64encode(zlib.compress(reason.encode())).decode()
        values = [taken_job.id, taken_job.attempt, taken_job.worker, stored]
        self._retrying.run(lambda: script("poison")(self._redis, names, values))
