"""Two runs of benchmarks side by side, by permutation and headline. What has no better side is not
compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scaletest.analysis.repetitions import (
    BenchmarkComparison,
    RepeatedChange,
    RepeatedPair,
    compare,
    gathered,
)
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.fields import as_yaml
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.model import Verdict, VerdictKind
from scaletest.render.text import clean
from scaletest.render.units import quantity
from scaletest.report.benchmarks import BenchmarkRun, words


def compared(
    base: BenchmarkRun, candidate: BenchmarkRun, tolerance: float, *, force: bool = False
) -> BenchmarkComparison:
    """The comparison of what both have. Runs whose specs differ beside what varies are compared
    only with `force`.
    """
    foreign = _differences(base, candidate)
    if foreign and not force:
        return BenchmarkComparison(
            tolerance,
            (),
            (),
            (),
            Verdict(VerdictKind.INVALID, foreign, "measure the same, or add --force"),
        )
    ours, theirs = _values(base), _values(candidate)
    judged = {
        one.name: one
        for run in (base, candidate)
        for one in run.headlines
        if one.higher is not None
    }
    pairs = [
        RepeatedPair(what, name, bool(judged[name].higher), values, theirs[what][name])
        for what, found in ours.items()
        for name, values in found.items()
        if name in judged and name in theirs.get(what, {})
    ]
    return compare(
        pairs,
        tolerance,
        [what for what in ours if what not in theirs],
        [what for what in theirs if what not in ours],
    )


def lines(found: BenchmarkComparison, units: Mapping[str, str]) -> list[str]:
    """For a terminal. units: by headline."""
    titles = ["permutation", "number", "base", "candidate", "ratio (95 %)", "result"]
    cells = [titles, *(_cells(row, units.get(row.headline, "")) for row in found.rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(titles) - 1)]
    text = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in cells
    ]
    text += [f"note: only in the base: {clean(what)}" for what in found.only_base]
    text += [f"note: only in the candidate: {clean(what)}" for what in found.only_candidate]
    text.append(f"{found.verdict.kind}  {clean(found.verdict.reason)}")
    return [*text, f"  what to do: {found.verdict.remedy}"] if found.verdict.remedy else text


def _cells(row: RepeatedChange, unit: str) -> list[str]:
    ratio = row.ratio
    shown = f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio else "n/a"
    result = f"{row.change}{f': {row.reason}' if row.reason else ''}"
    means = (quantity(row.base.mean, unit), quantity(row.candidate.mean, unit))
    return [clean(row.name, 60), row.headline, *means, shown, result]


def _differences(base: BenchmarkRun, candidate: BenchmarkRun) -> str:
    """The first difference in what was measured under one name; "" when there is none."""
    ours, theirs = _specs(base), _specs(candidate)
    for what in ours.keys() & theirs.keys():
        for name in ours[what].keys() | theirs[what].keys():
            pair = ours[what].get(name), theirs[what].get(name)
            if pair[0] != pair[1]:
                shown = [
                    f"{name} {as_yaml(value)}" if value is not None else f"no {name}"
                    for value in pair
                ]
                return f"{what} was measured with {shown[0]} and with {shown[1]}"
    return ""


def _specs(run: BenchmarkRun) -> dict[str, dict[str, Any]]:
    plan = run.stored.plan
    return {_what(plan, one): one.document()["spec"] for one in plan.benchmarks}


def _what(plan: BenchmarkPlan, one: Benchmark) -> str:
    return f"{one.kind.name} {words(plan.permutations[one.permutation])}".strip()


def _values(run: BenchmarkRun) -> dict[str, dict[str, list[float]]]:
    """Values by what was measured, and headline."""
    plan = run.stored.plan
    names = {one.permutation: _what(plan, one) for one in plan.benchmarks}
    found = gathered([(one.permutation, ended.headlines) for one, ended in run.counted if ended.ok])
    by: dict[str, dict[str, list[float]]] = {}
    for number, headlines in found.items():
        # permutations that say the same are the same
        for name, values in headlines.items():
            by.setdefault(names[number], {}).setdefault(name, []).extend(values)
    return by
