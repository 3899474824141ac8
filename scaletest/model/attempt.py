"""Attempts: each time that a request of a load test was sent, as the tester saw it.

Everything in a report is derived from them. Times are seconds since the step began, on the tester's
monotonic clock; all agents begin a step together, so their times are comparable.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from scaletest.model import wire
from scaletest.model.errors import InvalidValue

OK = "ok"
REFUSED, RESET, TIMED_OUT, DNS, TLS, PROTOCOL = (
    "refused",
    "reset",
    "timed out",
    "name unknown",
    "TLS",
    "no HTTP",
)
UNSENT = "not sent"


class Attempt(NamedTuple):
    """One attempt of one request.

    request: its number in the step. attempt: from 1. final: no other attempt follows.
    due_s: when the request should have started, the same for all its attempts. noticed_s: when the
    tester saw that it was due. sent_s: when the attempt began; it waits while the maximum is in
    flight. ended_s: when the answer was read. outcome: ok, an HTTP status that is not a success, or
    a constant of this module. size: bytes of the answer. server_s: the service's own measurement,
    None without one. pod: as the service names it. agent: which agent sent it.
    payload: bytes of the body that was sent; for a queue, bytes of the request's arguments.
    """

    request: int
    attempt: int
    final: bool
    due_s: float
    noticed_s: float
    sent_s: float
    ended_s: float
    outcome: str
    size: int = 0
    server_s: float | None = None
    pod: str = ""
    agent: str = ""
    payload: int = 0

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.outcome == OK

    @property
    def latency_s(self) -> float:
        """Seconds from the intended start of the request to the end of this attempt."""
        return self.ended_s - self.due_s

    @property
    def lag_s(self) -> float:
        """Seconds from the intended start until the tester noticed it."""
        return self.noticed_s - self.due_s


def rounded(attempt: Attempt) -> Attempt:
    """The attempt with times rounded to microseconds, as it is stored."""
    return attempt._replace(**{name: round(getattr(attempt, name), 6) for name in _TIMES})


def to_json(attempt: Attempt, step: int) -> str:
    """One line of JSON, schema version 1."""
    fields: dict[str, Any] = {"step": step, **rounded(attempt)._asdict()}
    if attempt.server_s is None:
        del fields["server_s"]
    return wire.dump({**fields, "schema_version": wire.SCHEMA_VERSION})


def from_json(text: str | bytes) -> tuple[int, Attempt]:
    """Step and attempt that `to_json` wrote; InvalidValue on anything else."""
    fields = wire.take(wire.load(text, "the record"), "the record", _TYPES)
    try:
        step = fields.pop("step")
        attempt = Attempt(**fields)
    except (KeyError, TypeError) as error:
        raise InvalidValue(f"the record cannot be read: {error}") from error
    times = [getattr(attempt, name) for name in _TIMES]
    is_negative = attempt.server_s is not None and not attempt.server_s >= 0
    if step < 0 or is_negative or not all(map(math.isfinite, times)):
        raise InvalidValue("the record contains an invalid time")
    return step, attempt


_TIMES = ("due_s", "noticed_s", "sent_s", "ended_s")
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("step", "request", "attempt", "size", "payload"), int),
    **dict.fromkeys((*_TIMES, "server_s"), (int, float)),
    **dict.fromkeys(("outcome", "pod", "agent"), str),
    "final": bool,
}
