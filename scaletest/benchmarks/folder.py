"""Read and write the folder of a run of benchmarks, with their results as its records."""

from dataclasses import dataclass
from typing import Any, ClassVar

from scaletest.benchmarks.documents import BenchmarkResult
from scaletest.benchmarks.plan import KIND, BenchmarkPlan
from scaletest.model import wire
from scaletest.runs.folder import ENVIRONMENT, RECORDS, RESULT, TypedFolder


@dataclass(frozen=True, slots=True)
class StoredBenchmarks:
    """A run as it lies on disk."""

    plan: BenchmarkPlan
    environment: dict[str, Any]
    results: dict[str, BenchmarkResult]  # by name, the last of each
    run_result: dict[str, Any]  # {} when there is none


class BenchmarkFolder(TypedFolder[BenchmarkPlan]):
    """The ended benchmarks of one run on disk."""

    run_type = KIND
    plan_type = BenchmarkPlan
    readers: ClassVar = {
        RECORDS: lambda line: BenchmarkResult.from_dict(wire.load(line, f"a line of {RECORDS}"))
    }
    expected = "benchmarks"
    remedy = "see: scaletest runs list --type benchmark"

    def store(self, result: BenchmarkResult) -> None:
        """Append a benchmark that has ended, and make sure it is on disk."""
        self.append(RECORDS, [wire.dump(result.to_dict())])

    def rewrite_records(self, stored: StoredBenchmarks) -> None:
        """Write the records anew: a line that was cut off must not stand before the next one."""
        self.replace(RECORDS, (wire.dump(result.to_dict()) for result in stored.results.values()))

    def load(self) -> StoredBenchmarks:
        """Read everything; UsageError when this is not a run of benchmarks, or cannot be read."""
        with self.readable():
            return StoredBenchmarks(
                self.plan(),
                self.read(ENVIRONMENT),
                {result.name: result for result in self.rows(RECORDS)},
                self.read(RESULT),
            )
