"""The plan of a validation, checked as a whole before it starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from scaletest.model import threshold
from scaletest.model.declared import (
    VERSIONED,
    Arguments,
    Count,
    Fraction,
    Positive,
    QueueName,
    Seconds,
    choice,
    named_in_files,
)
from scaletest.model.document import Document, check_fields
from scaletest.model.errors import InvalidValue
from scaletest.model.file_documents import read_members
from scaletest.model.presets import PRESETS
from scaletest.model.writing import document_members

MAX_WORKERS = 100_000


@dataclass(frozen=True, slots=True)
class Background(Document):
    """Constant load on another queue in all steps: `parallel` requests for `workers` workers."""

    document_name = "the background queue"

    name: QueueName
    workers: Annotated[int, Meta(ge=1, le=MAX_WORKERS, title="background workers")] = 1
    parallel: Annotated[Positive, Meta(title="background parallel")] = 1
    seconds: Annotated[
        Seconds,
        Meta(title="background seconds"),
        "expected run time of one request: the sleep length for sleep, an estimate for a command.",
    ] = 1.0
    command: Annotated[Arguments, "the workload's program and arguments; empty for sleep."] = ()
    device_glob: str = ""
    time_limit_s: Annotated[
        Seconds, Meta(title="background time limit"), named_in_files("time_limit")
    ] = 0.0

    @property
    def workload(self) -> str:
        """The command, or sleep with its seconds, as one text."""
        return _workload_text(self.command, self.seconds)


@dataclass(frozen=True, slots=True)
class Plan(Document):
    """What a validation does."""

    document_name = "the plan"
    constants = VERSIONED

    limit: Annotated[
        int,
        Meta(ge=1, le=MAX_WORKERS),
        "Measure with 1, 2, 4, ... and up to this many workers.",
    ] = 8
    scale: Annotated[
        float,
        Meta(ge=1, lt=2, extra={"hint": "give the ratio wanted, below 2.00, which is perfect"}),
        "Require that throughput grows by at least this factor with each doubling of the workers.",
    ] = 1.8
    seconds: Annotated[
        Seconds, "Expect one request to take this long; without a command it sleeps that long."
    ] = 1.0
    step_s: Annotated[
        Seconds,
        Meta(title="step time"),
        named_in_files("step_time"),
        "Measure every step for exactly this long, half of it on each way; 0 means as long as the "
        "verdict needs.",
    ] = 0.0
    precision: Annotated[
        Fraction,
        "End a step early when its throughput is known to within this fraction; 0.02 is 2 %.",
    ] = 0.02
    max_step_s: Annotated[
        Seconds,
        Meta(title="longest step"),
        named_in_files("max_step"),
        "Measure a step for at most this long; 0 means 60 s, or 30 requests if they take longer.",
    ] = 0.0
    warmup_s: Annotated[
        Seconds | None,
        Meta(title="warm-up"),
        named_in_files("warmup"),
        "Leave out this much time at the start of each step; it is found from the data unless "
        "given.",
    ] = None
    queue: Annotated[
        QueueName, named_in_files(""), "name of the queue, generated for every run."
    ] = "validate"
    command: Annotated[Arguments, "the workload's program and arguments; empty for sleep."] = ()
    device_glob: Annotated[
        str,
        "Let the workers use the devices whose files match this pattern: worker N takes the "
        "N-th, modulo their number, unless <per_device> is given.",
    ] = ""
    preset: Annotated[
        str,
        choice(("", *PRESETS), "preset"),
        "Let the workers use the devices of this vendor.",
    ] = ""
    per_device: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=MAX_WORKERS)], ...],
        Meta(title="workers per device"),
        "Run this many workers per device. Several numbers are "
        "compared, with all devices full, and the best is named.",
    ] = ()
    devices: Annotated[
        Count,
        named_in_files(""),
        "how many there are, counted when the run begins; 0 where they were not counted.",
    ] = 0
    time_limit_s: Annotated[
        Seconds,
        Meta(title="time limit"),
        named_in_files("time_limit"),
        "Stop a request that runs longer than this; 0 means no limit.",
    ] = 0.0
    tolerate_failures: Annotated[
        Count,
        Meta(title="tolerated failures"),
        "Let the run pass with at most this many failed requests.",
    ] = 0
    repeats: Annotated[
        int,
        Meta(ge=1, le=1000),
        "Measure every step in this many ascending passes and as many descending ones.",
    ] = 1
    price: Annotated[
        float,
        Meta(ge=0, le=1e9),
        "Tell what 1,000 requests cost when an hour of one worker costs this much.",
    ] = 0.0
    thresholds: Annotated[
        tuple[str, ...],
        "Require this condition for a PASS too, e.g. 'efficiency(8)>=0.8' or 'wait.p95<200ms'.",
    ] = ()
    background: Annotated[
        tuple[Background, ...],
        "load on other queues, present during every step and reported separately.",
    ] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        longest_s = self.step_s + self.seconds if self.step_s else self.longest_s
        if self.warmup_s is not None and self.warmup_s >= longest_s:
            raise InvalidValue(
                f"the warm-up of {self.warmup_s:g} s leaves nothing of a step of {longest_s:g} s",
                hint="give a shorter <warmup>, or a longer <max_step> or <step_time>",
            )
        # devices that workers share
        if self.per_device:
            if list(self.per_device) != sorted(set(self.per_device)):
                raise InvalidValue(
                    f"workers per device are {' '.join(map(str, self.per_device))}",
                    hint="give each number once, the smallest first, e.g. <per_device> 1,2,4",
                )
            if not self.device_glob and not self.preset:
                raise InvalidValue(
                    "there is no device to share", hint="add <device_glob> GLOB or <preset> NAME"
                )
            slots = self.per_device[-1] * self.devices
            if self.devices and not self.compares and self.limit > slots:
                devices = "1 device" if self.devices == 1 else f"{self.devices} devices"
                raise InvalidValue(
                    f"{self.limit} workers do not fit into {slots} slots of {devices}",
                    hint=f"give <limit> {slots}, or more workers with <per_device>",
                )
        # other queues, and what the run must meet besides
        if len({queue.name for queue in self.background}) < len(self.background):
            raise InvalidValue(
                "two background queues have the same name", hint="give each a name of its own"
            )
        for text in self.thresholds:
            measure = threshold.parse_step_threshold(text, self.steps).measure
            if measure == "ratio" and self.compares:
                raise InvalidValue(
                    "a run that compares numbers of workers per device has no ratio",
                    hint="leave the threshold out",
                )

    @property
    def compares(self) -> bool:
        """Whether the steps compare numbers of workers per device."""
        return len(self.per_device) > 1

    def share(self, workers: int) -> int:
        """Workers per device in the step with this many workers; 0 when no slots are leased."""
        if self.compares:
            return workers // max(1, self.devices)
        return self.per_device[0] if self.per_device else 0

    @property
    def steps(self) -> tuple[int, ...]:
        """Numbers of workers: 1, 2, 4, ... and the limit, also when it is not a power of two.

        In a run that compares numbers of workers per device: each number times the devices.
        """
        if self.compares:
            return tuple(count * max(1, self.devices) for count in self.per_device)
        counts = [1]
        while counts[-1] * 2 <= self.limit:
            counts.append(counts[-1] * 2)
        if counts[-1] != self.limit:
            counts.append(self.limit)
        return tuple(counts)

    @property
    def longest_s(self) -> float:
        """Seconds after which a step without a fixed length ends in any case."""
        return self.max_step_s or _usual_longest_s(self.seconds)

    @property
    def longest_part_s(self) -> float:
        """Seconds after which the first part of a step ends; longer steps have further parts.

        Each part has a warm-up of its own.
        """
        warmup_s = self.warmup_s or 0.0
        return (min(self.longest_s, _usual_longest_s(self.seconds) + warmup_s) + warmup_s) / 2

    @property
    def fixed_part_s(self) -> float:
        """Seconds of each of the two parts of a step of fixed length.

        Each part has a warm-up of its own, and begins with a request that does not count.
        """
        return (self.step_s + (self.warmup_s or 0.0)) / 2 + self.seconds

    @property
    def workload(self) -> str:
        """The command, or sleep with its seconds."""
        return _workload_text(self.command, self.seconds)


def _workload_text(command: Sequence[str], seconds: float) -> str:
    if command:
        return " ".join(command)
    return f"sleep {seconds:g}"


def _usual_longest_s(seconds: float) -> float:
    """Return the longest time of a step with requests of this length, unless the plan sets it."""
    return max(60.0, 30.0 * seconds)


# What a plan file may have, by its keys.
FILE_MEMBERS = {member.key: member for member in document_members(Plan) if member.key}


def of_options(values: Mapping[str, Any], queue: str) -> Plan:
    """Return the plan with these values of a file; InvalidValue names the one that is wrong.

    Others are as by default.
    """
    return Plan(**{**read_members(Plan, values, "the plan"), "queue": queue})
