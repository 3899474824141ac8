"""Measures: the named numbers of a run, with their intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import INNER, named_in_documents
from scaletest.model.texts import short_number
from scaletest.model.writing import Written
from scaletest.stats.estimate import Estimate
from scaletest.stats.percentiles import Distribution, estimate_from_percentile
from scaletest.stats.repetitions import mean_estimate

# Of what in a run a number is, as in {"workers": 8}.
Place = Mapping[str, str | int | float]
WHOLE_RUN: Place = {}  # of a number that belongs to no single place of the run


@dataclass(frozen=True, slots=True)
class Measure(Written):
    """One number of a run."""

    name: Annotated[
        str, named_in_documents("measure"), 'its name with its statistic, e.g. "run.p95"'
    ]
    where: Annotated[Place, "of what in the run, e.g. workers: 8"]
    estimate: Annotated[
        Estimate,
        INNER,
        "with its 95 % interval; infinite ends where that is unknown, equal ones where it was "
        "counted.",
    ]
    unit: Annotated[str, 'the base unit, e.g. s, 1/s, B/s, x; "" for a plain number or a fraction.']
    more_is_better: Annotated[bool | None, INNER, "None where neither is."]
    samples: Annotated[
        Sequence[float], INNER, "the single values behind it, if there are any."
    ] = ()
    repeats: Annotated[
        Sequence[float], INNER, "what each repeat measured, where the estimate is their mean."
    ] = ()
    freedom: Annotated[
        int, INNER, "degrees of freedom behind the interval, 0 where they are unknown."
    ] = 0
    resolution: Annotated[float, INNER, "of its clock, in its unit."] = 0.0
    reason: Annotated[str, INNER, 'why it may not be judged, "" when it may.'] = ""
    decides: Annotated[bool, "whether the verdict rests on it"] = False

    @property
    def key(self) -> tuple[object, ...]:
        """Name and place, by which the measure is found in another run."""
        return self.name, *sorted(self.where.items(), key=str)

    @property
    def text(self) -> str:
        """Name and place in words."""
        return f"{self.name} ({place_text(self.where)})" if self.where else self.name

    @property
    def is_median(self) -> bool:
        """Whether it is the median of its samples."""
        return self.name.endswith(".p50")


def place_text(where: Place) -> str:
    """Write a place in words; "" for the whole run."""
    return ", ".join(
        f"{key} {short_number(setting) if isinstance(setting, float) else setting}"
        for key, setting in where.items()
    )


def known_percentiles(
    name: str,
    where: Place,
    spread: Distribution,
    samples: Sequence[float] = (),
    resolution_s: float = 0.0,
) -> list[Measure]:
    """Return the known percentiles of durations in s, and their mean where there are samples."""
    estimates = {"mean": mean_estimate(samples)} if samples else {}
    for statistic in ("p50", "p95", "p99"):
        percentile = getattr(spread, statistic)
        if percentile is not None:
            estimates[statistic] = estimate_from_percentile(percentile)
    return [
        Measure(
            f"{name}.{statistic}", where, estimate, "s", False, samples, resolution=resolution_s
        )
        for statistic, estimate in estimates.items()
    ]
