"""The course of one measure over runs, and the runs in which it changed.

A run is compared with the run in which the measure changed last, the first one at the beginning, by
the rule of `comparison`. So a measure that slides a little from run to run is flagged once it has
moved by more than the tolerance.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, ClassVar

from scaletest.model.declared import INNER, flat, named_in_documents
from scaletest.model.errors import UsageError, suggestion
from scaletest.model.writing import Written
from scaletest.stats.change import FLAGGED, Change
from scaletest.stats.comparison import Contrast, Side, compare_runs
from scaletest.stats.estimate import Estimate
from scaletest.stats.measure import Measure


@dataclass(frozen=True, slots=True)
class TrendPoint(Written):
    """One run of a trend."""

    side: Annotated[Side, flat()]
    estimate: Annotated[Estimate | None, "the measure, null where the run has none"]
    change: Annotated[Change | None, "how it changed; null for the first run"] = None
    ratio: Annotated[Estimate | None, "over the run in which it changed last"] = None
    note: Annotated[str, "why it is not compared"] = ""
    has_other_cause: Annotated[bool, "whether something else limits it than the run before"] = False


@dataclass(frozen=True, slots=True)
class Trend(Written):
    """A measure over runs, the oldest first."""

    constants: ClassVar = {"schema_version": 1, "kind": "trend"}

    run_type: Annotated[str, named_in_documents("type"), "of the runs"]
    measure: Annotated[Measure, INNER]  # of the newest run that has it
    tolerance: Annotated[float, "part by which a measure may be worse"]
    points: Annotated[tuple[TrendPoint, ...], named_in_documents("runs")]
    # the measures of the newest run, each at its last place
    choices: Annotated[tuple[str, ...], INNER] = ()

    @property
    def name(self) -> Annotated[str, named_in_documents("measure"), "name and place"]:
        """The measure, as a threshold names it."""
        return written_measure(self.measure)

    @property
    def flagged(self) -> list[TrendPoint]:
        """The runs in which it changed."""
        return [point for point in self.points if point.change in FLAGGED]


def written_measure(measure: Measure) -> str:
    """Return a measure as a threshold names it, as in throughput(8)."""
    places = [str(place) for place in measure.where.values()]
    return f"{measure.name}({', '.join(places)})" if places else measure.name


def find_trend(
    run_type: str,
    sides: Sequence[Side],
    contrast: Callable[[int, int], Contrast],
    wanted: str,
    tolerance: float,
    *,
    problems: Mapping[str, str] = MappingProxyType({}),
) -> Trend:
    """Follow a measure through runs, the oldest first. UsageError where none has it.

    contrast: how far two of the runs can be compared, by their numbers. wanted: the measure, as in
    throughput(8); "" for the last of those that decide.
    problems: why runs have no measure, by their names.
    """
    measure = _choose_measure(sides, wanted)
    points: list[TrendPoint] = []
    base: int | None = None  # the number of the run in which it changed last
    for number, side in enumerate(sides):
        earlier = [other.cause for other in sides[:number] if other.measures]
        has_other_cause = bool(earlier and side.measures) and earlier[-1] != side.cause
        measured = next((other for other in side.measures if other.key == measure.key), None)
        if measured is None:
            note = problems.get(side.name, "not measured")
            points.append(TrendPoint(side, None, note=note, has_other_cause=has_other_cause))
            continue
        point = TrendPoint(side, measured.estimate, has_other_cause=has_other_cause)
        if base is not None:
            candidates = [(side, contrast(base, number))]
            comparison = compare_runs(run_type, sides[base], candidates, tolerance)
            point = replace(point, note=comparison.verdict.reason)
            for found in comparison.candidates[0].changes:
                if found.base.key == measure.key:
                    point = replace(
                        point, change=found.change, ratio=found.ratio, note=found.reason
                    )
        points.append(point)
        # where the workload is another one, what follows is compared with this run
        if point.change is None or point.change in FLAGGED:
            base = number
    choices = {other.name: written_measure(other) for other in _newest_measures(sides)}
    return Trend(run_type, measure, tolerance, tuple(points), tuple(choices.values()))


def _newest_measures(sides: Sequence[Side]) -> Sequence[Measure]:
    """Return the measures of the newest run that has any."""
    return next((side.measures for side in reversed(sides) if side.measures), ())


def _choose_measure(sides: Sequence[Side], wanted: str) -> Measure:
    """Return the measure of that name in the newest run that has it."""
    name, _, place = wanted.replace(" ", "").partition("(")
    values = {pair.rpartition("=")[2] for pair in place.rstrip(")").split(",") if pair}
    for side in reversed(sides):
        fitting = [measure for measure in side.measures if measure.decides and not wanted]
        for measure in side.measures:
            if measure.name == name and values <= {str(value) for value in measure.where.values()}:
                fitting.append(measure)
        if fitting:
            return fitting[-1]
    known = [written_measure(measure) for measure in _newest_measures(sides)]
    raise UsageError(
        f"none of the runs measured {wanted or 'anything'}", hint=suggestion(wanted, known)
    )
