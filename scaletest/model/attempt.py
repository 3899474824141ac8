"""A sample: one attempt of one request of a load test, as the tester saw it. Everything reported is derived from them.

Times are seconds since the step began, on the tester's monotonic clock; agents begin together, so theirs add up.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from scaletest.model import wire
from scaletest.model.errors import InvalidValue

OK = "ok"
REFUSED, RESET, TIMED_OUT, DNS, TLS, PROTOCOL = "refused", "reset", "timed out", "name unknown", "TLS", "no HTTP"
UNSENT = "not sent"


class Attempt(NamedTuple):
    """request: its number in the step. attempt: from 1. final: no other attempt follows.

    due_s: when the request should have started, of every attempt the same. noticed_s: when the tester saw that, and
    sent_s: when the attempt began, later than that only while as many as allowed were in flight. ended_s: answer read.
    outcome: ok, an HTTP status that is no success, or a word of this module. size: bytes of the answer.
    server_s: what the service says it took, None when it does not. pod: who it says it is. agent: who sent it.
    payload: bytes of the body that was sent; of a request of a queue those of its arguments.
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
        """From the intended start to the end of this attempt."""
        return self.ended_s - self.due_s

    @property
    def lag_s(self) -> float:
        """How late the tester itself was."""
        return self.noticed_s - self.due_s


def rounded(sample: Attempt) -> Attempt:
    """As it is stored: microseconds are enough."""
    return sample._replace(**{name: round(getattr(sample, name), 6) for name in _TIMES})


def to_json(sample: Attempt, step: int) -> str:
    """One line, schema version 1."""
    row: dict[str, Any] = {"step": step, **rounded(sample)._asdict()}
    if sample.server_s is None:
        del row["server_s"]
    return wire.dump({**row, "schema_version": wire.SCHEMA_VERSION})


def from_json(text: str | bytes) -> tuple[int, Attempt]:
    """Step and sample that `to_json` wrote; InvalidValue on anything else."""
    row = wire.take(wire.load(text, "the record"), "the record", _TYPES)
    try:
        step = row.pop("step")
        sample = Attempt(**row)
    except (KeyError, TypeError) as error:
        raise InvalidValue(f"the record cannot be read: {error}") from error
    times = [getattr(sample, name) for name in _TIMES]
    if step < 0 or not all(map(math.isfinite, times)) or (sample.server_s is not None and not sample.server_s >= 0):
        raise InvalidValue("the record holds a time that is none")
    return step, sample


_TIMES = ("due_s", "noticed_s", "sent_s", "ended_s")
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("step", "request", "attempt", "size", "payload"), int),
    **dict.fromkeys((*_TIMES, "server_s"), (int, float)),
    **dict.fromkeys(("outcome", "pod", "agent"), str),
    "final": bool,
}
