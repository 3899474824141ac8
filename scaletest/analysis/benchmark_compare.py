"""Two runs of benchmarks side by side, by permutation and headline. What has no better side is not
compared.
"""

from __future__ import annotations

from typing import Any

from scaletest.analysis.benchmark_run import BenchmarkRun, permutation_text
from scaletest.analysis.repetitions import BenchmarkComparison, RepeatedPair, compare, gathered
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.fields import as_yaml
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.model import Verdict, VerdictKind


def compare_benchmarks(
    base: BenchmarkRun, candidate: BenchmarkRun, tolerance: float, *, force: bool = False
) -> BenchmarkComparison:
    """The comparison of what both have. Runs whose specs differ beside what varies are compared
    only with `force`.
    """
    foreign = _differences(base, candidate)
    if foreign and not force:
        verdict = Verdict(VerdictKind.INVALID, foreign, "measure the same, or add --force")
        return BenchmarkComparison(tolerance, (), (), (), verdict)
    ours, theirs = _values(base), _values(candidate)
    headlines = {each.name: each for each in (*base.headlines, *candidate.headlines)}
    pairs = []
    for name, numbers in ours.items():
        for headline, values in numbers.items():
            higher = headlines[headline].higher
            others = theirs.get(name, {}).get(headline)
            if higher is not None and others:
                pairs.append(RepeatedPair(name, headline, higher, values, others))
    only_base = [name for name in ours if name not in theirs]
    only_candidate = [name for name in theirs if name not in ours]
    return compare(pairs, tolerance, only_base, only_candidate)


def _differences(base: BenchmarkRun, candidate: BenchmarkRun) -> str:
    """The first difference between benchmarks of one name; "" when there is none."""
    ours, theirs = _specs(base.plan), _specs(candidate.plan)
    for name in ours.keys() & theirs.keys():
        for option in ours[name].keys() | theirs[name].keys():
            pair = ours[name].get(option), theirs[name].get(option)
            if pair[0] != pair[1]:
                shown = [_shown(option, value) for value in pair]
                return f"{name} was measured with {shown[0]} and with {shown[1]}"
    return ""


def _shown(option: str, value: object) -> str:
    if value is None:
        return f"no {option}"
    return f"{option} {as_yaml(value)}"


def _specs(plan: BenchmarkPlan) -> dict[str, dict[str, Any]]:
    return {_name(plan, each): each.document()["spec"] for each in plan.benchmarks}


def _name(plan: BenchmarkPlan, benchmark: Benchmark) -> str:
    """Its kind and its permutation."""
    values = plan.permutations[benchmark.permutation]
    return f"{benchmark.kind.name} {permutation_text(values)}".strip()


def _values(run: BenchmarkRun) -> dict[str, dict[str, list[float]]]:
    """Values by the name of the permutation, and headline."""
    names = {each.permutation: _name(run.plan, each) for each in run.plan.benchmarks}
    succeeded = [(each.permutation, ended.headlines) for each, ended in run.counted if ended.ok]
    by_name: dict[str, dict[str, list[float]]] = {}
    for number, headlines in gathered(succeeded).items():
        # permutations that say the same are the same
        for headline, values in headlines.items():
            by_name.setdefault(names[number], {}).setdefault(headline, []).extend(values)
    return by_name
