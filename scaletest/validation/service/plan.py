"""The plan of a validation of a service."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from scaletest.model.declared import VERSIONED, Positive
from scaletest.model.threshold import Measurable, Threshold, parse_upper_bound
from scaletest.validation.imported.plan import ImportedPlan
from scaletest.validation.plan import Plan

KIND = "service"
# Those that a limit may bound, of requests, of first tokens and of further tokens.
LATENCIES = {
    f"{prefix}p{percent}": Measurable("s")
    for prefix in ("", "ttft.", "tpot.")
    for percent in (50, 95, 99)
}
# Where the number in flight for one replica is found, it is at most this.
MOST_IN_FLIGHT_FOUND = 1024
# Of all replicas together: a client has some 28,000 ports for one address.
MOST_IN_FLIGHT = 20_000
USUAL_STEP_S = 10.0


@dataclass(frozen=True, slots=True)
class ServicePlan(ImportedPlan):
    """What is loaded, how, and what is wanted of it."""

    constants: ClassVar = {**VERSIONED, "kind": KIND}
    intervals: ClassVar = "from window to window"
    latency_names: ClassVar = "ttft: time to the first token; tpot: for each further one."

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
        if self.latency_limit:
            read_latency_limit(self.latency_limit)

    @property
    def most_in_flight(self) -> int:
        """The most that one replica may get: of all, no more than there are local ports for."""
        found = min(MOST_IN_FLIGHT_FOUND, MOST_IN_FLIGHT // self.steps[-1])
        return self.in_flight or max(1, found)

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
    return parse_upper_bound(text, LATENCIES, "'p95<2s' or 'ttft.p95<500ms'")
