"""A reply: how a request ended. The process that finished the request decides its outcome once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from scaletest.model import checks, wire
from scaletest.model.activity import Activity
from scaletest.model.errors import InvalidValue

Figures = dict[str, float | int | str]


class Outcome(StrEnum):
    """How a request ended. submitted = waiting + running + these five outcomes."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CLIENT_GONE = "client_gone"
    PURGED = "purged"


class Reason(StrEnum):
    """Why a request failed; NONE for every other outcome."""

    NONE = ""
    EXIT = "exit"
    SIGNAL = "signal"
    NO_BINARY = "no_binary"
    NO_DEVICE = "no_device"
    LOST = "lost"
    POISON = "poison"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request.

    wait_s: started - enqueued, both on the Redis clock.
    run_s: monotonic seconds around the workload in the worker, process and device start included.
    enqueued_s, started_s, ended_s: Redis server time, seconds since the epoch.
    timeout_s: seconds after which the workload was stopped; 0 unless it timed out.
    exit_code: of the program; None when no program ran to its end; -N when signal N ended it.
    device_info: identifies the device: pci, vendor, model, slot, as far as the system knows them.
    figures: the workload's own results, such as frames and fps.
    activity: where its processes spent the time; None where nothing was sampled.
    """

    id: str
    outcome: Outcome
    reason: Reason = Reason.NONE
    exit_code: int | None = None
    error: str = ""
    wait_s: float = 0.0
    run_s: float = 0.0
    timeout_s: float = 0.0
    attempts: int = 1
    worker: str = ""
    node: str = ""
    pod: str = ""
    device: str = ""
    enqueued_s: float = 0.0
    started_s: float = 0.0
    ended_s: float = 0.0
    device_info: dict[str, str] = field(default_factory=dict)
    figures: Figures = field(default_factory=dict)
    activity: Activity | None = None

    def __post_init__(self) -> None:
        checks.request_id(self.id)
        for name in _SECONDS:
            checks.seconds(getattr(self, name), name, maximum=1e12)
        checks.count(self.attempts, "attempts", minimum=0)
        for name, figure in self.figures.items():
            if isinstance(figure, float) and not math.isfinite(figure):
                raise InvalidValue(f"figure {name!r} is {figure}, which is not a number")

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return self.outcome is Outcome.SUCCEEDED

    def to_dict(self) -> dict[str, Any]:
        """Plain values; empty fields are left out, because there are many replies."""
        contents = {field.name: getattr(self, field.name) for field in fields(self)}
        contents["activity"] = self.activity.to_dict() if self.activity else None
        return {
            name: value
            for name, value in contents.items()
            if value not in ("", 0, None, {}) or name in ALWAYS
        }

    def to_json(self) -> str:
        """One line of JSON."""
        return wire.dump(self.to_dict())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Reply:
        """Read what `to_dict` wrote; InvalidValue on anything else.

        An activity that cannot be read is None: the outcome counts without it.
        """
        fields = wire.take(data, "the reply", _TYPES)
        try:
            fields["outcome"] = Outcome(fields["outcome"])
            fields["reason"] = Reason(fields.get("reason", ""))
            fields["activity"] = _activity(data.get("activity"))
            return cls(**fields)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidValue(f"the reply cannot be read: {error}") from error

    @classmethod
    def from_json(cls, text: str | bytes) -> Reply:
        """Read what `to_json` wrote; InvalidValue on anything else."""
        return cls.from_dict(wire.load(text, "the reply"))


def _activity(data: Any) -> Activity | None:
    if data is None:
        return None
    try:
        return Activity.from_dict(data)
    except InvalidValue:
        return None


def unreadable(request_id: str, why: str) -> Reply:
    """A failed reply in place of one that this version of scaletest cannot read."""
    error = (
        f"the reply of its worker cannot be read: {why}; give workers and clients the same version"
        " of scaletest"
    )
    return Reply(request_id, Outcome.FAILED, Reason.LOST, error=checks.cut(error))


# Fields that are written even when they are empty.
ALWAYS = {"id", "outcome", "exit_code", "wait_s", "run_s", "attempts"}
_SECONDS = ("wait_s", "run_s", "timeout_s", "enqueued_s", "started_s", "ended_s")
_TEXTS = ("id", "outcome", "reason", "error", "worker", "node", "pod", "device")
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(_SECONDS, (int, float)),
    "exit_code": (int, type(None)),
    "attempts": int,
    "device_info": dict,
    "figures": dict,
}
