"""Rows of the pages of queues: values from a reading, sorted by what to look at first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

from scaletest.broker.snapshot import IDLE, SUSPECT, QueueSnapshot, WorkerState
from scaletest.model import NodeSample
from scaletest.model.node_sample import DEVICE, MEMORY
from scaletest.model.time_slots import RING, SLOT_S, RecentWindow, reach_s, window_until
from scaletest.render.spark import sparkline
from scaletest.render.text import Markup
from scaletest.ui.reading import Reading

# Rates are of the last minute. Workers beat every 2.5 s or more often.
WINDOW_S = 60.0
LATE_S = 10.0
# What a badge says, the worst first: colour is only added to it.
LEVELS = BAD, WARNING, WELL = "bad", "warning", "well"


@lru_cache(maxsize=1024)
def draw_spark(counts: tuple[int, ...], title: str) -> Markup:
    """Draw a spark line. It stays until a slot is over, so several pages in a row draw it once."""
    return sparkline(counts, title)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to look at."""

    level: str  # BAD or WARNING
    word: str  # of its badge
    queue: str
    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue with its last minute. dead: requests given up, and those that RQ keeps as failed."""

    queue: QueueSnapshot
    workers: Sequence[WorkerRow]
    window: RecentWindow
    ended_per_s: float
    dead: int
    problems: tuple[Problem, ...]

    @property
    def level(self) -> str:
        """The worst level of its problems."""
        levels = {problem.level for problem in self.problems}
        return next((level for level in (BAD, WARNING) if level in levels), WELL)

    @property
    def badge(self) -> str:
        """Its state in a word or two."""
        if self.problems:
            return self.problems[0].word
        return "working" if self.queue.running else "idle"

    def submitted(self) -> Markup:
        """Draw how many requests were submitted in each slot of the ring."""
        return self._spark({slot.number: slot.submitted for slot in self.queue.slots}, "Submitted")

    def ended(self) -> Markup:
        """Draw how many requests ended in each slot of the ring."""
        return self._spark({slot.number: slot.ended for slot in self.queue.slots}, "Ended")

    def _spark(self, by_slot: Mapping[int, int], title: str) -> Markup:
        last = int(self.queue.at_s // SLOT_S)
        # the present slot is not over, so it would look like a fall
        numbers = range(last - RING + 1, last)
        counts = tuple(map(by_slot.get, numbers, repeat(0)))
        minutes = len(numbers) * SLOT_S // 60
        most_per_s = max(counts) / SLOT_S
        text = f"{title} in the last {minutes} minutes, at most {most_per_s:g} a second"
        return draw_spark(counts, text)


class WorkerRow(NamedTuple):
    """A living worker of a queue. Times in seconds, None where unknown."""

    worker: WorkerState
    queue: str
    request_age_s: float | None
    heartbeat_age_s: float | None

    @property
    def is_late(self) -> bool:
        """Whether it missed several heartbeats."""
        return self.heartbeat_age_s is not None and self.heartbeat_age_s > LATE_S

    @property
    def level(self) -> str:
        """How urgent it is."""
        if self.worker.state == SUSPECT:
            return BAD
        return WARNING if self.is_late else WELL


class DeviceRow(NamedTuple):
    """A device of a node. slots: workers that hold a slot of it. running: those with a request.

    busy: share of time that it worked; memory in bytes; None where nobody reads them.
    """

    node: str
    name: str
    queues: tuple[str, ...]
    slots: int
    running: int
    busy: float | None
    memory_used: float | None
    memory_total: float | None


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node as its last sample shows it. age_s: how old the sample is."""

    sample: NodeSample
    age_s: float

    @property
    def memory_available(self) -> float | None:
        """Memory that is available to programs."""
        return self.sample.value(MEMORY, "available")


def queue_rows(reading: Reading) -> list[QueueRow]:
    """List all queues: the worst first, then those with most to do."""
    return sorted(
        (queue_row(queue, reading) for queue in reading.snapshot.queues),
        key=lambda row: (
            LEVELS.index(row.level),
            -row.queue.waiting - row.queue.running,
            row.queue.name,
        ),
    )


def queue_row(queue: QueueSnapshot, reading: Reading) -> QueueRow:
    """Describe one queue of a reading."""
    window = window_until(queue.slots, queue.at_s, WINDOW_S)
    failed = reading.rq.failed.get(queue.name, 0)
    dead = queue.counter("lost") + queue.counter("poison") + failed
    ended_per_s = window.ended / reach_s(queue.at_s, WINDOW_S)
    workers = worker_rows(queue)
    return QueueRow(queue, workers, window, ended_per_s, dead, tuple(problems(queue, workers)))


def problems(queue: QueueSnapshot, workers: Iterable[WorkerRow]) -> Iterable[Problem]:
    """Find what somebody should look at, the worst first."""
    name, suspects = queue.name, queue.states[SUSPECT]
    if queue.waiting and not queue.workers:
        yield Problem(
            BAD,
            "no worker",
            name,
            f"{_requests(queue.waiting)} and no worker is alive",
            f"scaletest worker --queue {name}",
        )
    if 0 < queue.maximum <= queue.waiting:
        yield Problem(
            BAD,
            "full",
            name,
            f"{_requests(queue.waiting)}, which is its maximum, and new ones are refused",
            f"scaletest queue add {name} --maximum N",
        )
    if suspects:
        text = "1 worker is suspect" if suspects == 1 else f"{suspects} workers are suspect"
        yield Problem(BAD, "suspect", name, f"{text}: requests fail there at once")
    if queue.paused:
        yield Problem(
            WARNING,
            "paused",
            name,
            "it is paused, so its workers take nothing",
            f"scaletest queue resume {name}",
        )
    if late := sum(row.is_late for row in workers):
        text = "1 worker has" if late == 1 else f"{late} workers have"
        yield Problem(WARNING, "late", name, f"{text} not beaten for more than {LATE_S:g} s")


def _requests(waiting: int) -> str:
    return "1 request waits" if waiting == 1 else f"{waiting} requests wait"


def worker_rows(queue: QueueSnapshot) -> list[WorkerRow]:
    """List the living workers of a queue, in the order of the snapshot."""
    return [
        WorkerRow(
            worker,
            queue.name,
            _age_s(worker.started_s, queue.at_s),
            _age_s(worker.heartbeat_s, queue.at_s),
        )
        for worker in queue.workers
    ]


def urgent_first(rows: Iterable[WorkerRow]) -> list[WorkerRow]:
    """Sort suspect workers first, then late ones, the longest requests, and idle ones."""
    return sorted(
        rows,
        key=lambda row: (
            LEVELS.index(row.level),
            row.worker.state == IDLE,
            -(row.request_age_s or 0.0),
            row.queue,
            row.worker.name,
        ),
    )


def device_rows(queues: Sequence[QueueSnapshot], samples: Iterable[NodeSample]) -> list[DeviceRow]:
    """List devices of these queues' workers and nodes, those with most slots in use first."""
    holders: dict[tuple[str, str], list[tuple[str, WorkerState]]] = {}
    for queue in queues:
        for worker in queue.workers:
            if worker.device:
                holders.setdefault((worker.node, worker.device), []).append((queue.name, worker))
    figures = {}
    for sample in samples:
        for name, read in sample.of_kind(DEVICE).items():
            figures[sample.node, name] = read
    rows = []
    for node, name in holders.keys() | figures.keys():
        users, read = holders.get((node, name), []), figures.get((node, name), {})
        rows.append(
            DeviceRow(
                node,
                name,
                tuple(sorted({queue for queue, _ in users})),
                len(users),
                sum(worker.busy for _, worker in users),
                read.get("busy"),
                read.get("memory_used"),
                read.get("memory_total"),
            )
        )
    return sorted(rows, key=lambda row: (-row.slots, -(row.busy or 0.0), row.node, row.name))


def node_rows(samples: Iterable[NodeSample], at_s: float) -> list[ShownNode]:
    """List nodes by their names."""
    rows = [ShownNode(sample, max(0.0, at_s - sample.at_s)) for sample in samples]
    return sorted(rows, key=lambda row: row.sample.node)


def _age_s(moment_s: float | None, at_s: float) -> float | None:
    return None if moment_s is None else max(0.0, at_s - moment_s)
