"""Thresholds, the further conditions of a PASS, and the parser of their texts."""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from scaletest.model import checks
from scaletest.model.errors import InvalidValue, suggestion
from scaletest.model.quantities import BYTES, DECIMAL_BYTES, PER_SECOND, SECONDS

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
# Units of bounds with their factors, by the base unit of the measure. Where "" is among them, a
# bound may have no unit. A time must have one: 50 may be meant in milliseconds.
UNITS: Mapping[str, Mapping[str, float]] = {
    "s": {**SECONDS, "ns": 1e-9},
    "1/s": {"": 1.0, **PER_SECOND, "1/s": 1.0},
    "bit/s": {"": 1.0, **{f"{name[:-1]}bit/s": factor for name, factor in DECIMAL_BYTES.items()}},
    "B/s": {"": 1.0, **{f"{name}/s": factor for name, factor in BYTES.items()}},
    "B": {"": 1.0, **BYTES},
    "x": {"": 1.0, "x": 1.0},
    "requests": {"": 1.0, "%": 0.01},
    "workloads": {"": 1.0, "%": 0.01},
    "": {"": 1.0, "%": 0.01},
}
# A figure that a workload reports may be in any of them, and is in base units where it has one.
FIGURE_UNIT = "figure"
UNITS = {**UNITS, FIGURE_UNIT: dict(chain.from_iterable(units.items() for units in UNITS.values()))}
# MEASURE[.STATISTIC][(WHERE)] OPERATOR VALUE[UNIT]; operators and units are checked later.
_SHAPE = re.compile(
    r"\s*(?P<measure>[A-Za-z_][A-Za-z_0-9.-]*)\s*(?:\((?P<where>[^()]*)\))?\s*(?P<operator>[<>=!~]{1,3})"
    r"\s*(?P<value>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*(?P<unit>[0-9A-Za-zµ/%]*)\s*"
)
_LONGEST = 200
WORKERS = "workers"
# Stands in a table for all figures of workloads: figures.fps is their mean, figures.fps.p95 a
# percentile, and figures.p95 the mean of a figure of that name.
OWN_FIGURE = "figures.NAME"
_FIGURES = "figures."
_FIGURE = re.compile(rf"{re.escape(_FIGURES)}[^.]")
# Keys of places that a threshold may name: a step, and whatever the run has.
STEP, ANY = (WORKERS,), ("",)
# Keys and values of a place, as they were written.
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Measurable:
    """A measure that a threshold may bound: a row in the table of a run type."""

    unit: str  # the base unit, a key of UNITS
    keys: tuple[str, ...] = ()  # of the places that a threshold may name
    most: float = math.inf  # the largest possible bound


# By the name with its statistic, as in "run.p95".
MeasureTable = Mapping[str, Measurable]
VALIDATION_MEASURES: MeasureTable = {
    "ratio": Measurable("x", STEP),
    "efficiency": Measurable("", STEP, most=2.0),
    "throughput": Measurable("1/s", STEP),
    "failures": Measurable("requests", STEP),
    **{f"wait.{name}": Measurable("s", STEP) for name in PERCENTILES},
    **{f"run.{name}": Measurable("s", STEP) for name in PERCENTILES},
    OWN_FIGURE: Measurable(FIGURE_UNIT, STEP),
}


@dataclass(frozen=True, slots=True)
class Threshold:
    """One condition of a PASS: MEASURE[.STATISTIC][(WHERE)] OP VALUE[UNIT]."""

    measure: str  # with its statistic
    where: Pairs  # () for all of the run
    operator: str
    value: float  # as it was written, in `unit`
    unit: str
    base: str  # the unit of the measure

    @property
    def factor(self) -> float:
        """The number of base units in its unit."""
        return UNITS[self.base][self.unit]

    @property
    def bound(self) -> float:
        """The value in base units: s, 1/s, parts of 1, or a count."""
        return self.value * self.factor

    @property
    def percentile(self) -> str:
        """The name of the percentile that it bounds; "" where it bounds none."""
        name = self.measure.removeprefix(_FIGURES)
        return next((end for end in PERCENTILES if name.endswith(f".{end}")), "")

    @property
    def figure(self) -> str:
        """The name of the workload's figure that it bounds; "" for another measure."""
        if self.base != FIGURE_UNIT:
            return ""
        name = self.measure.removeprefix(_FIGURES)
        return name.removesuffix(f".{self.percentile}") if self.percentile else name

    @property
    def share(self) -> bool:
        """Whether a count is bounded as a part of the whole."""
        return self.unit == "%"

    @property
    def workers(self) -> int | None:
        """The step that it names; None where it is about all of them."""
        return int(dict(self.where)[WORKERS]) if self.where else None

    def holds(self, measured: float) -> bool:
        """Return whether a measured value, in base units, meets the threshold."""
        return OPERATORS[self.operator](measured, self.bound)

    def about(self, place: Mapping[str, Any]) -> bool:
        """Return whether it is about a place with these values."""
        return all(str(place.get(key)) == text for key, text in self.where)

    def __str__(self) -> str:
        # a step is its number alone, as in ratio(8)
        pairs = [text if key == WORKERS else f"{key}={text}" for key, text in self.where]
        place = f"({', '.join(pairs)})" if pairs else ""
        number = f"{self.value:g}" if float(f"{self.value:g}") == self.value else repr(self.value)
        # 5 1/s would read as 51/s
        gap = " " if self.unit.startswith("1") else ""
        return f"{self.measure}{place}{self.operator}{number}{gap}{self.unit}"


def parse_threshold(text: str, table: MeasureTable, example: str) -> Threshold:
    """Parse one threshold; InvalidValue says what is wrong with it.

    table: the measures that it may be about. example: a threshold of such a run, for hints.
    """
    quoted = checks.cut_text(repr(text), 80)
    match = _SHAPE.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if match is None:
        raise InvalidValue(
            f"threshold {quoted} cannot be read",
            hint=f"write MEASURE[.STATISTIC][(KEY=VALUE)] OP VALUE[UNIT] in quotes, e.g. {example}",
        )
    # what it is about: a measure of the table, with a statistic that the measure has
    measure, unit = match["measure"], match["unit"]
    measurable = table.get(OWN_FIGURE if _FIGURE.match(measure) else measure)
    if measurable is None:
        raise InvalidValue(
            f"threshold {quoted} names {checks.cut_text(measure, 40)}, which is not measured",
            hint=suggestion(measure, table),
        )
    # how it compares, and in which unit
    units = UNITS[measurable.unit]
    names = ", ".join(name or "none" for name in units)
    checks.raise_first_mistake(
        (
            match["operator"] not in OPERATORS,
            f"threshold {quoted} compares with {match['operator']}",
            f"use one of {' '.join(OPERATORS)}",
        ),
        (
            unit not in units,
            f"threshold {quoted} has the unit {checks.cut_text(unit, 20) or 'none'}",
            f"{measure} takes {names}, e.g. {example}",
        ),
    )
    # where, and the bound itself
    threshold = Threshold(
        measure,
        where=_parse_where(match["where"], measure, measurable.keys, quoted, example),
        operator=match["operator"],
        value=float(match["value"]),
        unit=unit,
        base=measurable.unit,
    )
    is_part = threshold.base == "requests" and threshold.share
    checks.raise_first_mistake(
        (
            not math.isfinite(threshold.bound),
            f"threshold {quoted} has too large a value",
            "give a finite number",
        ),
        (
            threshold.value < 0 and threshold.base != FIGURE_UNIT,
            f"threshold {quoted} has a negative value",
            f"{measure} is never below 0",
        ),
        (
            threshold.bound > (1.0 if is_part else measurable.most),
            f"threshold {quoted} has a value that {measure} cannot reach",
            "it is a fraction: write 0.8 or 80%",
        ),
    )
    return threshold


def parse_upper_bound(text: str, table: MeasureTable, example: str) -> Threshold:
    """Parse a threshold that bounds a measure from above, as a latency limit does."""
    threshold = parse_threshold(text, table, example)
    if not threshold.operator.startswith("<"):
        raise InvalidValue(
            f"the limit {checks.cut_text(repr(text), 40)} is no upper bound",
            hint=f"write e.g. {example}",
        )
    return threshold


def _parse_where(
    place: str | None, measure: str, keys: tuple[str, ...], quoted: str, example: str
) -> Pairs:
    """Parse keys and values between parentheses, if any; a value alone belongs to the only key."""
    if place is None:
        return ()
    text = place.strip()
    # whether the measure has places at all
    if not keys:
        raise InvalidValue(
            f"threshold {quoted} names {text or 'nothing'}",
            hint=f"{measure} belongs to the whole run: leave ({text}) out",
        )
    if keys == STEP and "=" not in text:
        text = f"{WORKERS}={text}"
    parts = [part.partition("=") for part in text.split(",")]
    pairs = tuple((key.strip(), value.strip()) for key, _, value in parts)
    if not all(key and value for key, value in pairs):
        raise InvalidValue(f"threshold {quoted} names no KEY=VALUE", hint=f"write e.g. {example}")
    # whether it has these, each with one value
    unknown = [key for key, _ in pairs if key not in keys and keys != ANY]
    if unknown:
        raise InvalidValue(
            f"threshold {quoted} names {checks.cut_text(unknown[0], 40)}",
            hint=suggestion(unknown[0], keys),
        )
    if len(dict(pairs)) < len(set(pairs)):
        raise InvalidValue(
            f"threshold {quoted} gives a key two values", hint="write a threshold for each of them"
        )
    return pairs


def parse_step_threshold(text: str, steps: Sequence[int] = ()) -> Threshold:
    """Parse a threshold of a validation. steps: numbers of workers it may name, () for any."""
    threshold = parse_threshold(
        text, VALIDATION_MEASURES, "'efficiency(8)>=0.8' or 'wait.p95<200ms'"
    )
    quoted = checks.cut_text(repr(text), 80)
    for _, number in threshold.where:
        # int() takes other digits, signs and underscores, too, and is slow for very long numbers
        is_number = number.isascii() and number.isdigit() and len(number) < 10
        if not is_number or int(number) not in (steps or range(1, 10**9)):
            raise InvalidValue(
                f"threshold {quoted} names {checks.cut_text(number, 40)} workers, which is"
                " not a step",
                hint=f"the steps are {', '.join(map(str, steps))}" if steps else "give 1 or more",
            )
    is_count = threshold.measure == "failures" and not threshold.share
    checks.raise_first_mistake(
        (
            threshold.measure == "ratio" and steps and threshold.workers == steps[0],
            f"threshold {quoted} names the first step",
            "a ratio compares with the step before: name a later step",
        ),
        (
            is_count and not threshold.value.is_integer(),
            f"threshold {quoted} counts fractions of requests",
            "give a whole number, or a percentage",
        ),
    )
    return threshold
