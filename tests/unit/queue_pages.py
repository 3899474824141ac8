"""The pages of queues over a reading that a test makes up."""

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flask import Flask

from scaletest.broker.failures import FailedRequest
from scaletest.broker.snapshot import QueueSnapshot, RqState, Snapshot, WorkerState
from scaletest.model import NodeSample
from scaletest.model.errors import Unreachable
from scaletest.model.queue_counts import EndedCounts
from scaletest.model.time_slots import TimeSlot
from scaletest.ui.app import make_app
from scaletest.ui.reading import Reading
from scaletest.ui.sources import Sources

AT_S = 1_800_000_000.0
HOSTILE = '"><script>document.title="owned"</script><img src=x onerror=document.title="owned">'


def ended_counts(wait: dict[int, int], run: dict[int, int]) -> EndedCounts:
    """Requests that ended with these wait and run times, by bucket."""
    numbers = [0] * (2 * max(*wait, *run) + 2)
    for place, counts in enumerate((wait, run)):
        for bucket, count in counts.items():
            numbers[2 * bucket + place] = count
    return EndedCounts(buckets=struct.pack(f">{len(numbers)}q", *numbers))


def queue(name: str = "media", **fields: Any) -> QueueSnapshot:
    """A queue at rest."""
    values: dict[str, Any] = {
        "at_s": AT_S,
        "maximum": 0,
        "note": "",
        "waiting": 0,
        "running": 0,
        "paused": False,
        "oldest_waiting_s": None,
        "counters": {},
        "ended": EndedCounts(),
        "slots": (),
        "workers": (),
    }
    return QueueSnapshot(name=name, **{**values, **fields})


def worker(name: str, **fields: Any) -> WorkerState:
    """A living worker; busy when it has a request."""
    values = {"node": "node-1", "pod": f"pod-of-{name}", **fields}
    return WorkerState(name, bool(values.get("request")), bool(values.pop("suspect", 0)), **values)


def busy_queue(name: str = "media", **fields: Any) -> QueueSnapshot:
    """A queue under load, on two devices, with ten minutes of rates."""
    slots = tuple(
        TimeSlot(int(AT_S // 10) - age, 10 + age % 5, 8, 12.0, 1.0, 2.5, 3.0) for age in range(60)
    )
    workers = tuple(
        worker(
            f"{name.replace('/', '-')}-{number}",
            request=f"request-{number}" if number % 3 else "",
            started_s=AT_S - 7 * number if number % 3 else None,
            device=f"/dev/dri/renderD{128 + number % 2}",
        )
        for number in range(6)
    )
    values: dict[str, Any] = {
        "waiting": 12,
        "running": 4,
        "oldest_waiting_s": 4.2,
        "counters": {"submitted": 640, "succeeded": 600, "failed": 20, "timed_out": 4},
        "ended": ended_counts(
            {500 + number: 1 + number % 7 for number in range(60)},
            {700 + number: 1 + number % 5 for number in range(60)},
        ),
        "slots": slots,
        "workers": workers,
    }
    return queue(name, **{**values, **fields})


def sample(node: str = "node-1", **figures: float) -> NodeSample:
    """A node with a device."""
    device = {"busy": 0.82, "memory_used": 2e9, "memory_total": 8e9, **figures}
    resources = {
        "cpu": {"cores": 8.0, "user": 3.0, "system": 1.0},
        "memory": {"available": 5e9},
        "pressure": {"cpu_some": 0.25, "memory_some": 0.0, "io_some": 0.5},
        "device:/dev/dri/renderD128": device,
    }
    return NodeSample(node, "media-0", AT_S - 0.5, 1.0, resources)


def failure(number: int = 0, **fields: Any) -> FailedRequest:
    """A failure whose pointer differs from that of others."""
    values: dict[str, Any] = {
        "node": "node-1",
        "device": "/dev/dri/renderD128",
        "pod": "pod-1",
        "reason": "exit",
        "exit_code": 3,
        "error": f"[AVHWDeviceContext @ 0x55d0c{number:03x}] Failed to initialise VAAPI",
    }
    return FailedRequest(AT_S - 5 * number, f"failed-{number}", **{**values, **fields})


@dataclass
class MadeReader:
    """What QueueReader would have read; with an error it is away."""

    queues: tuple[QueueSnapshot, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()
    samples: dict[str, list[NodeSample]] = field(default_factory=dict)
    rq: RqState = field(default_factory=lambda: RqState(False, {}))
    failed: list[FailedRequest] = field(default_factory=list)
    error: Unreachable | None = None

    def read(self) -> Reading:
        if self.error is not None:
            raise self.error
        ordered = tuple(sorted(self.queues, key=lambda queue: queue.name))
        return Reading(Snapshot(AT_S, 2, ordered, self.unreadable), self.samples, self.rq)

    def failures(self, queue: str) -> list[FailedRequest]:
        return self.failed


def site(reader: MadeReader | None, root: Path = Path("/nowhere"), **options: Any) -> Flask:
    """The application over such a reader; None for one that was started without a Redis."""
    app = make_app(Sources(root), **options)
    if reader is not None:
        app.extensions["queues"] = reader
    return app


def under_load() -> MadeReader:
    """A reading with everything that the pages can show."""
    troubled = queue("lonely", waiting=3, oldest_waiting_s=61.0, maximum=3)
    return MadeReader(
        (busy_queue(), busy_queue("team/sleep", paused=True), troubled),
        (("<b>bad</b>", "its entry is not valid JSON"),),
        {"media": [sample()]},
        RqState(False, {"media": 2}),
        [*map(failure, range(7)), failure(8, error="no space left on device", device="")],
    )
