"""The load of a simulation: when requests arrive, and how long they run.

Requests are drawn once, so that all rules get the same.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from scaletest.model.declared import PositiveSeconds, Seconds
from scaletest.model.document import Document
from scaletest.model.errors import InvalidValue
from scaletest.stats.chance import Chance

MOST_REQUESTS = 5_000_000
# What draws the next run time.
Runs = Callable[[], float]
PATTERNS = ("poisson", "steady", "wave", "steps", "burst")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Requests that are the same for all rules; at least one."""

    arrivals: tuple[float, ...]  # seconds from the start, ascending
    runs: tuple[float, ...]  # run time of each, in seconds

    def __post_init__(self) -> None:
        if not self.arrivals:
            raise InvalidValue(
                "the workload has no request", hint="give a higher rate or a longer duration"
            )

    @property
    def mean_run_s(self) -> float:
        """The mean run time."""
        return sum(self.runs) / len(self.runs)


def draw_run_times(chance: Chance, mean_s: float, variation: float) -> Runs:
    """Return what draws run times with this mean, log-normal, or constant without variation.

    variation: standard deviation over mean.
    """
    if variation <= 0:
        return lambda: mean_s
    sigma = math.sqrt(math.log(1 + variation**2))
    mu = math.log(mean_s) - sigma**2 / 2
    return lambda: chance.lognormvariate(mu, sigma)


def draw_arrivals(
    name: str, chance: Chance, runs: Runs, per_s: float, duration_s: float
) -> Arrivals:
    """Draw a workload with a mean of `per_s` requests a second, by a pattern.

    poisson: by chance. steady: evenly. wave: by chance, from none to twice the rate and back over
    the duration. steps: by chance, a quarter, twice and three quarters of the rate, a third of the
    time each. burst: four heaps.
    """
    # the highest rate, and the present one
    peak_per_s = 2 * per_s if name in ("wave", "steps") else per_s

    def rate_at(at_s: float) -> float:
        if name == "wave":
            return per_s * (1 - math.cos(at_s * (2 * math.pi / duration_s)))
        if name == "steps":
            return per_s * (0.25, 2.0, 0.75)[min(2, int(3 * at_s / duration_s))]
        return per_s

    for requests in (per_s * duration_s, peak_per_s * duration_s):
        if requests > MOST_REQUESTS:
            raise InvalidValue(
                f"the workload would have about {requests:.0f} requests",
                hint=f"at most {MOST_REQUESTS}: give a lower rate or a shorter duration",
            )
    count = max(1, round(per_s * duration_s))
    if name == "steady":
        arrivals = [index / per_s for index in range(count)]
    elif name == "burst":
        arrivals = [duration_s / 4 * (index * 4 // count) for index in range(count)]
    else:
        # thinning: draw at the highest rate, and keep each as likely as the present rate says
        arrivals = []
        at_s = chance.expovariate(peak_per_s)
        while at_s < duration_s:
            if chance.random() * peak_per_s < rate_at(at_s):
                arrivals.append(at_s)
            at_s += chance.expovariate(peak_per_s)
    return Arrivals(tuple(arrivals), tuple(runs() for _ in arrivals))


@dataclass(frozen=True, slots=True)
class SimulatedLoad(Document):
    """A load as options say it, and how pods come and go."""

    seconds: PositiveSeconds  # mean run time
    variation: Annotated[float, Meta(ge=0, le=10)]  # standard deviation of that, over the mean
    pattern: str
    rate: Annotated[float, Meta(gt=0, le=1e5)]  # requests a second
    duration_s: Annotated[PositiveSeconds, Meta(title="duration")]
    min_workers: int
    max_workers: int
    pod_start_s: Annotated[Seconds, Meta(title="pod start")]
    grace_s: Annotated[Seconds, Meta(title="grace")]

    def draw_requests(
        self,
        chance: Chance,
        run_times_s: Sequence[float] | None,
        arrivals_s: Sequence[float] | None,
    ) -> Arrivals:
        """Return the requests.

        run_times_s: draw from these instead. arrivals_s: when they come instead.
        """
        runs = draw_run_times(chance, self.seconds, self.variation)
        if run_times_s is not None:
            if not run_times_s:
                raise InvalidValue(
                    "no run time was recorded",
                    hint="give the folder of a run with successful requests",
                )
            runs = partial(chance.choice, run_times_s)
        if arrivals_s is not None:
            return Arrivals(tuple(arrivals_s), tuple(runs() for _ in arrivals_s))
        return draw_arrivals(self.pattern, chance, runs, self.rate, self.duration_s)


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """The load of a simulation, and what is used in place of its run times and arrivals."""

    load: SimulatedLoad
    run: str  # a stored run, whose run times are drawn from
    trace: Path | None  # a file with the times of arrivals
    seed: int
