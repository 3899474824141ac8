"""Rows of the pages of queues: values from a reading, sorted by what to look at first. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scaletest.broker.snapshot import BUSY, IDLE, SUSPECT, QueueSnapshot, WorkerState
from scaletest.model import NodeSample
from scaletest.model.node_sample import DEVICE
from scaletest.model.time_slots import RING, SLOT_S, RecentWindow, reach_s, window_until
from scaletest.render.numbers import plural
from scaletest.render.spark import sparkline
from scaletest.render.text import Markup
from scaletest.ui.reading import Reading

# Rates are of the last minute.
WINDOW_S = 60.0
# The part of the requests from which on failures are bad, and not only worth a look.
MANY_FAILED = 0.05
# What a badge says, the worst first: colour is only added to it.
LEVELS = BAD, WARNING, WELL = "bad", "warning", "well"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that somebody should look at, with the command that helps."""

    level: str  # BAD or WARNING
    word: str  # of its badge
    queue: str
    text: str
    command: str = ""


class WorkerRow(NamedTuple):
    """A living worker of a queue."""

    worker: WorkerState
    queue: str
    request_age_s: float | None  # None while it runs none, or where unknown

    @property
    def level(self) -> str:
        """How urgent it is to look at: BAD or WELL."""
        return BAD if self.worker.state == SUSPECT else WELL


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue, what it did in the last minute, and what is wrong with it."""

    queue: QueueSnapshot
    workers: Sequence[WorkerRow]
    window: RecentWindow
    ended_per_s: float
    dead: int  # requests that were given up, and those that RQ keeps as failed
    problems: tuple[Problem, ...]

    @property
    def level(self) -> str:
        """The worst level of its problems; WELL without any."""
        levels = {problem.level for problem in self.problems}
        return next((level for level in (BAD, WARNING) if level in levels), WELL)

    @property
    def badge(self) -> str:
        """Its state in a word or two."""
        if self.problems:
            return self.problems[0].word
        return "working" if self.queue.running or self.window.ended else "idle"

    @property
    def busy_share(self) -> float | None:
        """The part of its workers' time that requests took; None without workers.

        It is that of the last minute, or of this moment where no request ended in it.
        """
        workers = len(self.queue.workers)
        busy = float(self.queue.states[BUSY])
        if self.window.mean_run_s is not None and self.window.ended:
            busy = self.ended_per_s * self.window.mean_run_s
        return min(1.0, busy / workers) if workers else None

    def draw(self, name: str) -> Markup:
        """Draw how many requests were "submitted", or "ended", in each slot of the ring."""
        by_slot = {slot.number: getattr(slot, name) for slot in self.queue.slots}
        last = int(self.queue.at_s // SLOT_S)
        # the present slot is not over, so it would look like a fall
        numbers = range(last - RING + 1, last)
        counts = [by_slot.get(number, 0) for number in numbers]
        span = f"in the last {len(numbers) * SLOT_S // 60} minutes"
        title = f"{name.capitalize()} {span}, at most {max(counts) / SLOT_S:g} per second"
        return sparkline(counts, title)


class DeviceRow(NamedTuple):
    """A device of a node. What nobody reads is None."""

    node: str
    name: str
    queues: tuple[str, ...]
    slots: int  # workers that hold a slot of it
    running: int  # of these, the workers with a request
    busy: float | None  # the share of time that it worked
    memory_used: float | None  # in bytes
    memory_total: float | None


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
    """Describe one queue by its last minute, with what somebody should look at."""
    window = window_until(queue.slots, queue.at_s, WINDOW_S)
    workers = worker_rows(queue)
    failed_in_rq = reading.rq.failed.get(queue.name, 0)
    return QueueRow(
        queue,
        workers,
        window,
        ended_per_s=window.ended / reach_s(queue.at_s, WINDOW_S),
        dead=queue.counter("lost") + queue.counter("poison") + failed_in_rq,
        problems=tuple(find_problems(queue, window)),
    )


def find_problems(queue: QueueSnapshot, window: RecentWindow) -> Iterable[Problem]:
    """Yield what somebody should look at, the worst first."""
    name = queue.name
    suspects = queue.states[SUSPECT]
    if queue.waiting and not queue.workers:
        yield Problem(
            BAD,
            "no worker",
            name,
            f"{_requests_wait(queue.waiting)} and no worker is alive",
            f"scaletest worker --queue {name}",
        )
    if 0 < queue.maximum <= queue.waiting:
        yield Problem(
            BAD,
            "full",
            name,
            f"{_requests_wait(queue.waiting)}, which is its maximum, and new ones are refused",
            f"scaletest queue add {name} --maximum N",
        )
    if suspects:
        text = "1 worker is suspect" if suspects == 1 else f"{suspects} workers are suspect"
        yield Problem(BAD, "suspect", name, f"{text}: requests fail there at once")
    if window.failed:
        yield Problem(
            BAD if window.failed >= MANY_FAILED * window.ended else WARNING,
            "failing",
            name,
            f"{window.failed} of {plural(window.ended, 'request')} failed in the last minute",
            f"scaletest queue show {name}",
        )
    if queue.paused:
        yield Problem(
            WARNING,
            "paused",
            name,
            "it is paused, so its workers take nothing",
            f"scaletest queue resume {name}",
        )


def _requests_wait(waiting: int) -> str:
    return "1 request waits" if waiting == 1 else f"{waiting} requests wait"


def worker_rows(queue: QueueSnapshot) -> list[WorkerRow]:
    """List the living workers of a queue, in the order of the snapshot."""
    return [
        WorkerRow(worker, queue.name, _age_s(worker.started_s, queue.at_s))
        for worker in queue.workers
    ]


def urgent_first(rows: Iterable[WorkerRow]) -> list[WorkerRow]:
    """Sort suspect workers first, then the longest requests, and idle ones."""
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
    # (queue, worker) of those that hold a slot, by (node, device)
    holders: dict[tuple[str, str], list[tuple[str, WorkerState]]] = {}
    for queue in queues:
        for worker in queue.workers:
            if worker.device:
                holders.setdefault((worker.node, worker.device), []).append((queue.name, worker))
    # what the last samples of the nodes say, by (node, device)
    measured = {}
    for sample in samples:
        for name, numbers in sample.of_kind(DEVICE).items():
            measured[sample.node, name] = numbers
    rows = []
    for node, name in holders.keys() | measured.keys():
        users = holders.get((node, name), [])
        numbers = measured.get((node, name), {})
        rows.append(
            DeviceRow(
                node,
                name,
                tuple(sorted({queue for queue, _ in users})),
                len(users),
                sum(worker.busy for _, worker in users),
                numbers.get("busy"),
                numbers.get("memory_used"),
                numbers.get("memory_total"),
            )
        )
    return sorted(rows, key=lambda row: (-row.slots, -(row.busy or 0.0), row.node, row.name))


def _age_s(moment_s: float | None, at_s: float) -> float | None:
    return None if moment_s is None else max(0.0, at_s - moment_s)
