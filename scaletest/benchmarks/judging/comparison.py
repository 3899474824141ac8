"""Compare two runs of benchmarks by permutation and headline."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from scaletest.benchmarks.documents.benchmark import Benchmark
from scaletest.benchmarks.judging.evaluation import BenchmarkRun, permutation_text
from scaletest.benchmarks.plan import BenchmarkPlan
from scaletest.model.texts import as_yaml
from scaletest.stats.comparison import Contrast, Difference, differences
from scaletest.stats.measure import Measure
from scaletest.stats.repetitions import mean_of


def measures_of(run: BenchmarkRun) -> Sequence[Measure]:
    """Return each number of each permutation; permutations that say the same are the same.

    What has no better side decides nothing.
    """
    numbers: dict[tuple[tuple[str, Any], ...], dict[str, list[float]]] = defaultdict(dict)
    for benchmark, result in run.counted:
        # the values, as YAML writes them where they are no numbers
        place = []
        for key, value in run.plan.permutations[benchmark.permutation].items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            place.append((key, value if is_number else as_yaml(value)))
        if result.ok:
            for name, number in result.headlines.items():
                numbers[tuple(place)].setdefault(name, []).append(number)
    headlines = {headline.name: headline for headline in run.headlines}
    measures = []
    for values, repeats_by_name in numbers.items():
        for name, repeats in repeats_by_name.items():
            headline = headlines[name]
            measures.append(
                Measure(
                    name,
                    dict(values),
                    mean_of(repeats),
                    headline.unit,
                    headline.higher,
                    repeats=repeats,
                    decides=headline.higher is not None,
                    reason="" if len(repeats) > 1 else "two repetitions are needed",
                )
            )
    return measures


def contrast(base: BenchmarkRun, candidate: BenchmarkRun) -> Contrast:
    """Return in what the specs of equally named benchmarks differ, and what one run alone measured.

    A benchmark is named by its kind and its permutation.
    """
    ours, theirs = _specs(base.plan), _specs(candidate.plan)
    differing: list[Difference] = []
    for name in ours.keys() & theirs.keys():
        specs = differences(ours[name], theirs[name], {*ours[name], *theirs[name]}, set())
        differing += [replace(found, field=f"{found.field} of {name}") for found in specs]
    return Contrast(differing, sorted(_measured_names(base) ^ _measured_names(candidate)))


def _specs(plan: BenchmarkPlan) -> dict[str, dict[str, Any]]:
    return {_name(plan, benchmark): benchmark.document()["spec"] for benchmark in plan.benchmarks}


def _measured_names(run: BenchmarkRun) -> set[str]:
    return {_name(run.plan, benchmark) for benchmark, result in run.counted if result.ok}


def _name(plan: BenchmarkPlan, benchmark: Benchmark) -> str:
    values = plan.permutations[benchmark.permutation]
    return f"{benchmark.kind.name} {permutation_text(values)}".strip()
