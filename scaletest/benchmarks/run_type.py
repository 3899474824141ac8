"""The RunType of benchmarks."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from scaletest.benchmarks.folder import BenchmarkFolder
from scaletest.benchmarks.judging import comparison
from scaletest.benchmarks.judging.evaluation import BenchmarkRun, evaluate_benchmarks
from scaletest.model import wire
from scaletest.model.errors import UsageError
from scaletest.runs.folder import RECORDS, RunFolder
from scaletest.runs.run_type import RunType, course
from scaletest.stats.comparison import Contrast
from scaletest.stats.measure import Measure

# Longer records are not read for a list of runs.
MOST_CURVE_BYTES = 1024**2


class BenchmarkType(RunType):
    """Runs of benchmarks."""

    folder = BenchmarkFolder
    curve_title = "first number of each benchmark"

    def curve(self, folder: RunFolder, result: Mapping[str, Any]) -> list[float]:
        """Return the first number of each benchmark that has one.

        Nothing where the records are very long, or damaged.
        """
        rows: list[dict[str, Any]] = []
        with suppress(UsageError):
            if folder.size(RECORDS) <= MOST_CURVE_BYTES:
                rows = [wire.load(line, f"a line of {RECORDS}") for line in folder.lines(RECORDS)]
        firsts = []
        for row in rows:
            headlines = row.get("headlines")
            if isinstance(headlines, dict):
                firsts += [{"first": number} for number in list(headlines.values())[:1]]
        return course(firsts, "first")

    def judge(self, folder: RunFolder) -> BenchmarkRun:
        """Judge the run in a folder; UsageError when it cannot be read."""
        stored = BenchmarkFolder(folder.path).load()
        return evaluate_benchmarks(
            stored.plan,
            stored.results,
            stored.run_result,
            name=folder.name,
            folder=str(folder.path),
            environment=stored.environment,
        )

    def measures(self, judged: BenchmarkRun) -> Sequence[Measure]:
        """Return each number of each permutation; those that say the same are the same."""
        return comparison.measures_of(judged)

    def contrast(self, base: BenchmarkRun, candidate: BenchmarkRun) -> Contrast:
        """Return in what the plans of two runs differ, and what one alone has measured."""
        return comparison.contrast(base, candidate)


RUN_TYPE = BenchmarkType()
