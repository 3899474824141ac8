"""Declared queues: add, list, inspect, pause, purge, remove; one small call each.

Entries of scaletest:queues may be anybody's: a foreign one must not raise.
"""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from redis.exceptions import ResponseError

from scaletest.broker import keys
from scaletest.broker.connection import REFUSED, Redis, transient
from scaletest.broker.scripts import script
from scaletest.model import checks, histogram, queue_counts
from scaletest.model.declared import Count
from scaletest.model.document import Document
from scaletest.model.errors import InvalidValue, UndeclaredQueue
from scaletest.model.record import Outcome


@dataclass(frozen=True, slots=True)
class QueueEntry(Document):
    """A queue's declaration. maximum: of waiting requests, 0 for none. owner: declaring client."""

    document_name = "its entry"

    maximum: Count = 0
    note: str = ""
    owner: str = ""


def shown(name: bytes | str) -> str:
    """A printable name: control characters and invalid bytes are escaped, long names are cut."""
    text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
    return checks.cut(text, 200)


def sorted_out(rows: Any) -> tuple[dict[str, QueueEntry], dict[bytes, str]]:
    """Queues by name, and by raw name the reason why another entry is not a queue."""
    queues: dict[str, QueueEntry] = {}
    foreign: dict[bytes, str] = {}
    for raw, value in rows.items():
        try:
            queues[checks.queue_name(raw.decode())] = QueueEntry.from_json(value)
        except UnicodeDecodeError:
            foreign[raw] = "its name is not UTF-8"
        except InvalidValue as error:
            foreign[raw] = error.message
    return queues, foreign


logger = logging.getLogger("scaletest.broker")

OUTCOMES = tuple(str(outcome) for outcome in Outcome)
# Entries that one call drops, deletes or reads: each call blocks Redis for a few milliseconds.
PURGE_BATCH = 150
REMOVE_BATCH = 150
LOOK_BATCH = 1000
# Entries that are not queues, and that this process has logged.
_logged: set[bytes] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredQueue:
    """A queue at one instant. Counts are requests.

    oldest_waiting_s: seconds since the first waiting request was enqueued; None when none waits or
    that is unknown.
    counters: as docs/reference/redis.md lists them; they run since the queue was declared.
    """

    name: str
    maximum: int
    note: str
    waiting: int
    running: int
    paused: bool
    oldest_waiting_s: float | None
    counters: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState(DeclaredQueue):
    """A queue with the figures that describe it in a few numbers. workers: how many live.

    suspects: workers whose requests fail at once, and which therefore wait between requests.
    wait_s, run_s: median and 95th percentile of finished requests, in seconds; empty when none
    finished.
    """

    workers: int
    wait_s: dict[str, float] = field(default_factory=dict)
    run_s: dict[str, float] = field(default_factory=dict)
    suspects: tuple[str, ...] = ()

    @property
    def balance(self) -> int:
        """Submitted - waiting - running - the five outcomes: 0 when the books balance."""
        ended = sum(self.counters.get(name, 0) for name in OUTCOMES)
        return self.counters.get("submitted", 0) - self.waiting - self.running - ended

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "balance": self.balance}


class Queues:
    """The declared queues of one Redis."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def add(self, name: str, maximum: int = 0, note: str = "", owner: str = "") -> bool:
        """Declare a queue, or change its maximum (0: unlimited) and note; whether it is new.

        owner: the client that owns the queue, when it is private.
        """
        checks.queue_name(name)
        checks.count(maximum, "maximum")
        entry = json.dumps({"maximum": maximum, "note": checks.cut(note, 200), "owner": owner})
        pipe = self._redis.pipeline()
        pipe.hset(keys.QUEUES, name, entry)
        pipe.sadd(keys.RQ_QUEUES, keys.rq_queue(name))
        return bool(pipe.execute()[0])

    def names(self) -> list[str]:
        """Sorted names of declared queues; entries that are not queues are logged once."""
        return sorted(self._declared())

    def foreign(self, name: str) -> list[bytes]:
        """Raw entries that are not queues and are shown under this name."""
        return [
            raw for raw in sorted_out(self._redis.hgetall(keys.QUEUES))[1] if shown(raw) == name
        ]

    def _declared(self) -> dict[str, QueueEntry]:
        queues, foreign = sorted_out(self._redis.hgetall(keys.QUEUES))
        for raw in foreign.keys() - _logged:
            _logged.add(raw)
            logger.warning(
                "scaletest:queues holds %s, which is not a queue (%s) and is left out: scaletest"
                " queue remove -- %s",
                shown(raw),
                foreign[raw],
                shlex.quote(shown(raw)),
            )
        return queues

    def require(self, name: str) -> None:
        """Raise UndeclaredQueue, which lists the declared ones, unless `name` is declared."""
        checks.queue_name(name)
        if not self._redis.hexists(keys.QUEUES, name):
            raise UndeclaredQueue(name, self.names())

    def state(self, name: str) -> QueueState:
        """The queue now, read in one transaction so that its books can be checked."""
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
            return _state(name, row)
        except (InvalidValue, ResponseError, ValueError, TypeError) as error:
            if transient(error) or isinstance(error, REFUSED):
                raise
            raise InvalidValue(
                f"queue {name!r} cannot be read: {checks.cut(str(error), 200)}",
                hint=(
                    f"rewrite its entry: scaletest queue add {name}; or check what its keys hold"
                ),
            ) from error

    def states(self) -> tuple[list[QueueState], list[InvalidValue]]:
        """All queues now, sorted by name, and an error for each that cannot be read."""
        states, errors = [], []
        for name in self.names():
            try:
                states.append(self.state(name))
            except InvalidValue as error:
                errors.append(error)
        return states, errors

    def check(self, name: str) -> list[str]:
        """Errors in a queue's accounts, one line each; nothing is repaired. Counts change during
        the check, so a queue at rest gives the surest answer.
        """
        checks.queue_name(name)
        try:
            state = self.state(name)
        except InvalidValue as error:
            return [error.message]
        key = keys.rq_queue(name)
        waiting: list[str] = []
        for start in range(0, state.waiting, LOOK_BATCH):
            waiting += map(text_of, self._redis.lrange(key, start, start + LOOK_BATCH - 1))
        leases = self._redis.zscan_iter(keys.leases(name), count=LOOK_BATCH)
        leased = [text_of(member).split(":")[0] for member, _ in leases]
        uncounted, missing = self._look_at(waiting)
        wrong = []
        if state.balance + uncounted + missing:
            wrong.append(
                f"submitted {state.counters.get('submitted', 0)} is not waiting {state.waiting} +"
                f" running {state.running} + ended"
                f" {sum(state.counters.get(key, 0) for key in OUTCOMES)} (stock jobs not yet"
                f" counted: {uncounted})"
            )
        if missing:
            wrong.append(
                f"{missing} waiting entries have no job: RQ deleted or expired them; workers skip"
                " them"
            )
        lost = self._look_at(leased)[1]
        if lost:
            wrong.append(f"{lost} running requests have no job any more: somebody deleted them")
        return wrong

    def _look_at(self, ids: list[str]) -> tuple[int, int]:
        """How many of these jobs are stock RQ's and not counted yet, and how many are unknown."""
        uncounted = missing = 0
        for start in range(0, len(ids), LOOK_BATCH):
            pipe = self._redis.pipeline(transaction=False)
            for job in ids[start : start + LOOK_BATCH]:
                pipe.hmget(keys.rq_job(job), "data", "booked", "enqueued_us", "attempts", "counted")
            for row in pipe.execute(raise_on_error=False):
                fields = row if isinstance(row, list) else [None]
                missing += fields[0] is None
                if fields[0] is not None:
                    # a job counted as ended was requeued, and counts again when taken
                    uncounted += fields[1] is not None or not any(fields[2:])
        return uncounted, missing

    def worker_names(self, name: str) -> list[str]:
        """Names of the queue's living workers, sorted."""
        return sorted(map(text_of, living(self._redis, name)))

    def pause(self, name: str) -> None:
        """Stop workers from taking requests of this queue; running ones finish."""
        self.require(name)
        self._redis.set(keys.paused(name), "1")

    def resume(self, name: str) -> bool:
        """Let workers take requests again; whether the queue was paused."""
        self.require(name)
        return bool(self._redis.delete(keys.paused(name)))

    def purge(self, name: str) -> int:
        """Drop every waiting request, answer their clients, count them as purged; how many."""
        self.require(name)
        return self._drop_waiting(name)

    def _drop_waiting(self, name: str) -> int:
        total = 0
        while True:
            dropped = int(
                script("purge")(
                    self._redis, [keys.rq_queue(name), keys.counters(name)], [PURGE_BATCH]
                )
            )
            total += dropped
            if dropped < PURGE_BATCH:
                return total

    def remove(self, name: str) -> int:
        """Purge and forget a queue with all its keys; returns how many requests were dropped."""
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
        ]
        dropped, gone = 0, False
        while not gone:
            dropped += self._drop_waiting(name)
            gone = bool(
                script("remove")(self._redis, names, [name, REMOVE_BATCH, *keys.of_queue(name)])
            )
        return dropped

    def remove_abandoned(self) -> list[str]:
        """Remove queues whose owner, a client, is gone, as after a killed run; their names."""
        removed = []
        for name, entry in self._declared().items():
            if entry.owner and self._redis.zscore(keys.CLIENTS, entry.owner) is None:
                self.remove(name)
                removed.append(name)
        return removed

    def remove_foreign(self, entries: Sequence[bytes]) -> None:
        """Remove entries that are not queues; of a valid name, all keys of that queue too."""
        for raw in entries:
            name = shown(raw)
            if checks.QUEUE_NAME.fullmatch(name) and name.encode() == raw:
                self.remove(name)
            else:
                self._redis.hdel(keys.QUEUES, raw)


def _state(name: str, row: list[Any]) -> QueueState:
    """A queue from state.lua's answer; InvalidValue, ValueError or TypeError when malformed."""
    (
        declared,
        waiting,
        running,
        workers,
        paused,
        oldest,
        counts,
        suspects,
        row_ended,
    ) = row
    past = queue_counts.read(row_ended)
    entry = QueueEntry.from_json(declared)
    return QueueState(
        name=name,
        maximum=entry.maximum,
        note=entry.note,
        waiting=waiting,
        running=running,
        workers=workers,
        paused=bool(paused),
        oldest_waiting_s=None if oldest is None else int(oldest) / 1e6,
        counters=queue_counts.added(
            {text_of(key): int(value) for key, value in pairs(counts)}, past.outcomes
        ),
        wait_s=_quantiles(past.wait),
        run_s=_quantiles(past.run),
        suspects=tuple(sorted(text_of(name) for name in suspects)),
    )


def living(redis: Redis, queue: str) -> list[bytes]:
    """Raw names of the queue's workers whose deadlines have not passed."""
    return redis.zrangebyscore(keys.workers(queue), shown_us(redis), "+inf")  # type: ignore[return-value]


def shown_us(redis: Redis) -> int:
    """The clock of deadlines in microseconds, read without setting it (lua/shown.lua)."""
    pipe = redis.pipeline(transaction=False)
    pipe.time()
    pipe.get(keys.STANDSTILL)
    (seconds, micros), standstill = pipe.execute()
    return int(seconds) * 1_000_000 + int(micros) - int(standstill or 0)


def _quantiles(counts: dict[int, int]) -> dict[str, float]:
    values = {"p50": histogram.quantile(counts, 0.5), "p95": histogram.quantile(counts, 0.95)}
    return {name: value for name, value in values.items() if value is not None}


def pairs(flat: list[Any]) -> list[tuple[Any, Any]]:
    """Names and values of a hash, as scripts answer it."""
    return list(zip(flat[::2], flat[1::2], strict=True))


def text_of(value: bytes | str | None) -> str:
    """A text that anybody may have written; "" for none."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""
