"""Take back requests of workers that died, and drop requests of clients that died.

The workers of a queue take turns to reap it; a watcher reaps all queues. Without a watcher the
running requests of a queue whose last worker died would stay leased until another worker comes, and
an autoscaler that counts waiting requests would not see them. A watcher also drops requests of dead
clients: workers drop those that they take, but where no worker runs an autoscaler would start some
for nobody.
"""

import logging

from redis.exceptions import ResponseError

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.queues import Queues
from scaletest.broker.redis_errors import is_transient
from scaletest.broker.scripts import script

logger = logging.getLogger("scaletest.broker")

# Entries that one call checks, and calls a tick, for all queues together. A tick of the exporter
# comes every 2.5 s, so it takes a few percent of Redis where very many wait, and minutes for a
# million.
CHECK_BATCH = 200
CALLS_A_TICK = 100
# Leases, workers and clients that one call takes back: each call blocks Redis for milliseconds.
REAP_BATCH = 50


def reap(redis: Redis, queue: str, max_attempts: int, interval_us: int) -> float | None:
    """Take back requests of one queue's dead workers.

    They are put back, or fail as lost after `max_attempts` workers. Return the seconds until the
    next lease ends unless it is extended; None where there is none.
    """
    names = [
        keys.leases(queue),
        keys.workers(queue),
        keys.rq_queue(queue),
        keys.rq_started(queue),
        keys.counters(queue),
        keys.rq_queue_workers(queue),
        keys.taking(queue),
        keys.samplers(queue),
    ]
    requeued = failed = 0
    has_more = True
    while has_more:
        back, lost, has_more, next_us = script("reap")(
            redis, names, [queue, max_attempts, interval_us, REAP_BATCH]
        )
        requeued += back
        failed += lost
    if requeued or failed:
        logger.warning(
            "queue %s: %d lost requests put back, %d failed as lost", queue, requeued, failed
        )
    return None if next_us is None else next_us / 1e6


class Watcher:
    """Reaps every declared queue, and drops requests of dead clients from it.

    For a process that is not a worker, which calls `tick` twice an interval.

    It also keeps the clock of deadlines going, which stands still without heartbeats: on a queue
    without workers and clients no other process would.
    """

    def __init__(self, redis: Redis, interval_s: float, max_attempts: int) -> None:
        self._redis = redis
        self._interval_us = int(interval_s * 1e6)
        self._max_attempts = max_attempts

    def tick(self) -> None:
        """Reap all queues, and drop requests of dead clients from them.

        An error of one queue is raised when all queues are done.
        """
        script("watch")(self._redis, [keys.DEVICES], [self._interval_us])
        first_error: ResponseError | None = None
        names = Queues(self._redis).names()
        calls = max(1, CALLS_A_TICK // max(1, len(names)))
        for name in names:
            try:
                reap(self._redis, name, self._max_attempts, self._interval_us)
                # check what waits, from the front: what is far behind gets there in time
                position = 0
                dropped = 0
                for _ in range(calls):
                    position, count = script("desert")(
                        self._redis,
                        [keys.rq_queue(name), keys.counters(name)],
                        [position, CHECK_BATCH, self._interval_us],
                    )
                    dropped += count
                    if position < 0:  # the end of the queue
                        break
                if dropped:
                    logger.warning(
                        "queue %s: %d requests dropped, since their clients are gone", name, dropped
                    )
            except ResponseError as error:
                if is_transient(error):
                    raise
                # the keys of this queue contain something else: the others are reaped nevertheless
                first_error = first_error or error
        if first_error is not None:
            raise first_error
