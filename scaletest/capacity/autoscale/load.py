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
# Draws the next run time in seconds.
DrawRunTime = Callable[[], float]
PATTERNS = ("poisson", "wave", "burst")


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests that are the same for all rules; at least one."""

    arrivals_s: tuple[float, ...]  # from the start, ascending
    runs_s: tuple[float, ...]  # run time of each

    def __post_init__(self) -> None:
        if not self.arrivals_s:
            raise InvalidValue(
                "the load has no request", hint="give a higher rate or a longer duration"
            )

    @property
    def mean_run_s(self) -> float:
        """The mean run time."""
        return sum(self.runs_s) / len(self.runs_s)


def draw_run_times(chance: Chance, mean_s: float, variation: float) -> DrawRunTime:
    """Return a function that draws run times, log-normal, or constant without variation.

    variation: standard deviation over mean.
    """
    if variation <= 0:
        return lambda: mean_s
    sigma = math.sqrt(math.log(1 + variation**2))
    mu = math.log(mean_s) - sigma**2 / 2
    return lambda: chance.lognormvariate(mu, sigma)


def draw_requests(
    pattern: str, chance: Chance, draw_run_time: DrawRunTime, per_s: float, duration_s: float
) -> Requests:
    """Draw requests with a mean of `per_s` a second, by a pattern.

    poisson: by chance. wave: by chance, from none to twice the rate and back over
    the duration. burst: four heaps. InvalidValue when there are too many.
    """
    peak_per_s = 2 * per_s if pattern == "wave" else per_s
    if peak_per_s * duration_s > MOST_REQUESTS:
        raise InvalidValue(
            f"the load would have about {per_s * duration_s:.0f} requests",
            hint="give a lower rate or a shorter duration",
        )
    if pattern == "burst":
        count = max(1, round(per_s * duration_s))
        arrivals_s = [duration_s / 4 * (index * 4 // count) for index in range(count)]
    else:
        # thinning: draw at the highest rate, and keep each as likely as the present rate says
        arrivals_s = []
        at_s = chance.expovariate(peak_per_s)
        while at_s < duration_s:
            present_per_s = per_s
            if pattern == "wave":
                present_per_s = per_s * (1 - math.cos(at_s * (2 * math.pi / duration_s)))
            if chance.random() * peak_per_s < present_per_s:
                arrivals_s.append(at_s)
            at_s += chance.expovariate(peak_per_s)
    return Requests(tuple(arrivals_s), tuple(draw_run_time() for _ in arrivals_s))


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
    ) -> Requests:
        """Return requests with random arrivals and run times.

        run_times_s: recorded run times to draw from, instead of the load's own distribution.
        arrivals_s: recorded arrivals, instead of the load's pattern. InvalidValue for no run times.
        """
        draw_run_time = draw_run_times(chance, self.seconds, self.variation)
        if run_times_s is not None:
            if not run_times_s:
                raise InvalidValue(
                    "no run time was recorded",
                    hint="give the folder of a run with successful requests",
                )
            draw_run_time = partial(chance.choice, run_times_s)
        if arrivals_s is not None:
            return Requests(tuple(arrivals_s), tuple(draw_run_time() for _ in arrivals_s))
        return draw_requests(self.pattern, chance, draw_run_time, self.rate, self.duration_s)


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """The load of a simulation, and what is used in place of its run times and arrivals."""

    load: SimulatedLoad
    run: str  # a stored run, whose run times are drawn from
    trace: Path | None  # a file with the times of arrivals
    seed: int
