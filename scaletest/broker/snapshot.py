"""All declared queues at one instant, read in one round trip whose cost does not grow with what waits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.scripts import script
from scaletest.model import slots
from scaletest.model.checks import cut
from scaletest.model.slots import Slot

# What reading something that nobody of us wrote can raise.
_UNREADABLE = (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A living worker. started_s: Redis time when it took the request that it runs; None while it runs none."""

    name: str
    busy: bool
    suspect: bool
    pod: str = ""
    node: str = ""
    started_s: float | None = None


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """A declared queue. Counts are requests; `wait` and `run` count ended ones by bucket of model/histogram.py.

    oldest_waiting_s: seconds since the first waiting request was submitted; None when none waits or that is unknown.
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
    wait: dict[int, int]
    run: dict[int, int]
    slots: tuple[Slot, ...]
    workers: tuple[WorkerState, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at `at_s`, Redis server time in seconds. clients: clients that live.

    unreadable: names of the queues that are left out, since something else lies in their keys, and why.
    """

    at_s: float
    clients: int
    queues: tuple[QueueSnapshot, ...]
    unreadable: tuple[tuple[str, str], ...] = ()


def snapshot(redis: Redis) -> Snapshot:
    """Read it. Raises what redis-py raises when Redis is away."""
    now, clients, *rows = script("metrics")(redis, [keys.QUEUES, keys.CLIENTS], [])
    queues: list[QueueSnapshot] = []
    unreadable: list[tuple[str, str]] = []
    for row in rows:
        try:
            queues.append(_queue(row))
        except _UNREADABLE as error:
            # anybody may write to Redis: that must not hide the other queues
            unreadable.append((cut(row[0].decode("utf-8", "replace"), 100), cut(str(error), 200)))
    queues.sort(key=lambda queue: queue.name)
    return Snapshot(int(now) / 1e6, int(clients), tuple(queues), tuple(sorted(unreadable)))


def _queue(row: list[Any]) -> QueueSnapshot:
    if len(row) == 2:
        raise ValueError(row[1].decode("utf-8", "replace"))
    name, declared, waiting, running, paused, oldest, counters, wait, run, ring, workers, suspects = row
    entry = json.loads(declared)
    return QueueSnapshot(
        name=name.decode(),
        maximum=int(entry.get("maximum", 0)),
        note=str(entry.get("note", "")),
        waiting=waiting,
        running=running,
        paused=bool(paused),
        oldest_waiting_s=None if oldest is None else int(oldest) / 1e6,
        counters={key.decode(): int(value) for key, value in _pairs(counters)},
        wait=_numbers(wait),
        run=_numbers(run),
        slots=slots.unpack(dict(_pairs(ring))),
        workers=tuple(_worker(worker, set(suspects)) for worker in workers),
    )


def _worker(row: list[bytes], suspects: set[bytes]) -> WorkerState:
    name, state, pod, node, answer = row
    busy = state == b"busy"
    started = answer.rpartition(b":")[2]
    return WorkerState(
        name=name.decode("utf-8", "replace"),
        busy=busy,
        suspect=name in suspects,
        pod=pod.decode("utf-8", "replace"),
        node=node.decode("utf-8", "replace"),
        started_s=int(started) / 1e6 if busy and started.isdigit() else None,
    )


def _numbers(text: bytes) -> dict[int, int]:
    flat: list[int] = json.loads(b"[%b]" % text)
    if not set(map(type, flat)) <= {int}:
        raise ValueError("a histogram holds something else than whole numbers")
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _pairs(flat: list[bytes]) -> Any:
    return zip(flat[::2], flat[1::2], strict=True)
