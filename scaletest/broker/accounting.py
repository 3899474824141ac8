"""Account for requests outside the fast lane: settle, put back, keep as poison, or cancel.

Requests that wait are cancelled in calls of which each blocks Redis for a few milliseconds. A list
has no index by value: removing one of 100,000 entries compares them all. So the ids become a set,
and the list is swept from its end to its front, a stretch at a time. Between two calls workers may
take from the front, clients add at the end, and other clients cancel: the list is consistent at
every moment. A request that a worker takes before the sweep reaches it is finished, like all that
run.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.broker import keys
from scaletest.broker.connection import Redis, Retrying
from scaletest.broker.scripts import Script, script
from scaletest.model.histogram import bucket
from scaletest.model.queue_counts import counted


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
        """Count outcome, deliver reply; Redis time in s, 0 when another worker's counted."""
        names = (keys.leases, keys.rq_queue, keys.counters, keys.ended, keys.slots, keys.failures)
        never_counted = taken_job.attempt is None and not taken_job.enqueued_us
        ended_us = self._call(
            script("settle"),
            taken_job,
            names,
            taken_job.client,
            reply,
            int(never_counted),
            taken_job.started_us,
            *counted(outcome, bucket(wait_s), bucket(run_s)),
        )
        return int(ended_us) / 1e6

    def release(self, taken_job: TakenJob) -> bool:
        """Put the request back at the front of its queue; whether its lease was still held."""
        names = (keys.leases, keys.rq_queue, keys.rq_started)
        return bool(self._call(script("release"), taken_job, names))

    def poison(self, taken_job: TakenJob, reason: str) -> None:
        """Keep the request, not executed, in RQ's failed registry."""
        names = (keys.leases, keys.rq_started, keys.rq_failed, keys.counters, keys.failures)
        stored = base64.b64encode(zlib.compress(reason.encode())).decode()
        self._call(script("poison"), taken_job, names, reason, stored)

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


# Requests that one call adds to the set, and entries of the list that one call checks.
CANCEL_BATCH = 500
# A killed client leaves its set behind for so long. Requests that are still queued then wait like
# all requests of a client that is gone.
SET_TTL_S = 60


class Cancellation:
    """Cancels requests of one client in one queue; can be continued after a broken connection."""

    def __init__(
        self, redis: Redis, retrying: Retrying, client: str, queue: str, ids: Sequence[str]
    ) -> None:
        self._redis = redis
        self._retrying = retrying
        self._ids = list(dict.fromkeys(ids))
        self._set = keys.cancelled(client)
        self._keys = [keys.rq_queue(queue), keys.counters(queue), self._set]
        self._left = 0
        self._taken_out = 0

    def run(self) -> int:
        """Cancel requests that still wait; how many. Sweeps again after a partial sweep."""
        self._mark()
        while True:
            before = self._left
            self._sweep()
            if self._left in (0, before):
                break
        self._retrying.run(lambda: self._redis.unlink(self._set))
        return self._taken_out

    def _mark(self) -> None:
        """Write the set. Its last member marks it complete, also after a crash lost a second."""
        while True:
            for start in range(0, len(self._ids), CANCEL_BATCH):
                self._add(self._ids[start : start + CANCEL_BATCH])
            self._left = self._add([""]) - 1
            if self._left >= len(self._ids):
                return

    def _add(self, members: Sequence[str]) -> int:
        """Add to the set; how many members it has."""

        def add() -> int:
            pipe = self._redis.pipeline()
            pipe.sadd(self._set, *members)
            pipe.expire(self._set, SET_TTL_S)
            pipe.scard(self._set)
            return int(pipe.execute()[-1])

        return self._retrying.run(add)

    def _sweep(self) -> None:
        """Sweep the list once, from its end to its front, or until nothing is left to take out."""
        looked_at, last = 0, b""
        at_front = False
        while self._left and not at_front:
            answer = self._retrying.run(
                lambda: script("cancel")(self._redis, self._keys, [looked_at, last, CANCEL_BATCH])  # noqa: B023
            )
            if answer is None:
                # Redis was away for longer than the set lives, or came back without it
                self._mark()
                looked_at, last = 0, b""
                continue
            looked_at, last, left, front = answer
            self._taken_out += self._left - left
            self._left = left
            at_front = bool(front)
