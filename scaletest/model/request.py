"""A request: one unit of work that a client enqueues. Checked on creation, then immutable."""

from __future__ import annotations

from dataclasses import dataclass

from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Request:
    """One unit of work.

    id: unique text, valid as an RQ job id.
    queue: the queue it goes to.
    arguments: added to the workload's own arguments, at most 4 KiB in all by default.
    time_limit_s: seconds the workload may run; 0 means that the request sets no limit.
    """

    id: str
    queue: str
    arguments: tuple[str, ...] = ()
    time_limit_s: float = 0.0

    def __post_init__(self) -> None:
        checks.request_id(self.id)
        checks.queue_name(self.queue)
        object.__setattr__(self, "arguments", checks.arguments(self.arguments))
        object.__setattr__(self, "time_limit_s", checks.seconds(self.time_limit_s, "time limit"))

    def to_json(self) -> str:
        """One line of JSON."""
        return wire.dump(
            {
                "id": self.id,
                "queue": self.queue,
                "arguments": list(self.arguments),
                "time_limit_s": self.time_limit_s,
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Request:
        """Read what `to_json` wrote; InvalidValue on anything else."""
        fields = wire.take(
            wire.load(text, "the request"),
            "the request",
            {"id": str, "queue": str, "arguments": list, "time_limit_s": (int, float)},
        )
        if "id" not in fields or "queue" not in fields:
            raise InvalidValue("the request lacks its id or its queue")
        return cls(**{**fields, "arguments": tuple(fields.get("arguments", ()))})


def effective_limit(worker_s: float, request_s: float) -> float:
    """The smaller of the non-zero limits in seconds; 0 when there is none."""
    limits = [limit for limit in (worker_s, request_s) if limit > 0]
    return min(limits, default=0.0)
