"""Hold the plan of a run: all its benchmarks with their values, in the order of their start.

Thresholds are the conditions of a PASS: METRIC[(KEY=VALUE, ...)] OP VALUE[UNIT].

    bandwidth>=5Gbit/s    bandwidth(streams=8)>=9e9    minimumLatency<20us    lost<1%

METRIC is a headline of the kind. Without KEY=VALUE it is about every permutation, else about those
with these values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

from scaletest.benchmarks.documents import Benchmark, read_benchmark
from scaletest.benchmarks.kinds import Headline
from scaletest.model import checks, declared, errors, texts, writing
from scaletest.model.document import read_document
from scaletest.model.threshold import ANY, Measurable, MeasureTable, Threshold, parse_threshold
from scaletest.render.numbers import plural

KIND = "benchmark"
EXAMPLE = "'bandwidth(streams=8)>=5Gbit/s'"


def measurable_headlines(headlines: Iterable[Headline]) -> MeasureTable:
    """Return what thresholds may be about: the measured numbers, at any permutation."""
    return {headline.name: Measurable(headline.unit, ANY) for headline in headlines}


def values_as_text(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a permutation as thresholds write them: as YAML does."""
    return {key: texts.as_yaml(value) for key, value in values.items()}


@dataclass(frozen=True, slots=True)
class BenchmarkPlan(writing.Written):
    """The plan of a set, or of a single benchmark."""

    name: str
    benchmarks: tuple[Benchmark, ...]
    permutations: tuple[Mapping[str, Any], ...]  # values of each, also those that samples chose
    document: Mapping[str, Any]  # as the user wrote it
    # as in the set's spec
    repetitions: int = 1
    stop_on_failure: bool = False
    disjoint: bool = False
    paused: bool = False
    thresholds: tuple[str, ...] = ()
    constants: ClassVar = {**declared.VERSIONED, "kind": KIND}
    # a run of benchmarks has none
    steps: ClassVar[tuple[int, ...]] = ()

    @property
    def kinds(self) -> list[str]:
        """Names of the kinds that are measured."""
        return sorted({benchmark.kind.name for benchmark in self.benchmarks})

    @property
    def workload(self) -> str:
        """Kinds, and how often they are measured, in words."""
        parts = [", ".join(self.kinds)]
        if len(self.permutations) > 1:
            parts.append(plural(len(self.permutations), "permutation"))
        if self.repetitions > 1:
            parts.append(plural(self.repetitions, "repetition"))
        return " · ".join(parts)

    def parse_thresholds(self) -> tuple[Threshold, ...]:
        """Read the thresholds. InvalidValue for one that is malformed, or about no permutation."""
        kinds = {benchmark.kind.name: benchmark.kind for benchmark in self.benchmarks}
        table = measurable_headlines(chain.from_iterable(kind.headlines for kind in kinds.values()))
        thresholds = tuple(parse_threshold(text, table, EXAMPLE) for text in self.thresholds)
        for threshold in thresholds:
            if not any(map(threshold.about, map(values_as_text, self.permutations))):
                where = ", ".join(f"{name}={text}" for name, text in threshold.where)
                first = texts.as_yaml(dict(self.permutations[0])) if self.permutations else ""
                raise errors.InvalidValue(
                    f"threshold '{threshold}' is about {where}, which no permutation has",
                    hint=f"the first has {checks.cut_text(first, 80)}" if first else "",
                )
        return thresholds

    @property
    def count(self) -> int:
        """Number of benchmarks without warm-ups."""
        return sum(not benchmark.warm_up for benchmark in self.benchmarks)

    @classmethod
    def from_dict(cls, data: Any) -> BenchmarkPlan:
        """Read what `to_dict` wrote; InvalidValue for anything else."""
        if isinstance(data, Mapping) and isinstance(data.get("benchmarks"), list):
            data = {**data, "benchmarks": list(map(_read_benchmark, data["benchmarks"]))}
        return read_document(cls, data, "the plan")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a benchmark stands in its set."""

    permutation: int
    repetition: int


def _read_benchmark(stored: Any) -> Benchmark:
    """Read a benchmark of a stored plan, with its place in the set."""
    place = read_document(_Place, stored, "a benchmark of the plan")
    document = {**stored}
    del document["permutation"], document["repetition"]
    return replace(
        read_benchmark(document), permutation=place.permutation, repetition=place.repetition
    )
