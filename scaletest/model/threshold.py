"""Thresholds: further conditions of a PASS, one line each, as METRIC[(N)] OP VALUE[UNIT].

    efficiency(8)>=0.8    ratio(4)>=1.9    throughput(8)>=12/s    failures<1%    failures<=3
    wait.p95(8)<200ms     run.p99<=2s      contention<5%          coherency<0.1% drift<3%

N is a step's number of workers. Without N every step must meet the bound, so the worst one decides;
failures are then those of the whole run. Contention and coherency belong to the run and take no N.
`analysis` decides whether a threshold is met.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scaletest.model import checks
from scaletest.model.errors import InvalidValue
from scaletest.model.nearest import suggestion

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": lambda value, bound: value >= bound,
    ">": lambda value, bound: value > bound,
    "<=": lambda value, bound: value <= bound,
    "<": lambda value, bound: value < bound,
}
SECONDS = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
PART = {"": 1.0, "%": 0.01}

_SHAPE = re.compile(
    r"\s*(?P<metric>[A-Za-z_][A-Za-z_0-9.]*)\s*(?:\(\s*(?P<workers>[0-9]{1,9})\s*\))?"
    r"\s*(?P<operator>[<>=!~]{1,3})\s*(?P<value>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*(?P<unit>[A-Za-z/%]*)\s*"
)
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class ThresholdMetric:
    """A metric of thresholds. units: factors to the base unit; most: the largest possible bound.

    per_step: whether the threshold may name a number of workers.
    """

    units: Mapping[str, float]
    per_step: bool = True
    most: float = math.inf


METRICS: Mapping[str, ThresholdMetric] = {
    "ratio": ThresholdMetric({"": 1.0, "x": 1.0}),
    "efficiency": ThresholdMetric(PART, most=2.0),
    "throughput": ThresholdMetric({"": 1.0, "/s": 1.0, "/min": 1 / 60}),
    "failures": ThresholdMetric({"": 1.0, "%": 0.01}),
    "contention": ThresholdMetric(PART, per_step=False, most=1.0),
    "coherency": ThresholdMetric(PART, per_step=False, most=1.0),
    "drift": ThresholdMetric(PART, most=1.0),
    **{f"wait.{name}": ThresholdMetric(SECONDS) for name in PERCENTILES},
    **{f"run.{name}": ThresholdMetric(SECONDS) for name in PERCENTILES},
}


@dataclass(frozen=True, slots=True)
class Threshold:
    """One condition. value: as it was written, in `unit`; workers: None for all steps."""

    metric: str
    workers: int | None
    operator: str
    value: float
    unit: str = ""

    @property
    def bound(self) -> float:
        """The value in base units: s, 1/s, parts of 1, or a count."""
        return self.value * METRICS[self.metric].units[self.unit]

    @property
    def share(self) -> bool:
        """Whether failures are counted as a part of all requests."""
        return self.unit == "%"

    def holds(self, measured: float) -> bool:
        """Whether a measured value, in base units, meets the threshold."""
        return OPERATORS[self.operator](measured, self.bound)

    def __str__(self) -> str:
        at = "" if self.workers is None else f"({self.workers})"
        number = f"{self.value:g}" if float(f"{self.value:g}") == self.value else repr(self.value)
        return f"{self.metric}{at}{self.operator}{number}{self.unit}"


def parse(text: str, steps: Sequence[int] = ()) -> Threshold:
    """Read one threshold; InvalidValue says what is wrong with it.

    steps: numbers of workers that it may name, () for any.
    """
    shown = checks.cut(repr(text), 80)
    is_short = isinstance(text, str) and len(text) <= _LONGEST
    match = _SHAPE.fullmatch(text) if is_short else None
    if match is None:
        raise InvalidValue(
            f"threshold {shown} cannot be read",
            hint=(
                "write METRIC[(N)] OP VALUE[UNIT] in quotes, as in 'efficiency(8)>=0.8' or"
                " 'wait.p95<200ms'"
            ),
        )
    metric = _metric(match["metric"], shown)
    if match["operator"] not in OPERATORS:
        raise InvalidValue(
            f"threshold {shown} compares with {match['operator']}",
            hint=f"use one of {' '.join(OPERATORS)}",
        )
    if match["unit"] not in METRICS[metric].units:
        raise InvalidValue(
            f"threshold {shown} has the unit {match['unit'] or 'none'}", hint=_units(metric)
        )
    workers = _workers(metric, match["workers"], steps, shown)
    threshold = Threshold(metric, workers, match["operator"], float(match["value"]), match["unit"])
    _check_bound(threshold, shown)
    return threshold


def _metric(name: str, shown: str) -> str:
    if name in METRICS:
        return name
    stem = name.partition(".")[0]
    hint = suggestion(name, METRICS)
    if stem in ("wait", "run"):
        hint = f"write one of {', '.join(f'{stem}.{percentile}' for percentile in PERCENTILES)}"
    raise InvalidValue(
        f"threshold {shown} names {checks.cut(name, 40)}, which is not measured", hint=hint
    )


def _units(metric: str) -> str:
    names = [name for name in METRICS[metric].units if name]
    return f"{metric} takes {', '.join(names)} or none"


def _workers(metric: str, written: str | None, steps: Sequence[int], shown: str) -> int | None:
    if written is None:
        return None
    if not METRICS[metric].per_step:
        raise InvalidValue(
            f"threshold {shown} names a number of workers",
            hint=f"{metric} belongs to the whole run: leave ({written}) out",
        )
    workers = int(written)
    if workers < 1 or (steps and workers not in steps):
        known = f"the steps are {', '.join(map(str, steps))}" if steps else "give 1 or more"
        raise InvalidValue(
            f"threshold {shown} names {workers} workers, which is not a step", hint=known
        )
    if metric == "ratio" and steps and workers == steps[0]:
        raise InvalidValue(
            f"threshold {shown} names the first step",
            hint="a ratio compares with the step before: name a later step",
        )
    return workers


def _check_bound(threshold: Threshold, shown: str) -> None:
    if not math.isfinite(threshold.bound):
        raise InvalidValue(f"threshold {shown} has too large a value", hint="give a finite number")
    most = (
        1.0
        if threshold.metric == "failures" and threshold.share
        else METRICS[threshold.metric].most
    )
    if threshold.bound > most:
        raise InvalidValue(
            f"threshold {shown} has a value that {threshold.metric} cannot reach",
            hint="it is a part of 1: write 0.8 or 80%",
        )
    if threshold.metric == "failures" and not threshold.share and not threshold.value.is_integer():
        raise InvalidValue(
            f"threshold {shown} counts fractions of requests",
            hint="give a whole number, or a percentage",
        )
