"""The plan of a validation of a service."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from scaletest.model.declared import VERSIONED, Positive
from scaletest.model.errors import InvalidValue
from scaletest.model.threshold import Measurable, Threshold, parse_threshold
from scaletest.validation.imported.plan import ImportedPlan
from scaletest.validation.plan import Plan

KIND = "service"
LATENCIES = {
    f"{prefix}p{percent}": Measurable("s")
    for prefix in ("", "ttft.", "tpot.")
    for percent in (50, 95, 99)
}
MOST_IN_FLIGHT = 20_000
# Of one replica, where the number is found.
MOST_FOUND = 1024
USUAL_STEP_S = 10.0


@dataclass(frozen=True, slots=True)
class ServicePlan(ImportedPlan):
    """What is loaded, how, and what is wanted of it."""

    constants: ClassVar = {**VERSIONED, "kind": KIND}
    intervals: ClassVar = "from window to window"

    in_flight: Annotated[
        Positive | None, "requests kept in flight for each replica; null: found with one replica"
    ] = None
    step_s: Annotated[
        float, Meta(gt=0, le=86400), "measured of each step and way, after the warm-up"
    ] = USUAL_STEP_S
    warm_limit_s: Annotated[
        float, Meta(gt=0, le=86400), "a service that is not warm by then counts as cold"
    ] = 120.0
    repeats: Annotated[int, Meta(ge=1, le=100), "ascending passes, and descending passes"] = 1
    timeout_s: Annotated[float, Meta(gt=0, le=86400)] = 30.0
    latency_limit: Annotated[str, 'of a percentile at every step, as "p95<2s", or ""'] = ""

    def __post_init__(self) -> None:
        ImportedPlan.__post_init__(self)
        if (self.in_flight or 1) * self.steps[-1] > MOST_IN_FLIGHT:
            raise InvalidValue(
                f"{self.in_flight} requests in flight for {self.steps[-1]} replicas exceed"
                f" {MOST_IN_FLIGHT}",
                hint="give a smaller <in_flight> or <limit>",
            )
        if self.latency_limit:
            read_latency_limit(self.latency_limit)

    @property
    def most_in_flight(self) -> int:
        """The most that one replica may get."""
        return self.in_flight or min(MOST_FOUND, MOST_IN_FLIGHT // self.steps[-1])

    @property
    def turns(self) -> list[tuple[int, int]]:
        """The steps in the order of the run: up and down, each with the number of its way."""
        ways = []
        for repeat in range(2 * self.repeats):
            counts = reversed(self.steps) if repeat % 2 else self.steps
            ways += [(count, repeat) for count in counts]
        return ways

    @property
    def doublings(self) -> Plan:
        """The same doublings as a plan of workers, by which their ratios are judged."""
        return Plan(limit=self.steps[-1], scale=max(1.0, self.scale), repeats=self.repeats)


def read_latency_limit(text: str) -> Threshold:
    """Parse a limit such as p95<2s; InvalidValue for anything else."""
    limit = parse_threshold(text, LATENCIES, "'p95<2s' or 'ttft.p95<500ms'")
    if not limit.operator.startswith("<"):
        raise InvalidValue(
            f"the latency limit is {text[:40]!r}", hint="write an upper bound, e.g. p95<2s"
        )
    return limit
