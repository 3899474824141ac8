"""A request, its reply, and the record of both with the client's clock. All are immutable."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Self

from msgspec import Meta

from scaletest.model import checks
from scaletest.model.activity import Activity
from scaletest.model.declared import INNER, VERSIONED, Count, QueueName, RequestId, flat
from scaletest.model.document import Document, check_fields, read_document
from scaletest.model.errors import InvalidValue

Figures = dict[str, float | int | str]
# Seconds of a clock, or since the epoch.
ClockSeconds = Annotated[float, Meta(ge=0, le=1e12, extra={"unit": "s"})]
_ALWAYS = frozenset({"id", "outcome", "exit_code", "wait_s", "run_s", "attempts"})


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a request runs, and when again after it failed."""

    delay_s: float = 0.0
    retries: int = 0  # attempts after the first one
    # seconds before each of them, as those of RQ's Retry: the first counts also for those before
    intervals_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        checks.seconds(self.delay_s, "delay")
        checks.count(self.retries, "retries")
        for interval_s in self.intervals_s:
            checks.seconds(interval_s, "an interval of the retries")


AT_ONCE = Schedule()


@dataclass(frozen=True, slots=True)
class Request:
    """One unit of work that a client enqueues; it never changes."""

    id: str  # unique, and valid as an RQ job id
    queue: str
    arguments: tuple[str, ...] = ()  # added to the workload's own, by default at most 4 KiB in all
    time_limit_s: float = 0.0  # that the workload may run; 0 where the request sets no limit
    schedule: Schedule = AT_ONCE

    def __post_init__(self) -> None:
        checks.request_id(self.id)
        checks.queue_name(self.queue)
        object.__setattr__(self, "arguments", checks.arguments(self.arguments))
        object.__setattr__(self, "time_limit_s", checks.seconds(self.time_limit_s, "time limit"))


def effective_limit(worker_s: float, request_s: float) -> float:
    """Return the smaller of the limits in seconds that are not 0; 0 when there is none."""
    return min((limit for limit in (worker_s, request_s) if limit > 0), default=0.0)


class Outcome(StrEnum):
    """How a request ended: a text, which can be compared with "succeeded" and so on.

    SUCCEEDED: the workload ran to its end.
    FAILED: it did not; `reason` and `error` of the reply say why.
    TIMED_OUT: it ran longer than its time limit.
    CLIENT_GONE: its client was gone before it began, so it was dropped.
    PURGED: a user dropped what waited in the queue.

    submitted = waiting + running + these five outcomes.

    Example:
        if reply.outcome is scaletest.Outcome.TIMED_OUT:
            print(f"stopped after {reply.timeout_s} s")

    Raises: nothing
    """

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
class Reply(Document):
    """The answer to a request: how it ended, when, where, and what its workload measured.

    Example:
        reply = client.run("media", "in.mp4")
        print(reply.outcome, reply.run_s, reply.figures.get("fps"))

    Raises:
        InvalidValue: a field is made with a value that breaks its rule.
    """

    document_name = "the reply"
    always = _ALWAYS

    id: Annotated[RequestId, "of the request; with RQ the id of its job."]
    outcome: Annotated[Outcome, "how the request ended."]
    reason: Annotated[Reason, "why it failed; empty for every other outcome."] = Reason.NONE
    exit_code: Annotated[
        int | None,
        "of the program; None when no program ran to its end; -N when signal N ended it.",
    ] = None
    error: Annotated[str, "what went wrong, with the end of the program's output."] = ""
    wait_s: Annotated[ClockSeconds, "started - enqueued, both on the Redis clock."] = 0.0
    run_s: Annotated[
        ClockSeconds,
        "monotonic seconds around the workload in the worker, process and device start included.",
    ] = 0.0
    timeout_s: Annotated[
        ClockSeconds, "seconds after which the workload was stopped; 0 unless it timed out."
    ] = 0.0
    attempts: Annotated[
        Count, "how often it was started: more than once when workers died, or when it was retried."
    ] = 1
    worker: Annotated[str, "the worker that ended it."] = ""
    node: Annotated[str, "the node of that worker."] = ""
    pod: Annotated[str, "the pod of that worker; empty outside of Kubernetes."] = ""
    device: Annotated[str, "the device of that worker; empty without one."] = ""
    enqueued_s: Annotated[ClockSeconds, "Redis server time, seconds since the epoch."] = 0.0
    started_s: Annotated[ClockSeconds, "Redis server time, seconds since the epoch."] = 0.0
    ended_s: Annotated[ClockSeconds, "Redis server time, seconds since the epoch."] = 0.0
    device_info: Annotated[
        dict[str, str],
        "identifies the device: pci, vendor, model, slot, as far as the system knows them.",
    ] = field(default_factory=dict)
    figures: Annotated[Figures, "the workload's own results, such as frames and fps."] = field(
        default_factory=dict
    )
    value: Annotated[
        Any,
        INNER,
        "what a workload in Python returned, as JSON has it, where it is more than figures.",
    ] = None
    activity: Annotated[
        Activity | None, "where its processes spent the time; None where nothing was sampled."
    ] = None
    arguments: Annotated[
        tuple[str, ...],
        INNER,
        "of its request, as text; only the client that submitted the request has them.",
    ] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        for name, figure in self.figures.items():
            if isinstance(figure, float) and not math.isfinite(figure):
                raise InvalidValue(f"figure {name!r} is {figure}, which is not a number")

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return self.outcome is Outcome.SUCCEEDED

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what `to_dict` wrote; InvalidValue on anything else.

        An activity that cannot be read is None: the outcome counts without it.
        """
        if isinstance(data, Mapping) and data.get("activity") is not None:
            try:
                activity = Activity.from_dict(data["activity"])
            except InvalidValue:
                activity = None
            data = {**data, "activity": activity}
        return read_document(cls, data, cls.document_name)


def unreadable_reply(request_id: str, why: str) -> Reply:
    """Return a failed reply in place of one that this version of scaletest cannot read."""
    error = (
        f"the reply of its worker cannot be read: {why}; give workers and clients the same version"
        " of scaletest"
    )
    return Reply(request_id, Outcome.FAILED, Reason.LOST, error=checks.cut_text(error))


@dataclass(frozen=True, slots=True)
class Record(Document):
    """One finished request as its client saw it.

    Example:
        slowest = max(records, key=lambda record: record.total_s)
        print(slowest.reply.id, slowest.total_s, slowest.reply.node)

    Raises:
        InvalidValue: a field is made with a value that breaks its rule.
    """

    document_name = "the record"
    constants = VERSIONED
    always = _ALWAYS | {"queue", "step", "repeat", "total_s", "overhead_s"}

    queue: Annotated[QueueName, "where the request waited."]
    step: Annotated[Count, "the number of workers of the step in which it ran."]
    reply: Annotated[Reply, flat(), "how the request ended."]
    total_s: Annotated[
        ClockSeconds, "monotonic seconds at the client, from submission until the reply was parsed."
    ]
    repeat: Annotated[Count, "which measurement of that step it belongs to, counted from 0."] = 0
    per_device: Annotated[
        Count, "how many workers shared each device; 0 where no slots were leased."
    ] = 0

    @property
    def overhead_s(
        self,
    ) -> Annotated[float, "time that scaletest itself added: total - wait - run"]:
        """Time that the tester itself added: total - wait - run.

        Never below 0, though two clocks may disagree by microseconds.
        """
        return max(0.0, self.total_s - self.reply.wait_s - self.reply.run_s)

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return self.reply.outcome is Outcome.SUCCEEDED

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what `to_dict` wrote; InvalidValue on anything else."""
        return read_document(cls, {**data, "reply": Reply.from_dict(data)}, cls.document_name)
