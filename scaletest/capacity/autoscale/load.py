"""The load that is played, and how pods come and go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from msgspec import Meta

from scaletest.capacity.autoscale.arrivals import (
    Arrivals,
    draw_arrivals,
    draw_recorded,
    draw_run_times,
)
from scaletest.capacity.autoscale.hpa import SYNC_S
from scaletest.capacity.autoscale.rule import RULES, Rule
from scaletest.model.declared import PositiveSeconds, Seconds
from scaletest.model.document import Document
from scaletest.stats.chance import Chance


@dataclass(frozen=True, slots=True)
class SimulationSetting:
    """How pods come and go in a simulation, and when it ends."""

    start_s: float = 20.0  # of a pod, from creation to ready
    jitter: float = 0.0  # the relative spread of that (0.2: from 80 to 120 %)
    grace_s: float = 30.0  # between SIGTERM and SIGKILL; a worker that ends sooner loses nothing
    start: int = 1  # replicas at the beginning
    until_s: float = 0.0  # when it ends at the latest, whatever still waits
    sync_s: float = SYNC_S

    def delay_s(self, chance: Chance) -> float:
        """Return the start delay of one pod."""
        return self.start_s * (1 + self.jitter * (2 * chance.random() - 1))

    def grace_of(self, rule: Rule) -> float:
        """Return the grace period of the rule's pods."""
        return self.grace_s if rule.grace_s is None else rule.grace_s


@dataclass(frozen=True, slots=True)
class PlayedLoad(Document):
    """A load, and how pods come and go. seconds: mean run time; variation: its deviation over the
    mean. rate: requests a second.
    """

    seconds: PositiveSeconds
    variation: Annotated[float, Meta(ge=0, le=10)]
    pattern: str
    rate: Annotated[float, Meta(gt=0, le=1e5)]
    duration_s: Annotated[PositiveSeconds, Meta(title="duration")]
    min_workers: int
    max_workers: int
    pod_start_s: Annotated[Seconds, Meta(title="pod start")]
    grace_s: Annotated[Seconds, Meta(title="grace")]

    @property
    def setting(self) -> SimulationSetting:
        """How pods come and go."""
        return SimulationSetting(
            self.pod_start_s, grace_s=self.grace_s, start=max(0, self.min_workers)
        )

    def arrivals(
        self,
        chance: Chance,
        run_times: Sequence[float] | None,
        times: Sequence[float] | None,
    ) -> Arrivals:
        """Return the requests.

        run_times: draw from these instead; times: when they come instead.
        """
        runs = draw_run_times(chance, self.seconds, self.variation)
        if run_times is not None:
            runs = draw_recorded(chance, run_times)
        if times is not None:
            return Arrivals(tuple(times), tuple(runs() for _ in times))
        return draw_arrivals(self.pattern, chance, runs, self.rate, self.duration_s)

    def within(self, rule: Rule) -> Rule:
        """Return the rule with the fewest and most replicas of the load, unless it has its own."""
        base = RULES[rule.name.partition(":")[0]]
        if base.minimum == rule.minimum and rule.minimum:
            rule = replace(rule, minimum=self.min_workers)
        if base.maximum == rule.maximum:
            rule = replace(rule, maximum=self.max_workers)
        return rule
