"""The plan of a search for saturation, and a step of it that was measured."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta

from scaletest.model.attempt import PodTroubles
from scaletest.model.declared import VERSIONED, Fraction, choice
from scaletest.model.document import Document, check_fields
from scaletest.model.errors import InvalidValue
from scaletest.model.measurement import MachineUse
from scaletest.model.threshold import Measurable, parse_upper_bound

KIND = "saturation"
MOST_RATE = 100_000.0
MOST_PARALLEL = 20_000
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_RATE = Annotated[float, Meta(ge=0, le=MOST_RATE)]
_DAY = Annotated[float, Meta(ge=0, le=86400, extra={"unit": "s"})]
_SOME_OF_DAY = Annotated[float, Meta(gt=0, le=86400, extra={"unit": "s"})]
_FIGURE = Annotated[float, Meta(ge=0, le=1e12, extra={"unit": "s"})]
_LATENCIES = dict.fromkeys(QUANTILES, Measurable("s"))


class LoadKind(StrEnum):
    """How requests are sent."""

    OPEN = "open"  # they start when they are due
    CLOSED = "closed"  # a number of them is kept in flight


class Phase(StrEnum):
    """Why a step is measured."""

    WARM = "warm"
    RAMP = "ramp"
    BISECT = "bisect"
    CONFIRM = "confirm"
    OPERATE = "operate"


@dataclass(frozen=True, slots=True)
class SaturationPlan(Document):
    """Levels are requests a second for open load, requests in flight for closed load."""

    document_name = "the plan"
    constants: ClassVar = {**VERSIONED, "kind": KIND}
    # levels are chosen while the search runs
    steps: ClassVar[tuple[int, ...]] = ()

    target: Annotated[str, "the service or queue, as people name it, without secrets."]
    load: Annotated[str, choice(LoadKind, "load")] = LoadKind.OPEN
    start: Annotated[_RATE, "first level, 0: found by the warm-up probe."] = 0.0
    maximum: Annotated[_RATE, "highest level, 0: no limit."] = 0.0
    precision: Annotated[
        Fraction, "the search ends when the bracket's ends differ by less than this part."
    ] = 0.02
    step_s: Annotated[
        _SOME_OF_DAY,
        Meta(title="step time"),
        "seconds of a step, and of the single-thread probe before.",
    ] = 10.0
    warm_s: Annotated[_DAY, "seconds of a step, and of the single-thread probe before."] = 2.0
    count: Annotated[
        int, Meta(ge=0, le=10000000), "requests of a step, 0: the step ends by time."
    ] = 0
    success: Annotated[Fraction, "part of the requests that must succeed."] = 0.99
    limit: Annotated[str, 'of a percentile, as "p95<200ms", or "".'] = ""
    wanted: Annotated[
        _RATE, "the saturation point that is required, in requests per second, 0: none."
    ] = 0.0
    timeout_s: Annotated[_SOME_OF_DAY, Meta(title="time-out")] = 30.0
    max_in_flight: Annotated[int, Meta(ge=1, le=MOST_PARALLEL, title="max in flight")] = 1000
    agents: Annotated[int, Meta(ge=1, le=1000)] = 1

    def __post_init__(self) -> None:
        check_fields(self)
        if self.maximum and self.start > self.maximum:
            raise InvalidValue(
                f"the first level, {self.start:g}, is above the maximum, {self.maximum:g}",
                hint="give a lower <start>",
            )
        if self.limit:
            latency_limit(self.limit)

    @property
    def open(self) -> bool:
        """Whether it is open load."""
        return self.load == LoadKind.OPEN

    @property
    def highest(self) -> float:
        """The highest level that is tried."""
        return self.maximum or (MOST_RATE if self.open else float(self.max_in_flight))

    @property
    def unit(self) -> str:
        """Unit of a level."""
        return "requests/s" if self.open else "in flight"

    @property
    def workload(self) -> str:
        """Description of the run, in one line."""
        return f"{self.load} load on {self.target}"


def latency_limit(text: str) -> tuple[str, float]:
    """Parse percentile and seconds of "p95<200ms"; InvalidValue on anything else."""
    limit = parse_upper_bound(text, _LATENCIES, "'p95<200ms'")
    return limit.measure, limit.bound


@dataclass(frozen=True, slots=True)
class SaturationStep(Document):
    """One step that was measured."""

    # A step is stored beside its attempts, requests sent once, as the tester saw them. All in a
    # report is derived from these. Their times are seconds since the step began, on the tester's
    # monotonic clock; all agents begin a step together, so their times are comparable.

    document_name = "the step"
    constants = VERSIONED

    number: Annotated[int, "from 0."]
    phase: Annotated[str, choice(Phase, "phase")]
    load: Annotated[str, choice(LoadKind, "load"), "open or closed."]
    level: Annotated[_FIGURE, "in the load's unit."]
    seconds: Annotated[
        _FIGURE,
        "from its beginning until no request was due any more; requests that ended later "
        "count too.",
    ]
    requests: int
    warmup_s: Annotated[_FIGURE, "the beginning that does not count."] = 0.0
    cpu: Annotated[_FIGURE, "cores that each load generator process used, at most."] = 0.0
    beat_s: Annotated[_FIGURE, "how late the load generator's timers fired, 99th percentile."] = 0.0
    began: Annotated[str, "when, ISO 8601 in UTC."] = ""
    around: Annotated[
        MachineUse | None,
        "use of the load generator's machine during the step; None when it was not read.",
    ] = None
    throttled_periods: Annotated[
        _FIGURE, "part of the periods in which the load generator's CPU limit was reached."
    ] = 0.0
    pods: Annotated[
        PodTroubles | None, "of the service's Deployment; None when they were not read."
    ] = None

    @property
    def key(self) -> int:
        """What tells it from other steps of its run."""
        return self.number
