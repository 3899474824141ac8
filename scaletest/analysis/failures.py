"""Failed requests, grouped by common traits, so that a thousand failures read as three lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.model import Record

MOST_GROUPS = 100


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Requests that failed alike.

    first_s, last_s: Redis seconds of the first and the last failure, 0 when none began.
    """

    outcome: str
    reason: str
    exit_code: int | None
    error: str
    node: str
    device: str
    count: int
    first_s: float
    last_s: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def group(records: Iterable[Record]) -> list[FailureGroup]:
    """Groups by outcome, reason, exit code, error, node and device; largest first, at most 100."""
    times_by_key: dict[tuple[str, str, int | None, str, str, str], list[float]] = {}
    for record in records:
        reply = record.reply
        if not record.ok:
            key = (
                reply.outcome.value,
                reply.reason.value,
                reply.exit_code,
                reply.error,
                reply.node,
                reply.device,
            )
            times_by_key.setdefault(key, []).append(reply.ended_s)
    groups = [
        FailureGroup(outcome, reason, code, error, node, device, len(times), min(times), max(times))
        for (outcome, reason, code, error, node, device), times in times_by_key.items()
    ]
    return sorted(groups, key=lambda group: (-group.count, group.error))[:MOST_GROUPS]
