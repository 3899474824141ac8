"""A run of benchmarks on disk: the files of every run, with ended benchmarks as its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaletest.archive.environment import environment
from scaletest.archive.folder import ENVIRONMENT, LOGS, PLAN, RECORDS, RESULT, RunFolder
from scaletest.kinds.benchmark import Ended
from scaletest.kinds.plan import KIND, BenchmarkPlan
from scaletest.model import wire
from scaletest.model.errors import InvalidValue, UsageError


@dataclass(frozen=True, slots=True)
class StoredBenchmarks:
    """ended: by name, the last of each. result: {} when there is none."""

    plan: BenchmarkPlan
    environment: dict[str, Any]
    ended: dict[str, Ended]
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

    def store(self, ended: Ended) -> None:
        """Append a benchmark that has ended, and make sure it is on disk."""
        with self._trouble("written"):
            self._append(RECORDS, [wire.dump(ended.to_dict())])

    def forget(self, stored: StoredBenchmarks) -> None:
        """Rewrite the records to `stored`: a line that was cut off leaves nothing behind."""
        with self._trouble("written"):
            self._replace(RECORDS, (wire.dump(one.to_dict()) for one in stored.ended.values()))

    def benchmarks(self) -> StoredBenchmarks:
        """Read everything; UsageError when this is no run of benchmarks, or cannot be read."""
        try:
            with self._trouble("read"):
                row = self._read(PLAN)
                if row.get("kind") != KIND:
                    raise UsageError(f"{self.path} holds no benchmarks", hint="see: scaletest bench list")
                plan = BenchmarkPlan.from_dict(row)
                lines = [Ended.from_dict(wire.load(line, f"a line of {RECORDS}")) for line in self._lines(RECORDS)]
                found = {one.name: one for one in lines}
                return StoredBenchmarks(plan, self._read(ENVIRONMENT), found, self._read(RESULT))
        except InvalidValue as error:
            raise UsageError(
                f"run {self.name} cannot be read: {error.message}", hint=f"look into {self.path}"
            ) from error


def check(folder: RunFolder) -> None:
    """UsageError or InvalidValue unless the whole run can be read."""
    BenchmarkFolder(folder.path).benchmarks()


def is_benchmark(folder: RunFolder) -> bool:
    """Whether a run is one of benchmarks."""
    try:
        return folder.kind == KIND
    except UsageError:
        return False
