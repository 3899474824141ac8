"""What Redis holds of a queue: its declaration, and its state at one instant.

Anybody may have written it: what cannot be read is said, or left out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.model import checks, histogram, queue_counts
from scaletest.model.declared import Count
from scaletest.model.document import Document
from scaletest.model.errors import InvalidValue
from scaletest.model.record import Outcome

# Names of the counters of ended requests.
OUTCOMES = tuple(str(outcome) for outcome in Outcome)


@dataclass(frozen=True, slots=True)
class QueueEntry(Document):
    """A queue's declaration."""

    document_name = "its entry"

    maximum: Count = 0  # waiting requests at most; 0 for any number
    note: str = ""
    owner: str = ""  # the client that declared it


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredQueue:
    """A queue at one instant. Counts are requests."""

    name: str
    maximum: int  # of waiting requests; 0 for any number
    note: str
    waiting: int
    running: int
    paused: bool
    # seconds since the first waiting request was enqueued; None when none waits or it is unknown
    oldest_waiting_s: float | None
    # as docs/reference/redis.md lists them; they run since the queue was declared
    counters: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState(DeclaredQueue):
    """A queue at one instant, with its times in a few numbers."""

    workers: int  # that live
    # median and 95th percentile of finished requests, in seconds; empty when none finished
    wait_s: dict[str, float] = field(default_factory=dict)
    run_s: dict[str, float] = field(default_factory=dict)
    # workers whose requests fail at once, and which therefore wait between requests
    suspects: tuple[str, ...] = ()

    @classmethod
    def from_row(cls, name: str, row: list[Any]) -> QueueState:
        """Read state.lua's answer; InvalidValue, ValueError or TypeError when malformed."""
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
        ended = queue_counts.read(row_ended)
        entry = QueueEntry.from_json(declared)
        return cls(
            name=name,
            maximum=entry.maximum,
            note=entry.note,
            waiting=waiting,
            running=running,
            workers=workers,
            paused=bool(paused),
            oldest_waiting_s=None if oldest is None else int(oldest) / 1e6,
            counters=queue_counts.add_counts(
                {text_of(key): int(value) for key, value in pairs_of(counts)}, ended.outcomes
            ),
            wait_s=_quantiles(ended.wait),
            run_s=_quantiles(ended.run),
            suspects=tuple(sorted(text_of(name) for name in suspects)),
        )

    @property
    def balance(self) -> int:
        """Submitted - waiting - running - the five outcomes: 0 when the books balance."""
        return (
            self.counters.get("submitted", 0)
            - (self.waiting + self.running)
            - sum(self.counters.get(name, 0) for name in OUTCOMES)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "balance": self.balance}


def split_entries(rows: Any) -> tuple[dict[str, QueueEntry], dict[bytes, str]]:
    """Return queues by name, and by raw name the reason why another entry is not a queue."""
    queues: dict[str, QueueEntry] = {}
    foreign: dict[bytes, str] = {}
    for raw, value in rows.items():
        try:
            queues[checks.queue_name(text_of(raw))] = QueueEntry.from_json(value)
        except InvalidValue as error:
            foreign[raw] = error.message
    return queues, foreign


def printable_name(name: bytes | str) -> str:
    """Return a name with its control characters and invalid bytes escaped, and cut when long."""
    text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
    return checks.cut_text(text, 200)


def text_of(value: bytes | str | None) -> str:
    """Return a text that anybody may have written; "" for none."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""


def _quantiles(counts: dict[int, int]) -> dict[str, float]:
    """Return median and 95th percentile of a histogram, by the names of the output."""
    values = {
        "p50": histogram.histogram_quantile(counts, 0.5),
        "p95": histogram.histogram_quantile(counts, 0.95),
    }
    return {name: value for name, value in values.items() if value is not None}


def pairs_of(flat: list[Any]) -> list[tuple[Any, Any]]:
    """Return names and values of a hash, which scripts answer in one row by turns."""
    return list(zip(flat[::2], flat[1::2], strict=True))


def living_workers(redis: Redis, queue: str) -> list[bytes]:
    """Return raw names of the queue's workers whose deadlines have not passed."""
    return redis.zrangebyscore(keys.workers(queue), deadline_clock_us(redis), "+inf")  # type: ignore[return-value]


def deadline_clock_us(redis: Redis) -> int:
    """Read the clock of deadlines, in microseconds, without setting it (lua/shown.lua)."""
    pipe = redis.pipeline(transaction=False)
    pipe.time()
    pipe.get(keys.STANDSTILL)
    (seconds, micros), standstill = pipe.execute()
    return int(seconds) * 1_000_000 + int(micros) - int(standstill or 0)
