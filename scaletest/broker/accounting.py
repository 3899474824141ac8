"""Account for requests outside the fast lane: settle them, put them back, keep them as poison."""

import base64
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.fast_lane import TakenRequest
from scaletest.broker.retrying import Retrying
from scaletest.broker.scripts import Script, script
from scaletest.model.queue_counts import count_arguments

# The attempt of a request under a stock worker, which counts none and has no lease.
NO_ATTEMPT = 0


class Accounting:
    """Settles requests of one worker, or puts them back; calls wait for Redis, and can be repeated.

    The worker may be RQ's own, or ours.
    """

    def __init__(self, redis: Redis, retrying: Retrying, queue: str, worker: str) -> None:
        self._redis = redis
        self._retrying = retrying
        self._queue = queue
        self.worker = worker

    def look_up(self, job_id: str) -> TakenRequest:
        """Return the request that a stock worker runs now, as started at the time of this call."""

        def read() -> TakenRequest:
            pipe = self._redis.pipeline(transaction=False)
            pipe.hmget(keys.rq_job(job_id), "reply_to", "enqueued_us")
            pipe.time()
            (client, enqueued_us), (seconds, micros) = pipe.execute()
            started_us = seconds * 1_000_000 + micros
            return TakenRequest(
                job_id, NO_ATTEMPT, started_us, int(enqueued_us or 0), (client or b"").decode()
            )

        return self._retrying.run(read)

    def settle(
        self, taken: TakenRequest, outcome: str, wait_s: float, run_s: float, reply: str = ""
    ) -> float:
        """Count the outcome and deliver the reply; return the Redis time in seconds.

        It is 0 when another worker's outcome was counted already.
        """
        was_never_counted = taken.attempt == NO_ATTEMPT and not taken.enqueued_us
        ended_us = self._call(
            script("settle"),
            taken,
            (keys.leases, keys.rq_queue, keys.counters, keys.ended, keys.slots, keys.failures),
            taken.client,
            reply,
            int(was_never_counted),  # as submitted: then it is now
            taken.started_us,
            *count_arguments(outcome, wait_s, run_s),
        )
        return int(ended_us) / 1e6

    def expect_retry(self, taken: TakenRequest) -> None:
        """Note that RQ retries this request, so that it counts as submitted when it is taken."""
        fields = {"booked": "retry", "attempts": taken.attempt, "tried": taken.attempt}
        self._retrying.run(
            lambda: self._redis.hset(keys.rq_job(taken.id), mapping=fields)  # type: ignore[arg-type]
        )

    def release(self, taken: TakenRequest) -> None:
        """Put the request back at the front of its queue, if it still has its lease."""
        self._call(script("release"), taken, (keys.leases, keys.rq_queue, keys.rq_started))

    def poison(self, taken: TakenRequest, reason: str) -> None:
        """Keep the request, not executed, in RQ's failed registry."""
        self._call(
            script("poison"),
            taken,
            (keys.leases, keys.rq_started, keys.rq_failed, keys.counters, keys.failures),
            reason,
            base64.b64encode(zlib.compress(reason.encode())).decode(),  # as RQ stores a result
        )

    def _call(
        self,
        call: Script,
        taken: TakenRequest,
        queue_keys: Sequence[Callable[[str], str]],
        *values: str | int,
    ) -> Any:
        """Call a script about a request, with these keys of the queue."""
        return self._retrying.run(
            lambda: call(
                self._redis,
                [key(self._queue) for key in queue_keys],
                [taken.id, taken.attempt or "", self.worker, *values],
            )
        )
