"""Submit requests of one client to queues.

Submitting is one call for many requests, and safe to repeat: the call carries a number, and Redis
keeps the last number with its answer.
"""

import itertools
import logging
import time
from collections.abc import Sequence

import redis.exceptions

from scaletest.broker import jobs, keys
from scaletest.broker.connection import Redis
from scaletest.broker.fast_lane import call_nonce
from scaletest.broker.queues import Queues
from scaletest.broker.retrying import Retrying
from scaletest.broker.scripts import script
from scaletest.model.errors import InvalidValue, UndeclaredQueue
from scaletest.model.record import Request

logger = logging.getLogger("scaletest.broker")

# One script call blocks Redis for every other client, so large submissions are cut into pieces: so
# many requests, or as many as have so long arguments in all.
SUBMIT_BATCH = 250
SUBMIT_CHARACTERS = 250_000
# How long a queue may be undeclared that took requests of ours. A Redis that lost its data declares
# none; an exporter, or whoever manages the queues, declares them again.
DECLARED_AGAIN_S = 60.0


class Submitter:
    """Submits for one client, whose time to live each call extends."""

    def __init__(self, redis: Redis, retrying: Retrying, client: str, ttl_s: float) -> None:
        self._redis = redis
        self._retrying = retrying
        self._client = client
        self._ttl_us = int(ttl_s * 1e6)
        # each call's number is larger than those before it
        self._nonce = call_nonce()
        self._calls = itertools.count(1)
        # queues that took requests of ours: since when they are not declared, None while they are
        self._undeclared_since: dict[str, float | None] = {}

    def submit(self, requests: Sequence[Request], reply: bool, result_ttl_s: int) -> int:
        """Enqueue requests of one queue in order; return how many were accepted, fewer only when
        the queue is full or may be declared again. Raises UndeclaredQueue.
        """
        accepted = size = 0
        batch: list[Request] = []
        for number, request in enumerate(requests, 1):
            batch.append(request)
            size += sum(map(len, request.arguments))
            is_full = len(batch) == SUBMIT_BATCH or size >= SUBMIT_CHARACTERS
            if is_full or number == len(requests):
                taken = self._submit_batch(batch, reply, result_ttl_s)
                accepted += taken
                if taken < len(batch):
                    break
                batch, size = [], 0
        return accepted

    def _submit_batch(self, batch: Sequence[Request], reply: bool, result_ttl_s: int) -> int:
        queue = batch[0].queue
        if any(request.queue != queue for request in batch):
            raise InvalidValue(
                "one submission holds requests of several queues",
                hint="submit each queue by itself",
            )
        names = [
            keys.QUEUES,
            keys.RQ_QUEUES,
            keys.rq_queue(queue),
            keys.counters(queue),
            keys.client(self._client),
            keys.slots(queue),
        ]
        arguments: list[bytes | str | int] = [
            queue,
            self._client,
            f"{self._nonce}:{next(self._calls):012}",
            self._ttl_us,
            int(reply),
            result_ttl_s,
        ]
        for request in batch:
            arguments += [request.id, jobs.encode(request), jobs.rq_timeout(request)]
        try:
            answer = self._retrying.run(lambda: script("submit")(self._redis, names, arguments))
        except redis.exceptions.ResponseError as error:
            if "STALECALL" not in str(error):
                raise
            # our own calls grow, so a larger one is not ours
            raise InvalidValue(
                f"another client named {self._client!r} submits to this Redis",
                hint="give every client a name of its own, or none",
            ) from error
        if answer is None:
            if self._may_come_back(queue):
                return 0
            raise UndeclaredQueue(queue, Queues(self._redis).names())
        self._undeclared_since[queue] = None
        if answer[0] < 0:
            Queues(self._redis).state(queue)  # says what is wrong with its entry
        return max(0, int(answer[0]))

    def _may_come_back(self, queue: str) -> bool:
        """Return whether a queue that is not declared may be declared again, as it was before."""
        if queue not in self._undeclared_since:
            return False
        now = time.monotonic()
        since = self._undeclared_since[queue]
        if since is None:
            since = self._undeclared_since[queue] = now
            logger.warning(
                "client %s: queue %s is not declared any more; waiting %g s for it to be declared"
                " again",
                self._client,
                queue,
                DECLARED_AGAIN_S,
            )
        return now - since < DECLARED_AGAIN_S
