"""Account for requests outside the fast lane: settle them, put them back, keep them as poison."""

import base64
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.retrying import Retrying
from scaletest.broker.scripts import Script, script
from scaletest.model.histogram import bucket_of
from scaletest.model.queue_counts import count_arguments


@dataclass(frozen=True, slots=True)
class TakenJob:
    """A request outside the fast lane."""

    id: str
    queue: str
    worker: str
    attempt: int | None  # None under a stock worker, which has no lease
    client: str = ""
    enqueued_us: int = 0
    started_us: int = 0


class Accounting:
    """Settles, releases or poisons such requests; calls wait for Redis and can be repeated."""

    def __init__(self, redis: Redis, retrying: Retrying) -> None:
        self._redis = redis
        self._retrying = retrying

    def look_up(self, job_id: str, queue: str) -> TakenJob:
        """Return the request that a stock worker runs now, as started at the time of this call."""

        def read() -> TakenJob:
            pipe = self._redis.pipeline(transaction=False)
            pipe.hmget(keys.rq_job(job_id), "reply_to", "enqueued_us", "worker_name")
            pipe.time()
            (client, enqueued, worker), (seconds, micros) = pipe.execute()
            return TakenJob(
                job_id,
                queue,
                (worker or b"").decode(),
                None,
                (client or b"").decode(),
                int(enqueued or 0),
                seconds * 1_000_000 + micros,
            )

        return self._retrying.run(read)

    def settle(
        self, taken_job: TakenJob, outcome: str, wait_s: float, run_s: float, reply: str = ""
    ) -> float:
        """Count the outcome and deliver the reply; return the Redis time in seconds.

        It is 0 when another worker's outcome was counted already.
        """
        ended_us = self._call(
            script("settle"),
            taken_job,
            (keys.leases, keys.rq_queue, keys.counters, keys.ended, keys.slots, keys.failures),
            taken_job.client,
            reply,
            # 1 when it was never counted as submitted
            int(taken_job.attempt is None and not taken_job.enqueued_us),
            taken_job.started_us,
            *count_arguments(outcome, bucket_of(wait_s), bucket_of(run_s)),
        )
        return int(ended_us) / 1e6

    def release(self, taken_job: TakenJob) -> bool:
        """Put the request back at the front of its queue; return whether it had its lease."""
        return bool(
            self._call(script("release"), taken_job, (keys.leases, keys.rq_queue, keys.rq_started))
        )

    def poison(self, taken_job: TakenJob, reason: str) -> None:
        """Keep the request, not executed, in RQ's failed registry."""
        self._call(
            script("poison"),
            taken_job,
            (keys.leases, keys.rq_started, keys.rq_failed, keys.counters, keys.failures),
            reason,
            base64.b64encode(zlib.compress(reason.encode())).decode(),  # as RQ stores a result
        )

    def _call(
        self,
        call: Script,
        taken_job: TakenJob,
        names: Sequence[Callable[[str], str]],
        *values: str | int,
    ) -> Any:
        """Call a script about a request. names: of its queue's keys."""
        attempt = "" if taken_job.attempt is None else taken_job.attempt
        return self._retrying.run(
            lambda: call(
                self._redis,
                [key(taken_job.queue) for key in names],
                [taken_job.id, attempt, taken_job.worker, *values],
            )
        )
