"""Take back requests of workers that died, and drop requests of clients that died.

The workers of a queue take turns to reap it; a watcher reaps all queues. Without a watcher the
running requests of a queue whose last worker died would stay leased until another worker comes, and
an autoscaler that counts waiting requests would not see them. A watcher also drops requests of dead
clients: workers drop those that they take, but where no worker runs an autoscaler would start some
for nobody.
"""

import logging
from typing import NamedTuple

from redis.exceptions import ResponseError

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.queues import Queues
from scaletest.broker.redis_errors import is_transient
from scaletest.broker.scripts import script

logger = logging.getLogger("scaletest.broker")

# Entries that one script checks, and scripts a tick that check queues, for all queues together. A
# tick of the exporter comes every 2.5 s, so it takes a few percent of Redis where very many wait,
# and minutes for a million.
PIECE = 200
MOST_PIECES = 100
# Leases, workers and clients that one call takes back: each call blocks Redis for milliseconds.
REAP_BATCH = 50


class Reaped(NamedTuple):
    """Counts of requests taken back."""

    requeued: int
    failed: int
    next_s: float | None  # until the next lease ends unless it is extended; None for none


def reap(redis: Redis, queue: str, max_attempts: int, interval_us: int) -> Reaped:
    """Take back requests of one queue's dead workers: put them back, or fail them as lost after
    `max_attempts` workers.
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
    more = True
    while more:
        back, lost, more, next_us = script("reap")(
            redis, names, [queue, max_attempts, interval_us, REAP_BATCH]
        )
        requeued, failed = requeued + back, failed + lost
    if requeued or failed:
        logger.warning(
            "queue %s: %d lost requests put back, %d failed as lost", queue, requeued, failed
        )
    return Reaped(requeued, failed, None if next_us is None else next_us / 1e6)


class Watcher:
    """Reaps every declared queue, and drops requests of dead clients from it, for a process that is
    not a worker. Call `tick` twice an interval.

    It also keeps the clock of deadlines going, which stands still without heartbeats: on a queue
    without workers and clients nobody else would.
    """

    def __init__(self, redis: Redis, interval_s: float, max_attempts: int) -> None:
        self._redis = redis
        self._interval_us = int(interval_s * 1e6)
        self._max_attempts = max_attempts
        # where the next tick continues in a queue that is too long for one tick
        self._places: dict[str, int] = {}

    def tick(self) -> tuple[int, int]:
        """Return how many requests were put back, and how many failed as lost. An error of one
        queue is raised at the end.
        """
        script("watch")(self._redis, [keys.DEVICES], [self._interval_us])
        requeued = failed = 0
        first_error: ResponseError | None = None
        names = Queues(self._redis).names()
        pieces = max(1, MOST_PIECES // max(1, len(names)))
        for name in names:
            try:
                back, lost, _ = reap(self._redis, name, self._max_attempts, self._interval_us)
                # check so many pieces of it, from where the last tick ended, at most all once
                place, dropped = self._places.get(name, 0), 0
                for _ in range(pieces):
                    place, count = script("desert")(
                        self._redis,
                        [keys.rq_queue(name), keys.counters(name)],
                        [place, PIECE, self._interval_us],
                    )
                    dropped += count
                    if place < 0:
                        break
                self._places[name] = max(0, place)
                if dropped:
                    logger.warning(
                        "queue %s: %d requests dropped, since their clients are gone", name, dropped
                    )
            except ResponseError as error:
                if is_transient(error):
                    raise
                # the keys of this queue contain something else: the others are reaped nevertheless
                first_error = first_error or error
                continue
            requeued, failed = requeued + back, failed + lost
        self._places = {name: place for name, place in self._places.items() if name in names}
        if first_error is not None:
            raise first_error
        return requeued, failed
