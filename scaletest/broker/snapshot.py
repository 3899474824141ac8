"""All declared queues, read in calls whose cost does not grow with what waits.

A call reads some queues, each at one instant, so that its books balance, and keeps Redis for a few
milliseconds. With few queues one call reads all of them. With very many a snapshot is a series of
pages, a moment apart, and says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from redis.exceptions import ResponseError

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.queue_state import (
    DeclaredQueue,
    QueueEntry,
    living_workers,
    pairs_of,
    printable_name,
    text_of,
)
from scaletest.broker.redis_errors import is_transient
from scaletest.broker.scripts import script
from scaletest.model import checks, queue_counts, time_slots
from scaletest.model.errors import InvalidValue

# Queues requested in one call, which reads as its budget allows, and workers read in one call.
PAGE_QUEUES = 100
PAGE_WORKERS = 900
# Redis counts up to here.
MOST_COUNT = 2**63 - 1
# States of workers; requests of a suspect one fail at once.
IDLE = "idle"
BUSY = "busy"
SUSPECT = "suspect"
STATES = (IDLE, BUSY, SUSPECT)
# What parsing foreign data can raise.
_UNREADABLE = (InvalidValue, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)


class WorkerState(NamedTuple):
    """A living worker. Texts are "" where unknown."""

    name: str
    busy: bool
    suspect: bool
    pod: str = ""
    node: str = ""
    started_s: float | None = None  # Redis time at which it took its request; None while idle
    request: str = ""  # id of that request
    device: str = ""  # path of the device whose slot it holds

    @property
    def state(self) -> str:
        """One of STATES."""
        if self.suspect:
            return SUSPECT
        return BUSY if self.busy else IDLE


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSnapshot(DeclaredQueue):
    """A declared queue at `at_s`, Redis server time in seconds."""

    at_s: float
    ended: queue_counts.EndedCounts
    slots: tuple[time_slots.TimeSlot, ...]
    workers: tuple[WorkerState, ...]

    def counter(self, name: str) -> int:
        """Return a counter of docs/reference/redis.md; 0 when nothing was counted yet."""
        return self.counters.get(name, 0)

    @property
    def abandoned(self) -> int:
        """Requests whose client was gone: dropped before they ran, or without receiver."""
        return self.counter("client_gone") + self.counter("undelivered")

    @property
    def longest_wait_s(self) -> float | None:
        """Age of the oldest waiting request in seconds: 0 without any, None when unknown."""
        return self.oldest_waiting_s if self.waiting else 0.0

    @property
    def states(self) -> dict[str, int]:
        """How many living workers are in each state."""
        counts = dict.fromkeys(STATES, 0)
        for worker in self.workers:
            counts[worker.state] += 1
        return counts

    @property
    def nodes(self) -> set[str]:
        """Names of its workers' nodes."""
        return {worker.node for worker in self.workers if worker.node}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All queues from `at_s` on, Redis server time in seconds."""

    at_s: float
    clients: int  # that are alive
    queues: tuple[QueueSnapshot, ...]
    # names of queues that are left out, since their keys contain something else, and the reasons
    unreadable: tuple[tuple[str, str], ...] = ()
    # how many calls read it: with 1 all queues are of one instant, with more each of its own `at_s`
    pages: int = 1


def read_snapshot(redis: Redis) -> Snapshot:
    """Read all queues. Raises what redis-py raises when Redis is away."""
    queues: list[QueueSnapshot] = []
    unreadable: list[tuple[str, str]] = []
    heads: list[tuple[float, int]] = []  # of each page: its time, and the living clients
    names = sorted({name for name, _ in redis.hscan_iter(keys.QUEUES, count=PAGE_QUEUES)})
    start = 0
    while not heads or start < len(names):  # at least one call, for the clients
        at_us, clients, *rows = script("metrics")(
            redis, [keys.QUEUES, keys.CLIENTS], names[start : start + PAGE_QUEUES]
        )
        heads.append((int(at_us) / 1e6, int(clients)))
        start += max(1, len(rows))  # a call may read fewer queues than it was asked for
        for row in rows:
            if len(row) < 2:  # no queue any more
                continue
            try:
                queues.append(_read_queue(redis, heads[-1][0], row))
            except _UNREADABLE as error:
                # any client may write to Redis: that must not hide the other queues
                unreadable.append((printable_name(row[0]), checks.cut_text(str(error), 200)))
    queues.sort(key=lambda queue: queue.name)
    return Snapshot(*heads[0], tuple(queues), tuple(sorted(unreadable)), len(heads))


def _read_queue(redis: Redis, at_s: float, row: list[Any]) -> QueueSnapshot:
    """Read a row of lua/metrics.lua; raises one of _UNREADABLE."""
    if len(row) == 2:
        raise ValueError(row[1].decode("utf-8", "replace"))
    (
        name,
        declared,
        waiting,
        running,
        paused,
        oldest,
        counters,
        ring,
        workers,
        suspects,
        row_ended,
    ) = row
    ended = queue_counts.read(row_ended)
    entry = QueueEntry.from_json(declared)
    if workers is None:
        # too many workers for the call that reads the queue: their rows come page by page
        queue = checks.queue_name(name.decode())
        names = sorted(living_workers(redis, queue))
        workers = []
        for start in range(0, len(names), PAGE_WORKERS):
            try:
                workers += script("roster")(redis, [], names[start : start + PAGE_WORKERS])
            except ResponseError as error:
                if is_transient(error):
                    raise
                raise ValueError(str(error)) from error
        suspects = list(redis.sscan_iter(keys.suspects(queue), count=PAGE_WORKERS))
    return QueueSnapshot(
        name=checks.queue_name(name.decode()),
        at_s=at_s,
        maximum=entry.maximum,
        note=entry.note,
        waiting=waiting,
        running=running,
        paused=bool(paused),
        oldest_waiting_s=None if oldest is None else int(oldest) / 1e6,
        counters=queue_counts.add_counts(
            {key.decode(): _count(value) for key, value in pairs_of(counters)}, ended.outcomes
        ),
        ended=ended,
        slots=time_slots.unpack_slots(dict(pairs_of(ring)), ended.slots),
        workers=_read_workers(workers, set(suspects)),
    )


def _read_workers(rows: list[list[Any]], suspects: set[bytes]) -> tuple[WorkerState, ...]:
    """Read rows of lua/worker_row.lua; there may be ten thousand of them."""
    workers = []
    for state, pod, node, answer, device, name in rows:
        is_busy = state == b"busy"
        request = ""
        started_s = None
        if is_busy:
            # lua/cycle.lua answered the call that took it with id:attempt:start
            parts = (answer or b"").split(b":")
            request = text_of(parts[0])
            if len(parts) > 1 and parts[-1].isdigit():
                started_s = int(parts[-1]) / 1e6
        workers.append(
            WorkerState(
                text_of(name),
                is_busy,
                name in suspects,
                text_of(pod),
                text_of(node),
                started_s,
                request,
                text_of(device),
            )
        )
    return tuple(workers)


def _count(number: bytes) -> int:
    """Read a count that Redis may have counted; ValueError for any other one."""
    count = int(number)
    if not 0 <= count <= MOST_COUNT:
        raise ValueError("a count is impossible")
    return count


@dataclass(frozen=True, slots=True)
class RqState:
    """What RQ itself keeps beside the queues."""

    suspended: bool  # RQ's own switch stops all workers
    failed: dict[str, int]  # jobs in each queue's registry of failed jobs, where it has any


def read_rq_state(redis: Redis, queues: Sequence[str]) -> RqState:
    """Return RQ's state of these queues. Raises what redis-py raises when Redis is away."""
    suspended = bool(redis.exists(keys.RQ_SUSPENDED))
    pipe = redis.pipeline(transaction=False)
    for name in queues:
        pipe.zcard(keys.rq_failed(name))
    failed: dict[str, int] = {}
    for name, count in zip(queues, pipe.execute(raise_on_error=False), strict=True):
        # any client may write to Redis: a key of another type is an error
        if isinstance(count, int) and count:
            failed[name] = count
    return RqState(suspended, failed)
