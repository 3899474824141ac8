"""A run of benchmarks on disk: the files of every run, with ended benchmarks as its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaletest.archive.environment import environment
from scaletest.archive.folder import ENVIRONMENT, LOGS, PLAN, RECORDS, RESULT, RunFolder
from scaletest.kinds.benchmark import BenchmarkResult
from scaletest.kinds.plan import KIND, BenchmarkPlan
from scaletest.model import wire
from scaletest.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class StoredBenchmarks:
    """ended: by name, the last of each. result: {} when there is none."""

    plan: BenchmarkPlan
    environment: dict[str, Any]
    ended: dict[str, BenchmarkResult]
    result: dict[str, Any]


class BenchmarkFolder(RunFolder):
    """One run of benchmarks."""

    @property
    def logs(self) -> Path:
        """Where the tools' own output lies, a folder for each benchmark. It is not exported."""
        return self.path / LOGS

    def start(self, plan: BenchmarkPlan, command_line: Sequence[str], more: dict[str, Any]) -> None:
        """Write plan and environment. more: what the executor knows of where it runs."""
        self._write(PLAN, plan.to_dict())
        self._write(ENVIRONMENT, {**environment(command_line), **more})

    def store(self, ended: BenchmarkResult) -> None:
        """Append a benchmark that has ended, and make sure it is on disk."""
        with self._trouble("written"):
            self._append(RECORDS, [wire.dump(ended.to_dict())])

    def forget(self, stored: StoredBenchmarks) -> None:
        """Rewrite the records to `stored`: a line that was cut off leaves nothing behind."""
        with self._trouble("written"):
            self._replace(RECORDS, (wire.dump(one.to_dict()) for one in stored.ended.values()))

    def benchmarks(self) -> StoredBenchmarks:
        """Read everything; UsageError when this is no run of benchmarks, or cannot be read."""
        with self._readable():
            plan = self._benchmark_plan()
            ended = {benchmark.name: benchmark for benchmark in self._ended()}
            return StoredBenchmarks(plan, self._read(ENVIRONMENT), ended, self._read(RESULT))

    def check(self) -> None:
        """UsageError unless the whole run can be read. Never holds more than a benchmark of it."""
        with self._readable():
            self._benchmark_plan()
            for name in (ENVIRONMENT, RESULT):
                self._read(name)
            for _ in self._ended():
                pass

    def _benchmark_plan(self) -> BenchmarkPlan:
        row = self._read(PLAN)
        if row.get("kind") != KIND:
            raise UsageError(f"{self.path} holds no benchmarks", hint="see: scaletest bench list")
        return BenchmarkPlan.from_dict(row)

    def _ended(self) -> Iterator[BenchmarkResult]:
        for line in self._lines(RECORDS):
            yield BenchmarkResult.from_dict(wire.load(line, f"a line of {RECORDS}"))


def is_benchmark(folder: RunFolder) -> bool:
    """Whether a run is one of benchmarks."""
    try:
        return folder.kind == KIND
    except UsageError:
        return False
