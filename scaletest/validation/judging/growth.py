"""How throughput grows with the workers: the law, its peak, and what each worker brings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.causes.steps import SPREAD_BETWEEN_STEPS
from scaletest.model.declared import INNER, flat, named_in_documents
from scaletest.model.writing import Written
from scaletest.render.numbers import plural
from scaletest.stats.chance import Chance
from scaletest.stats.law import Choice, choose_law, missing_steps
from scaletest.stats.law_interval import LawInterval, law_interval
from scaletest.stats.peak import Peak, find_peak
from scaletest.stats.scaling import Scaled, scaling_over
from scaletest.stats.student import t95
from scaletest.validation.judging.steps import Step
from scaletest.validation.judging.throughput import Throughput

# Seed of the bootstrap; fixed, so that a stored run always gets the same verdict.
SEED = 1


@dataclass(frozen=True, slots=True)
class DescribedLaw:
    """The law of a run with its intervals."""

    choice: Annotated[Choice, flat()]
    intervals: LawInterval | None


@dataclass(frozen=True, slots=True)
class Growth(Written):
    """How throughput grows."""

    choice: Annotated[
        Choice | None,
        INNER,
        "the law, None where there are too few steps for two laws, or one has no throughput",
    ]
    interval: Annotated[LawInterval | None, INNER]
    lacking: Annotated[dict[str, int], INNER, "the further steps that the other laws need."]
    peak: Peak
    scaling: list[Scaled]

    @property
    def law(self) -> Annotated[DescribedLaw | None, ""]:
        """The law with its intervals."""
        return DescribedLaw(self.choice, self.interval) if self.choice else None

    @property
    def remedies(
        self,
    ) -> Annotated[
        dict[str, str],
        named_in_documents("lacking"),
        "by law: measurements that are missing to fit it",
    ]:
        """The measurements that are missing to fit each of the other laws."""
        return {
            name: f"measure {plural(count, 'more step')}" for name, count in self.lacking.items()
        }


def fit_growth(steps: Sequence[Step], chance: Chance) -> Growth:
    """Fit all steps with enough requests together. chance: for the bootstrap, seeded by the caller.

    Every measurement is a point. It brings its noise as the width of its interval, since the
    difference of two passes may come from the machine; where there are pairs of passes enough, they
    show it themselves. In a run that compares numbers of workers per device, throughput is a
    function of these.
    """
    enough = [step for step in steps if step.throughput.enough]
    rates = [step.rate for step in enough]
    parts: list[tuple[float, Throughput]] = []
    for step in enough:
        parts += [(float(step.level), part.throughput) for part in step.judged_parts]
    points = [(level, rate.per_s) for level, rate in parts]
    spreads = None
    if not all(step.between for step in enough):
        spreads = [max(SPREAD_BETWEEN_STEPS, rate.relative / t95(math.inf)) for _, rate in parts]
    # a step without a throughput may be the one that refutes every law
    choice = choose_law(points, spreads) if len(enough) == len(steps) else None
    law, interval = None, None
    if choice:
        law = choice.law
        interval = law_interval(law, points, chance, spreads=spreads)
    return Growth(
        choice=choice,
        interval=interval,
        lacking=missing_steps([workers for workers, _ in points]),
        peak=find_peak(rates, law, interval),
        scaling=[scaling_over(rate, rates[0]) for rate in rates],
    )
