"""Thresholds of benchmarks, the conditions of a PASS: METRIC[(KEY=VALUE, ...)] OP VALUE[UNIT].

    bandwidth>=5Gbit/s    bandwidth(streams=8)>=9e9    minimumLatency<20us    lost<1%

METRIC is a headline of the kind. Without KEY=VALUE it is about every permutation, else about those
with these values. `analysis` decides whether it holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.kinds.fields import as_yaml
from scaletest.kinds.kind import Headline
from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue
from scaletest.model.nearest import suggestion
from scaletest.model.threshold import OPERATORS, SECONDS

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
# Units of bounds with their factors, by the unit of the headline, which is the default.
UNITS: Mapping[str, Mapping[str, float]] = {
    "bit/s": {"": 1.0, **{f"{prefix}bit/s": factor for prefix, factor in _DECIMAL.items()}},
    "B/s": {"": 1.0, **{f"{prefix}B/s": factor for prefix, factor in (_DECIMAL | _BINARY).items()}},
    "B": {"": 1.0, **{f"{prefix}B": factor for prefix, factor in (_DECIMAL | _BINARY).items()}},
    "s": {**SECONDS, "ns": 1e-9},
    "1/s": {"": 1.0, "/s": 1.0, "1/s": 1.0},
    "": {"": 1.0, "%": 0.01},
}
_SHAPE = re.compile(
    r"\s*(?P<metric>[A-Za-z][A-Za-z0-9]*)\s*(?:\((?P<where>[^()]*)\))?\s*(?P<operator>[<>=!~]{1,3})"
    r"\s*(?P<value>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*(?P<unit>[0-9A-Za-z/%]*)\s*"
)
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class BenchmarkThreshold:
    """One condition. text: as written; where: values of its permutations; bound: in base units."""

    text: str
    headline: Headline
    where: tuple[tuple[str, str], ...]
    operator: str
    bound: float

    def holds(self, measured: float) -> bool:
        """Whether a number in base units meets it."""
        return OPERATORS[self.operator](measured, self.bound)

    def about(self, values: Mapping[str, Any]) -> bool:
        """Whether it is about a permutation with these values."""
        return all(name in values and _same(values[name], text) for name, text in self.where)


def parse(text: str, headlines: Sequence[Headline]) -> BenchmarkThreshold:
    """Parse one; InvalidValue says what is wrong. headlines: those that are measured."""
    shown = cut(repr(text), 80)
    match = _SHAPE.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise InvalidValue(
            f"threshold {shown} cannot be read",
            hint=(
                "write METRIC[(KEY=VALUE)] OP VALUE[UNIT] in quotes, as in"
                " 'bandwidth(streams=8)>=5Gbit/s'"
            ),
        )
    known = {headline.name: headline for headline in headlines}
    if match["metric"] not in known:
        raise InvalidValue(
            f"threshold {shown} is about {cut(match['metric'], 40)}, which is not measured",
            hint=suggestion(match["metric"], known),
        )
    if match["operator"] not in OPERATORS:
        raise InvalidValue(
            f"threshold {shown} compares with {match['operator']}",
            hint=f"use one of {' '.join(OPERATORS)}",
        )
    headline = known[match["metric"]]
    units = UNITS[headline.unit]
    if match["unit"] not in units:
        names = ", ".join(name for name in units if name)
        hint = f"{headline.name} takes {names} or none"
        raise InvalidValue(f"threshold {shown} has the unit {cut(match['unit'], 20)}", hint=hint)
    bound = float(match["value"]) * units[match["unit"]]
    if not math.isfinite(bound):
        raise InvalidValue(f"threshold {shown} has too large a value", hint="give a finite number")
    return BenchmarkThreshold(
        text.strip(), headline, _where(match["where"], shown), match["operator"], bound
    )


def checked(
    texts: Sequence[str], headlines: Sequence[Headline], permutations: Iterable[Mapping[str, Any]]
) -> tuple[BenchmarkThreshold, ...]:
    """Parse all of them. InvalidValue also for one that is about no permutation."""
    thresholds, known = tuple(parse(text, headlines) for text in texts), list(permutations)
    for threshold in thresholds:
        if not any(map(threshold.about, known)):
            shown = ", ".join(f"{name}={text}" for name, text in threshold.where)
            raise InvalidValue(
                f"threshold {threshold.text!r} is about {shown}, which no permutation has",
                hint=f"the first has {cut(as_yaml(dict(known[0])), 80)}" if known else "",
            )
    return thresholds


def _where(text: str | None, shown: str) -> tuple[tuple[str, str], ...]:
    if text is None:
        return ()
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and wanted.strip() for name, _, wanted in pairs):
        raise InvalidValue(
            f"threshold {shown} names no KEY=VALUE",
            hint="write it as in 'bandwidth(streams=8)>=5e9'",
        )
    return tuple((name.strip(), wanted.strip()) for name, _, wanted in pairs)


def _same(value: Any, text: str) -> bool:
    """Whether a permutation's value is this text, as YAML writes it."""
    return text == as_yaml(value)
