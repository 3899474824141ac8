"""A record: request, reply and the client's clock, immutable. Reports are derived from records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue
from scaletest.model.reply import Outcome, Reply


@dataclass(frozen=True, slots=True)
class Record:
    """One finished request as its client saw it.

    step: the number of workers of the step in which it ran.
    total_s: monotonic seconds at the client, from submission until the reply was parsed.
    repeat: which measurement of that step it belongs to, counted from 0.
    per_device: how many workers shared each device; 0 where no slots were leased.
    """

    queue: str
    step: int
    reply: Reply
    total_s: float
    repeat: int = 0
    per_device: int = 0

    def __post_init__(self) -> None:
        checks.queue_name(self.queue)
        checks.count(self.step, "step")
        checks.count(self.repeat, "repeat")
        checks.count(self.per_device, "per_device")
        checks.seconds(self.total_s, "total_s", maximum=1e12)

    @property
    def overhead_s(self) -> float:
        """Time that the tester itself added: total - wait - run.

        Never below 0, though two clocks may disagree by microseconds.
        """
        return max(0.0, self.total_s - self.reply.wait_s - self.reply.run_s)

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return self.reply.outcome is Outcome.SUCCEEDED

    def to_json(self) -> str:
        """One flat line of JSON, schema version 1."""
        fields: dict[str, Any] = {"queue": self.queue, "step": self.step, "repeat": self.repeat}
        if self.per_device:
            fields["per_device"] = self.per_device
        fields.update(self.reply.to_dict())
        fields["total_s"] = self.total_s
        fields["overhead_s"] = self.overhead_s
        fields["schema_version"] = wire.SCHEMA_VERSION
        return wire.dump(fields)

    @classmethod
    def from_json(cls, text: str | bytes) -> Record:
        """Read what `to_json` wrote; InvalidValue on anything else."""
        data = wire.load(text, "the record")
        known: dict[str, type | tuple[type, ...]] = dict.fromkeys(
            ("step", "repeat", "per_device"), int
        )
        own = wire.take(data, "the record", {**known, "queue": str, "total_s": (int, float)})
        missing = {"queue", "step", "total_s"} - own.keys()
        if missing:
            raise InvalidValue(f"the record lacks {', '.join(sorted(missing))}")
        place = own.get("repeat", 0), own.get("per_device", 0)
        return cls(own["queue"], own["step"], Reply.from_dict(data), float(own["total_s"]), *place)
