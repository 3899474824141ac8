"""Requests that failed by themselves, and workers that failed all of theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scaletest.model import Record
from scaletest.model.record import Outcome


def failed(record: Record) -> bool:
    """Whether a request failed by itself, not since its client left or the queue was purged."""
    return record.reply.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)


def suspects(rows: Sequence[Record]) -> tuple[str, ...]:
    """Workers that failed all of their requests, at least five, while others succeeded."""
    wrong = Counter(record.reply.worker for record in rows if failed(record))
    good = {record.reply.worker for record in rows if record.ok}
    failing = (
        name for name, count in wrong.items() if good and name and count >= 5 and name not in good
    )
    return tuple(sorted(failing))
