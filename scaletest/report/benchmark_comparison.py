"""Two runs of benchmarks side by side, by permutation and headline. What has no better side is not compared."""

from __future__ import annotations

from collections.abc import Mapping

from scaletest.analysis.repetitions import Compared, Comparison, Pair, compare, gathered
from scaletest.render.text import clean
from scaletest.render.units import quantity
from scaletest.report.benchmarks import BenchmarkRun, words


def compared(base: BenchmarkRun, candidate: BenchmarkRun, tolerance: float) -> Comparison:
    """The comparison of what both have."""
    ours, theirs = _values(base), _values(candidate)
    judged = {one.name: one for run in (base, candidate) for one in run.headlines if one.higher is not None}
    pairs = [
        Pair(what, name, bool(judged[name].higher), values, theirs[what][name])
        for what, found in ours.items()
        for name, values in found.items()
        if name in judged and name in theirs.get(what, {})
    ]
    return compare(
        pairs, tolerance, [what for what in ours if what not in theirs], [what for what in theirs if what not in ours]
    )


def lines(found: Comparison, units: Mapping[str, str]) -> list[str]:
    """For a terminal. units: by headline."""
    titles = ["permutation", "number", "base", "candidate", "ratio (95 %)", "result"]
    cells = [titles, *(_cells(row, units.get(row.headline, "")) for row in found.rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(titles) - 1)]
    text = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]) for row in cells
    ]
    text += [f"note: only in the base: {clean(what)}" for what in found.only_base]
    text += [f"note: only in the candidate: {clean(what)}" for what in found.only_candidate]
    text.append(f"{found.verdict.kind}  {clean(found.verdict.reason)}")
    return [*text, f"  what to do: {found.verdict.remedy}"] if found.verdict.remedy else text


def _cells(row: Compared, unit: str) -> list[str]:
    ratio = row.ratio
    shown = f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio else "n/a"
    result = f"{row.change}{f': {row.reason}' if row.reason else ''}"
    means = (quantity(row.base.mean, unit), quantity(row.candidate.mean, unit))
    return [clean(row.what, 60), row.headline, *means, shown, result]


def _values(run: BenchmarkRun) -> dict[str, dict[str, list[float]]]:
    """Values by what was measured: the kind and the whole spec, so that equal words of different sets do not meet."""
    plan = run.stored.plan
    names = {}
    for one in plan.benchmarks:
        values = plan.permutations[one.permutation]
        names[one.permutation] = f"{one.kind.name} {words(values)}".strip()
    found = gathered([(one.permutation, ended.headlines) for one, ended in run.counted if ended.ok])
    return {names[number]: values for number, values in found.items()}
