"""Declared queues: add, list, inspect, pause, purge, remove; one small call each.

Entries of scaletest:queues may be anybody's: a foreign one must not raise.
"""

import json
import logging
import shlex

from redis.exceptions import ResponseError

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.queue_state import (
    OUTCOMES,
    QueueEntry,
    QueueState,
    living_workers,
    printable_name,
    split_entries,
    text_of,
)
from scaletest.broker.redis_errors import REFUSED, is_transient
from scaletest.broker.scripts import script
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, UndeclaredQueue

logger = logging.getLogger("scaletest.broker")

# Entries that one call drops, deletes or reads: each call blocks Redis for a few milliseconds.
PURGE_BATCH = 150
REMOVE_BATCH = 150
READ_BATCH = 1000
# Entries that are not queues, and that this process has logged.
_logged: set[bytes] = set()


class Queues:
    """The declared queues of one Redis."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def add(self, name: str, maximum: int = 0, note: str = "", owner: str = "") -> bool:
        """Declare a queue, or change its maximum (0: unlimited) and note; return whether it is new.

        owner: the client that owns the queue, when it is private.
        """
        checks.queue_name(name)
        checks.count(maximum, "maximum")
        entry = json.dumps({"maximum": maximum, "note": checks.cut_text(note, 200), "owner": owner})
        pipe = self._redis.pipeline()
        pipe.hset(keys.QUEUES, name, entry)
        pipe.sadd(keys.RQ_QUEUES, keys.rq_queue(name))
        return bool(pipe.execute()[0])

    def names(self) -> list[str]:
        """Return sorted names of declared queues; entries that are not queues are logged once."""
        return sorted(self._read_entries())

    def _read_entries(self) -> dict[str, QueueEntry]:
        """Return the entries of queues by name; log others once."""
        queues, foreign = split_entries(self._redis.hgetall(keys.QUEUES))
        for raw in foreign.keys() - _logged:
            _logged.add(raw)
            logger.warning(
                "%s holds %s, which is not a queue (%s) and is left out: redis-cli hdel %s %s",
                keys.QUEUES,
                printable_name(raw),
                foreign[raw],
                keys.QUEUES,
                shlex.quote(printable_name(raw)),
            )
        return queues

    def require(self, name: str) -> None:
        """Raise UndeclaredQueue, which lists the declared ones, unless `name` is declared."""
        checks.queue_name(name)
        if not self._redis.hexists(keys.QUEUES, name):
            raise UndeclaredQueue(name, self.names())

    def state(self, name: str) -> QueueState:
        """Return the queue now, read in one transaction so that its books can be checked."""
        checks.queue_name(name)
        try:
            row = script("state")(
                self._redis,
                [
                    keys.QUEUES,
                    keys.rq_queue(name),
                    keys.leases(name),
                    keys.workers(name),
                    keys.paused(name),
                    keys.counters(name),
                    keys.ended(name),
                    keys.suspects(name),
                ],
                [name],
            )
            if row is None:
                raise UndeclaredQueue(name, self.names())
            return QueueState.from_row(name, row)
        except (InvalidValue, ResponseError, ValueError, TypeError) as error:
            if is_transient(error) or isinstance(error, REFUSED):
                raise
            raise InvalidValue(
                f"queue {name!r} cannot be read: {checks.cut_text(str(error), 200)}",
                hint=(
                    f"rewrite its entry: scaletest queue add {name}; or check what its keys hold"
                ),
            ) from error

    def states(self) -> tuple[list[QueueState], list[InvalidValue]]:
        """Return all queues now, sorted by name, and an error for each that cannot be read."""
        states = []
        errors = []
        for name in self.names():
            try:
                states.append(self.state(name))
            except InvalidValue as error:
                errors.append(error)
        return states, errors

    def check(self, name: str) -> list[str]:
        """Return errors in a queue's accounts, one line each; nothing is repaired.

        Counts change during the check, so a queue at rest gives the surest answer.
        """
        checks.queue_name(name)
        try:
            state = self.state(name)
        except InvalidValue as error:
            return [error.message]
        # read the ids of all waiting and all running requests, and what RQ knows of their jobs
        key = keys.rq_queue(name)
        waiting: list[str] = []
        for start in range(0, state.waiting, READ_BATCH):
            waiting += map(text_of, self._redis.lrange(key, start, start + READ_BATCH - 1))
        leased = [
            text_of(member).split(":")[0]
            for member, _ in self._redis.zscan_iter(keys.leases(name), count=READ_BATCH)
        ]
        uncounted, missing = self._count_jobs(waiting)
        _, lost = self._count_jobs(leased)

        errors = []
        if state.balance + uncounted + missing:
            errors.append(
                f"submitted {state.counters.get('submitted', 0)} is not waiting {state.waiting} +"
                f" running {state.running} + ended"
                f" {sum(state.counters.get(key, 0) for key in OUTCOMES)} (stock jobs not yet"
                f" counted: {uncounted})"
            )
        if missing:
            errors.append(
                f"{missing} waiting entries have no job: RQ deleted or expired them; workers skip"
                " them"
            )
        if lost:
            errors.append(f"{lost} running requests have lost their jobs: somebody deleted them")
        return errors

    def _count_jobs(self, ids: list[str]) -> tuple[int, int]:
        """Return how many of these jobs are stock RQ's and not counted yet, and how many unknown.

        Stock RQ does not count what it submits: our scripts do, when they take it.
        """
        uncounted = missing = 0
        for start in range(0, len(ids), READ_BATCH):
            pipe = self._redis.pipeline(transaction=False)
            for job in ids[start : start + READ_BATCH]:
                pipe.hmget(keys.rq_job(job), "data", "booked", "enqueued_us", "attempts", "counted")
            for row in pipe.execute(raise_on_error=False):
                fields = row if isinstance(row, list) else [None]
                missing += fields[0] is None
                if fields[0] is not None:
                    # a job counted as ended was requeued, and counts again when taken
                    uncounted += fields[1] is not None or not any(fields[2:])
        return uncounted, missing

    def worker_names(self, name: str) -> list[str]:
        """Return names of the queue's living workers, sorted."""
        return sorted(map(text_of, living_workers(self._redis, name)))

    def pause(self, name: str) -> None:
        """Stop workers from taking requests of this queue; running ones finish."""
        self.require(name)
        self._redis.set(keys.paused(name), "1")

    def resume(self, name: str) -> bool:
        """Let workers take requests again; return whether the queue was paused."""
        self.require(name)
        return bool(self._redis.delete(keys.paused(name)))

    def purge(self, name: str) -> int:
        """Drop every waiting request, answering their clients; return how many.

        They count as purged.
        """
        self.require(name)
        return self._drop_waiting(name)

    def _drop_waiting(self, name: str) -> int:
        """Drop every waiting request of a queue, declared or not; return how many."""
        names = [keys.rq_queue(name), keys.counters(name)]
        total = 0
        while True:
            dropped = int(script("purge")(self._redis, names, [PURGE_BATCH]))
            total += dropped
            if dropped < PURGE_BATCH:
                return total

    def remove(self, name: str) -> int:
        """Purge and forget a queue with all its keys; return how many requests were dropped."""
        self.require(name)
        names = [
            keys.QUEUES,
            keys.RQ_QUEUES,
            keys.rq_queue(name),
            keys.leases(name),
            keys.rq_started(name),
            keys.rq_failed(name),
            keys.rq_finished(name),
            keys.rq_queue_workers(name),
            keys.counters(name),
            keys.taking(name),
            keys.rq_scheduled(name),
        ]
        arguments = [name, REMOVE_BATCH, *keys.of_queue(name)]
        dropped = 0
        is_gone = False
        while not is_gone:
            dropped += self._drop_waiting(name)
            is_gone = bool(script("remove")(self._redis, names, arguments))
        return dropped

    def remove_abandoned(self) -> list[str]:
        """Remove queues whose owner, a client, is gone, as after a killed run; return names."""
        removed = []
        for name, entry in self._read_entries().items():
            if entry.owner and self._redis.zscore(keys.CLIENTS, entry.owner) is None:
                self.remove(name)
                removed.append(name)
        return removed
