"""The RunType of benchmarks."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from scaletest.benchmarks.documents import Benchmark
from scaletest.benchmarks.folder import BenchmarkFolder
from scaletest.benchmarks.judging.evaluation import (
    BenchmarkRun,
    evaluate_benchmarks,
    permutation_text,
)
from scaletest.benchmarks.plan import BenchmarkPlan
from scaletest.model import texts
from scaletest.runs.folder import RunFolder
from scaletest.runs.run_type import RunType
from scaletest.stats.comparison import Contrast, Difference, plan_differences
from scaletest.stats.measure import Measure
from scaletest.stats.repetitions import mean_estimate


class BenchmarkType(RunType):
    """Runs of benchmarks."""

    folder = BenchmarkFolder
    # lists of runs show no curve: benchmarks are not steps of one
    curve_title = ""
    curve_path = ()

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
        """Return each number of each permutation; equal permutations are one."""
        numbers: dict[tuple[tuple[str, Any], ...], dict[str, list[float]]] = defaultdict(dict)
        for benchmark, result in judged.counted:
            # the values, as YAML writes them where they are no numbers
            values = []
            for key, value in judged.plan.permutations[benchmark.permutation].items():
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                values.append((key, value if is_number else texts.as_yaml(value)))
            if result.ok:
                for name, number in result.headlines.items():
                    numbers[tuple(values)].setdefault(name, []).append(number)
        headlines = {headline.name: headline for headline in judged.headlines}
        measures = []
        for place, repeats_by_name in numbers.items():
            for name, repeats in repeats_by_name.items():
                headline = headlines[name]
                measures.append(
                    Measure(
                        name,
                        dict(place),
                        mean_estimate(repeats),
                        headline.unit,
                        headline.higher,
                        repeats=repeats,
                        # what has no better side decides nothing
                        decides=headline.higher is not None,
                        reason="" if len(repeats) > 1 else "two repetitions are needed",
                    )
                )
        return measures

    def contrast(self, base: BenchmarkRun, candidate: BenchmarkRun) -> Contrast:
        """Compare the specs of equally named benchmarks, and list what one run alone measured.

        A benchmark is named by its kind and its permutation.
        """
        old_specs, new_specs = _specs_by_name(base.plan), _specs_by_name(candidate.plan)
        differences: list[Difference] = []
        for name in old_specs.keys() & new_specs.keys():
            fields = {*old_specs[name], *new_specs[name]}
            for found in plan_differences(old_specs[name], new_specs[name], fields, set()):
                differences.append(replace(found, field=f"{found.field} of {name}"))
        return Contrast(differences, sorted(_measured_names(base) ^ _measured_names(candidate)))


def _specs_by_name(plan: BenchmarkPlan) -> dict[str, dict[str, Any]]:
    return {_name(plan, benchmark): benchmark.document()["spec"] for benchmark in plan.benchmarks}


def _measured_names(run: BenchmarkRun) -> set[str]:
    return {_name(run.plan, benchmark) for benchmark, result in run.counted if result.ok}


def _name(plan: BenchmarkPlan, benchmark: Benchmark) -> str:
    values = plan.permutations[benchmark.permutation]
    return f"{benchmark.kind.name} {permutation_text(values)}".strip()


RUN_TYPE = BenchmarkType()
