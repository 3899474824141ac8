"""Takes back what dead workers held. Every worker reaps its own queue; a watcher reaps all of them.

Without a watcher the requests of a queue whose last worker died would wait for the next one to come, and an autoscaler
that looks at what waits would not see them.
"""

from __future__ import annotations

import logging

from redis.exceptions import ResponseError

from scaletest.broker import keys
from scaletest.broker.connection import Redis, transient
from scaletest.broker.queues import Queues
from scaletest.broker.scripts import script

logger = logging.getLogger("scaletest.broker")


def reap(redis: Redis, queue: str, max_attempts: int, interval_us: int) -> tuple[int, int]:
    """Take back what dead workers of one queue held: how many requests were put back, and how many failed as lost."""
    names = [
        keys.leases(queue),
        keys.workers(queue),
        keys.rq_queue(queue),
        keys.rq_started(queue),
        keys.counters(queue),
        keys.rq_queue_workers(queue),
    ]
    requeued, failed = script("reap")(redis, names, [queue, max_attempts, interval_us])
    if requeued or failed:
        logger.warning("queue %s: %d lost requests put back, %d failed as lost", queue, requeued, failed)
    return int(requeued), int(failed)


class Watcher:
    """Reaps every declared queue, for a process that is no worker. Call `tick` twice an interval.

    It also says that Redis is alive: deadlines do not run while nobody does, and on a queue without workers and
    clients nobody else would.
    """

    def __init__(self, redis: Redis, interval_s: float, max_attempts: int) -> None:
        self._redis = redis
        self._interval_us = int(interval_s * 1e6)
        self._max_attempts = max_attempts

    def tick(self) -> tuple[int, int]:
        """How many requests were put back, and how many failed as lost. An error of one queue is raised at the end."""
        script("watch")(self._redis, [keys.PULSE], [self._interval_us])
        requeued = failed = 0
        trouble: ResponseError | None = None
        for name in Queues(self._redis).names():
            try:
                back, lost = reap(self._redis, name, self._max_attempts, self._interval_us)
            except ResponseError as error:
                if transient(error):
                    raise
                # something else lies in the keys of this queue: the others are reaped all the same
                trouble = trouble or error
                continue
            requeued, failed = requeued + back, failed + lost
        if trouble is not None:
            raise trouble
        return requeued, failed
