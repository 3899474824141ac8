"""The plan of a benchmark run: all benchmarks with their values, in the order of their start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scaletest.kinds import benchmark
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.kind import Headline
from scaletest.kinds.threshold import BenchmarkThreshold, checked
from scaletest.model import wire
from scaletest.model.errors import InvalidValue

KIND = "benchmark"


@dataclass(frozen=True, slots=True)
class BenchmarkPlan:
    """The plan of a set.

    name: of the set. permutations: values of each, also those that samples chose. document: as
    the user wrote it. stop_on_failure, disjoint, paused, thresholds: as in the set's spec.
    """

    name: str
    benchmarks: tuple[Benchmark, ...]
    permutations: tuple[Mapping[str, Any], ...]
    document: Mapping[str, Any]
    repetitions: int = 1
    stop_on_failure: bool = False
    disjoint: bool = False
    paused: bool = False
    thresholds: tuple[str, ...] = ()

    @property
    def workload(self) -> str:
        """Short text of what is measured."""
        kinds = sorted({benchmark.kind.name for benchmark in self.benchmarks})
        return f"{', '.join(kinds)}: {len(self.permutations)} x {self.repetitions}"

    @property
    def judged(self) -> tuple[BenchmarkThreshold, ...]:
        """The parsed thresholds. InvalidValue for one that cannot be parsed."""
        kinds = {benchmark.kind.name: benchmark.kind for benchmark in self.benchmarks}
        headlines: dict[str, Headline] = {}
        for kind in kinds.values():
            headlines |= {headline.name: headline for headline in kind.headlines}
        return checked(self.thresholds, list(headlines.values()), self.permutations)

    def check_thresholds(self) -> None:
        """Raises InvalidValue for thresholds that cannot be parsed, or are not measured."""
        for threshold in self.judged:
            for planned in self.benchmarks:
                values = self.permutations[planned.permutation]
                name = threshold.headline.name
                why = planned.kind.absent(planned.spec).get(name)
                if why and threshold.about(values):
                    raise InvalidValue(
                        f"threshold {threshold.text!r} is about a number that cannot be measured:"
                        f" {why}",
                        hint=(
                            "leave it out, or restrict it to permutations with the number:"
                            f" {name}(KEY=VALUE)"
                        ),
                    )

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps of the run: a benchmark has none."""
        return ()

    @property
    def counted(self) -> int:
        """Number of benchmarks without warm-ups."""
        return sum(not benchmark.warm_up for benchmark in self.benchmarks)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "schema_version": wire.SCHEMA_VERSION,
            "kind": KIND,
            "name": self.name,
            "document": self.document,
            "repetitions": self.repetitions,
            "stop_on_failure": self.stop_on_failure,
            "disjoint": self.disjoint,
            "paused": self.paused,
            "thresholds": list(self.thresholds),
            "permutations": list(self.permutations),
            "benchmarks": [
                {
                    **benchmark.document(),
                    "permutation": benchmark.permutation,
                    "repetition": benchmark.repetition,
                }
                for benchmark in self.benchmarks
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BenchmarkPlan:
        """Read what `to_dict` wrote; InvalidValue for anything else."""
        flags = {"stop_on_failure": bool, "disjoint": bool, "paused": bool}
        types = {
            "name": str,
            "document": dict,
            "repetitions": int,
            "permutations": list,
            "benchmarks": list,
        }
        stored = wire.take(data, "the plan", {**types, "thresholds": list, **flags})
        try:
            stored["thresholds"] = tuple(map(str, stored.get("thresholds", ())))
            stored["benchmarks"] = tuple(map(_benchmark, stored["benchmarks"]))
            stored["permutations"] = tuple(map(dict, stored["permutations"]))
            return cls(**stored)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidValue(f"the plan cannot be read: {error}") from error


def _benchmark(stored: Mapping[str, Any]) -> Benchmark:
    places = {"permutation": stored["permutation"], "repetition": stored["repetition"]}
    if not all(isinstance(index, int) for index in places.values()):
        raise InvalidValue("a benchmark of the plan has no number")
    return replace(
        benchmark.read({name: part for name, part in stored.items() if name not in places}),
        **places,
    )
