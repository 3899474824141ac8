"""Benchmarks as a run type, and the folder of their run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from scaletest.benchmarks.benchmark import BenchmarkResult
from scaletest.benchmarks.benchmark_set import KIND, BenchmarkPlan
from scaletest.benchmarks.judging.benchmark_run import BenchmarkRun, contrast, evaluate_benchmarks
from scaletest.benchmarks.kinds.kind import Headline
from scaletest.model import wire
from scaletest.model.errors import UsageError
from scaletest.model.texts import as_yaml
from scaletest.runs.folder import ENVIRONMENT, LOGS, RECORDS, RESULT, RunFolder
from scaletest.runs.run_type import RunType, course
from scaletest.runs.typed_folder import TypedFolder
from scaletest.stats.comparison import Contrast, Measure, Place
from scaletest.stats.estimate import mean_of

# Of the records that a list reads.
MOST_CURVE_BYTES = 1024**2
Pair = tuple[str, str | int | float]


@dataclass(frozen=True, slots=True)
class StoredBenchmarks:
    """ended: by name, the last of each. result: {} when there is none."""

    plan: BenchmarkPlan
    environment: dict[str, Any]
    ended: dict[str, BenchmarkResult]
    result: dict[str, Any]


def _read_ended(line: str) -> BenchmarkResult:
    return BenchmarkResult.from_dict(wire.load(line, f"a line of {RECORDS}"))


class BenchmarkFolder(TypedFolder[BenchmarkPlan]):
    """The ended benchmarks of one run on disk."""

    run_type = KIND
    plan_type = BenchmarkPlan
    readers: ClassVar = {RECORDS: _read_ended}
    expected = "benchmarks"
    remedy = "see: scaletest runs list --type benchmark"

    @property
    def logs(self) -> Path:
        """Where the tools' own output lies, a folder for each benchmark."""
        return self.path / LOGS

    def store(self, ended: BenchmarkResult) -> None:
        """Append a benchmark that has ended, and make sure it is on disk."""
        self.append(RECORDS, [wire.dump(ended.to_dict())])

    def forget(self, stored: StoredBenchmarks) -> None:
        """Rewrite the records to `stored`: a line that was cut off leaves nothing behind."""
        self.replace(RECORDS, (wire.dump(each.to_dict()) for each in stored.ended.values()))

    def load(self) -> StoredBenchmarks:
        """Read everything; UsageError when this is no run of benchmarks, or cannot be read."""
        with self.readable():
            plan = self.plan()
            ended = {benchmark.name: benchmark for benchmark in self.rows(RECORDS)}
            return StoredBenchmarks(plan, self.read(ENVIRONMENT), ended, self.read(RESULT))


class BenchmarkType(RunType):
    """What the rest of the product asks about them."""

    folder = BenchmarkFolder
    curve_title = "first number of each benchmark"

    def curve(self, folder: RunFolder, result: Mapping[str, Any]) -> list[float]:
        """The first number of each benchmark that has one; none where the records are very long,
        or damaged.
        """
        rows: list[dict[str, Any]] = []
        with suppress(UsageError):
            if folder.size(RECORDS) <= MOST_CURVE_BYTES:
                rows = [wire.load(line, f"a line of {RECORDS}") for line in folder.lines(RECORDS)]
        headlines = [each.get("headlines") for each in rows]
        firsts = (list(each.values())[:1] for each in headlines if isinstance(each, dict))
        return course([{"first": number} for number in chain.from_iterable(firsts)], "first")

    def judge(self, folder: RunFolder) -> BenchmarkRun:
        """The run in a folder; UsageError when it cannot be read."""
        stored = BenchmarkFolder(folder.path).load()
        return evaluate_benchmarks(
            stored.plan,
            stored.ended,
            stored.result,
            name=folder.name,
            folder=str(folder.path),
            environment=stored.environment,
        )

    def measures(self, judged: BenchmarkRun) -> Sequence[Measure]:
        """Each number of each permutation; permutations that say the same are the same."""
        values: dict[tuple[Pair, ...], dict[str, list[float]]] = {}
        for benchmark, ended in judged.counted:
            where = tuple(
                (key, _plain(setting))
                for key, setting in judged.plan.permutations[benchmark.permutation].items()
            )
            for name, number in ended.headlines.items() if ended.ok else ():
                values.setdefault(where, {}).setdefault(name, []).append(number)
        headlines = {headline.name: headline for headline in judged.headlines}
        measures: list[Measure] = []
        for where, numbers in values.items():
            measures += [
                _measure(headlines[name], dict(where), repeats) for name, repeats in numbers.items()
            ]
        return measures

    def contrast(self, base: BenchmarkRun, candidate: BenchmarkRun) -> Contrast:
        """In what the plans of two runs differ, and what one of them has not measured."""
        return contrast(base, candidate)


RUN_TYPE = BenchmarkType()


def _measure(headline: Headline, where: Place, repeats: Sequence[float]) -> Measure:
    return Measure(
        headline.name,
        where,
        mean_of(repeats),
        headline.unit,
        headline.higher,
        repeats=repeats,
        decides=headline.higher is not None,
        reason="" if len(repeats) > 1 else "two repetitions are needed",
    )


def _plain(value: Any) -> str | int | float:
    """A value of a permutation, as YAML writes it where it is no number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else as_yaml(value)
