"""The folder of a run of benchmarks, with ended benchmarks as its records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaletest.kinds.benchmark import BenchmarkResult
from scaletest.kinds.plan import KIND, BenchmarkPlan
from scaletest.model import wire
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.runs.folder import ENVIRONMENT, LOGS, PLAN, RECORDS, RESULT, RunFolder


@dataclass(frozen=True, slots=True)
class StoredBenchmarks:
    """ended: by name, the last of each. result: {} when there is none."""

    plan: BenchmarkPlan
    environment: dict[str, Any]
    ended: dict[str, BenchmarkResult]
    result: dict[str, Any]


class BenchmarkFolder:
    """The ended benchmarks of one run on disk."""

    def __init__(self, files: RunFolder) -> None:
        self.files = files
        self.path, self.name = files.path, files.name

    @property
    def logs(self) -> Path:
        """Where the tools' own output lies, a folder for each benchmark. It is not exported."""
        return self.path / LOGS

    def store(self, ended: BenchmarkResult) -> None:
        """Append a benchmark that has ended, and make sure it is on disk."""
        self.files.append(RECORDS, [wire.dump(ended.to_dict())])

    def forget(self, stored: StoredBenchmarks) -> None:
        """Rewrite the records to `stored`: a line that was cut off leaves nothing behind."""
        self.files.replace(RECORDS, (wire.dump(each.to_dict()) for each in stored.ended.values()))

    def load(self) -> StoredBenchmarks:
        """Read everything; UsageError when this is no run of benchmarks, or cannot be read."""
        with self.files.readable():
            plan = self._plan()
            ended = {benchmark.name: benchmark for benchmark in self._ended()}
            environment, result = self.files.read(ENVIRONMENT), self.files.read(RESULT)
            return StoredBenchmarks(plan, environment, ended, result)

    def check(self) -> None:
        """UsageError unless the whole run can be read. Never holds more than a benchmark of it."""
        with self.files.readable():
            self._plan()
            for name in (ENVIRONMENT, RESULT):
                self.files.read(name)
            for _ in self._ended():
                pass

    def _plan(self) -> BenchmarkPlan:
        plan = self.files.read(PLAN)
        if plan.get("kind") != KIND:
            raise UsageError(f"{self.path} holds no benchmarks", hint="see: scaletest bench list")
        return BenchmarkPlan.from_dict(plan)

    def _ended(self) -> Iterator[BenchmarkResult]:
        for line in self.files.lines(RECORDS):
            yield BenchmarkResult.from_dict(wire.load(line, f"a line of {RECORDS}"))


def is_benchmark(folder: RunFolder) -> bool:
    """Whether a run is one of benchmarks."""
    try:
        return folder.kind == KIND
    except (UsageError, InvalidValue):
        return False
