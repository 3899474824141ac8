"""A reply: what became of a request. One outcome, decided once, by the process that finished the request."""

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
    """How a request ended. Books: submitted = waiting + running + these five."""

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
    """What comes back for a request.

    wait_s: started - enqueued, both on the Redis clock.
    run_s: monotonic seconds around the workload in the worker, process and device start included.
    enqueued_s, started_s, ended_s: Redis server time, seconds since the epoch.
    timeout_s: seconds after which the workload was stopped; 0 unless timed out.
    exit_code: of the program; None when none ran to its end; -N for death by signal N.
    device_info: what tells the device from others: pci, vendor, model, slot, as far as the system says.
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
        for name, value in self.figures.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise InvalidValue(f"figure {name!r} is {value}, which is no number")

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return self.outcome is Outcome.SUCCEEDED

    def to_dict(self) -> dict[str, Any]:
        """Plain values; empty ones are left out, since most replies are short and there are many."""
        row = {item.name: getattr(self, item.name) for item in fields(self)}
        row["activity"] = self.activity.to_dict() if self.activity else None
        return {name: value for name, value in row.items() if value not in ("", 0, None, {}) or name in ALWAYS}

    def to_json(self) -> str:
        """One line of JSON."""
        return wire.dump(self.to_dict())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Reply:
        """Read what `to_dict` wrote; InvalidValue on anything else, but for the activity, which is None then."""
        row = wire.take(data, "the reply", _TYPES)
        try:
            row["outcome"] = Outcome(row["outcome"])
            row["reason"] = Reason(row.get("reason", ""))
            row["activity"] = _activity(data.get("activity"))
            return cls(**row)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidValue(f"the reply cannot be read: {error}") from error

    @classmethod
    def from_json(cls, text: str | bytes) -> Reply:
        """Read what `to_json` wrote; InvalidValue on anything else."""
        return cls.from_dict(wire.load(text, "the reply"))


def _activity(data: Any) -> Activity | None:
    """None when it cannot be read: a request's result counts without where its time went."""
    try:
        return None if data is None else Activity.from_dict(data)
    except InvalidValue:
        return None


def unreadable(request_id: str, why: str) -> Reply:
    """The reply to a request that was answered with something that this version cannot read."""
    error = f"the reply of its worker cannot be read: {why}; give workers and clients the same version of scaletest"
    return Reply(request_id, Outcome.FAILED, Reason.LOST, error=checks.cut(error))


# Fields that stand in a reply even when they are empty.
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
