"""Attempts to send a request, as the load generator saw them.

Everything in a saturation's report is derived from them. Their times are seconds since the step
began, on the tester's monotonic clock. All agents begin a step together, so their times are
comparable.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta, structs

from scaletest.model import checks, wire
from scaletest.model.document import Document, read_document

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
INCOMPLETE = "incomplete"  # a stream that ended before its last event
# Tokens came out of a buffer that took less than this part of the latency, and this time for each.
BUFFERED_PART, BUFFERED_S = 0.05, 0.001
_TIMES = ("due_s", "noticed_s", "sent_s", "ended_s")
_STREAM = ("first_s", "tokens", "prompt_tokens", "counts_chunks")

# Times that dates can tell, and numbers of 64 bits.
_MOST_S, _MOST = 1e11, 2**63 - 1
_StepSeconds = Annotated[float, Meta(ge=-_MOST_S, le=_MOST_S)]
_StoredCount = Annotated[int, Meta(ge=-_MOST, le=_MOST)]


@dataclass(frozen=True, slots=True)
class PodTroubles(Document):
    """How the pods of the Deployment behind the service fared during a step."""

    document_name = "the troubles of pods"

    unready: Annotated[
        tuple[str, ...],
        "names of pods that were ready before the step and did not stay so: a readiness probe "
        "failed too often, or the pod ended.",
    ] = ()
    restarts: Annotated[int, Meta(ge=0), "of their containers."] = 0
    events: Annotated[
        tuple[str, ...], "warnings about them, each with its reason, message and number."
    ] = ()


class Attempt(msgspec.Struct, frozen=True):
    """One request. Nothing is sent twice: a failure is what the run looks for."""

    request: _StoredCount  # its number in the step
    due_s: _StepSeconds  # when it should have started
    noticed_s: _StepSeconds  # when the tester saw that it was due
    sent_s: _StepSeconds  # when it was sent; it waits while the maximum is in flight
    ended_s: _StepSeconds  # when the answer was read
    outcome: str  # ok, an HTTP status that is not a success, or a constant of this module
    size: _StoredCount = 0  # bytes of the answer
    # the service's own measurement, None without one
    server_s: Annotated[float, Meta(ge=0, le=_MOST_S, extra={"unit": "s"})] | None = None
    pod: str = ""  # the pod or worker that served a queue's request
    agent: str = ""  # which agent sent it
    payload: _StoredCount = 0  # bytes of the body that was sent, or of a queue's arguments
    first_s: _StepSeconds | None = None  # when a stream's first token came
    tokens: _StoredCount = 0  # of the answer
    prompt_tokens: _StoredCount = 0  # of the request, by the service; 0: not told
    counts_chunks: bool = False  # whether `tokens` are chunks, as the service counts no tokens

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.outcome == OK

    @property
    def latency_s(self) -> float:
        """Seconds from the intended start of the request to the end of this attempt."""
        return self.ended_s - self.due_s

    @property
    def per_token_s(self) -> float | None:
        """Seconds for each further token of a stream; None without one, or where a buffer held it.

        A proxy that buffers, or a server that sends when it is done, lets all tokens come at once.
        """
        if self.first_s is None or self.tokens < 2:
            return None
        streamed_s = self.ended_s - self.first_s
        per_token_s = streamed_s / (self.tokens - 1)
        came_at_once = streamed_s < BUFFERED_PART * (self.ended_s - self.sent_s)
        return None if came_at_once and per_token_s < BUFFERED_S else per_token_s

    @property
    def lag_s(self) -> float:
        """Seconds from the intended start until the tester noticed it."""
        return self.noticed_s - self.due_s


def round_times(attempt: Attempt) -> Attempt:
    """Return the attempt with times rounded to microseconds, as it is stored."""
    rounded = {name: round(getattr(attempt, name), 6) for name in _TIMES}
    if attempt.first_s is not None:
        rounded["first_s"] = round(attempt.first_s, 6)
    return structs.replace(attempt, **rounded)


def to_json(attempt: Attempt, step: int) -> str:
    """Return one line of JSON, schema version 1."""
    fields: dict[str, Any] = {"step": step, **structs.asdict(round_times(attempt))}
    if attempt.server_s is None:
        del fields["server_s"]
    if attempt.first_s is None:
        for name in _STREAM:
            del fields[name]
    return wire.dump({**fields, "schema_version": wire.SCHEMA_VERSION})


def from_json(text: str | bytes) -> tuple[int, Attempt]:
    """Return step and attempt that `to_json` wrote; InvalidValue on anything else."""
    fields = wire.load(text, "the record")
    return (
        checks.count(fields.get("step", ""), "the step of the record", maximum=_MOST),
        read_document(Attempt, fields, "the record"),
    )
