"""Benchmarks as a run type."""

from __future__ import annotations

from typing import Any

from scaletest.analysis.benchmark_run import BenchmarkRun, evaluate_benchmarks
from scaletest.benchmarks.folder import BenchmarkFolder
from scaletest.kinds.plan import KIND, BenchmarkPlan
from scaletest.runs.folder import COMMON, RunFolder


class BenchmarkType:
    """What the rest of the product asks about them."""

    name = KIND
    layout = COMMON

    def plan(self, document: dict[str, Any]) -> BenchmarkPlan:
        """Read and check a plan; InvalidValue names the field."""
        return BenchmarkPlan.from_dict(document)

    def check(self, folder: RunFolder) -> None:
        """UsageError or InvalidValue unless the whole run can be read."""
        BenchmarkFolder(folder).check()


RUN_TYPE = BenchmarkType()


def judge(folder: BenchmarkFolder) -> BenchmarkRun:
    """The run in a folder; UsageError when it cannot be read."""
    stored = folder.load()
    return evaluate_benchmarks(
        stored.plan,
        stored.ended,
        stored.result,
        name=folder.name,
        folder=str(folder.path),
        environment=stored.environment,
    )
