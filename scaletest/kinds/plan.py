"""What a run of benchmarks was to do: every benchmark with its values, in the order in which they are started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scaletest.kinds import benchmark
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.threshold import BenchmarkThreshold, checked
from scaletest.model import wire
from scaletest.model.errors import InvalidValue

KIND = "benchmark"


@dataclass(frozen=True, slots=True)
class BenchmarkPlan:
    """name: of the set. permutations: the values of each, what samples chose included; document: as it was given.

    stop_on_failure, disjoint, paused, thresholds: what the set says of these.
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
        """What is measured, in words."""
        kinds = sorted({one.kind.name for one in self.benchmarks})
        return f"{', '.join(kinds)}: {len(self.permutations)} x {self.repetitions}"

    @property
    def judged(self) -> tuple[BenchmarkThreshold, ...]:
        """The thresholds, read. InvalidValue for one that cannot be."""
        kinds = {one.kind.name: one.kind for one in self.benchmarks}
        headlines = {one.name: one for kind in kinds.values() for one in kind.headlines}
        return checked(self.thresholds, list(headlines.values()), self.permutations)

    def check_thresholds(self) -> None:
        """Raises InvalidValue for a threshold that cannot be read, or is about a number that cannot be measured."""
        for threshold in self.judged:
            for planned in self.benchmarks:
                values = self.permutations[planned.permutation]
                name = threshold.headline.name
                why = planned.kind.absent(planned.spec).get(name)
                if why and threshold.about(values):
                    raise InvalidValue(
                        f"threshold {threshold.text!r} is about a number that cannot be measured: {why}",
                        hint=f"leave it out, or name the permutations that have the number: {name}(KEY=VALUE)",
                    )

    @property
    def steps(self) -> tuple[int, ...]:
        """None: a benchmark has no steps."""
        return ()

    @property
    def counted(self) -> int:
        """Benchmarks that are no warm-up."""
        return sum(not one.warm_up for one in self.benchmarks)

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
                {**one.document(), "permutation": one.permutation, "repetition": one.repetition}
                for one in self.benchmarks
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BenchmarkPlan:
        """Read what `to_dict` wrote; InvalidValue on anything else."""
        flags = {"stop_on_failure": bool, "disjoint": bool, "paused": bool}
        types = {"name": str, "document": dict, "repetitions": int, "permutations": list, "benchmarks": list}
        row = wire.take(data, "the plan", {**types, "thresholds": list, **flags})
        try:
            row["thresholds"] = tuple(map(str, row.get("thresholds", ())))
            row["benchmarks"] = tuple(map(_benchmark, row["benchmarks"]))
            row["permutations"] = tuple(dict(one) for one in row["permutations"])
            return cls(**row)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidValue(f"the plan cannot be read: {error}") from error


def _benchmark(row: Mapping[str, Any]) -> Benchmark:
    places = {"permutation": row["permutation"], "repetition": row["repetition"]}
    if not all(isinstance(value, int) for value in places.values()):
        raise InvalidValue("a benchmark of the plan has no number")
    return replace(benchmark.read({name: value for name, value in row.items() if name not in places}), **places)
