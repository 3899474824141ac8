"""How a comparison of two runs of benchmarks is shown."""

from __future__ import annotations

from collections.abc import Mapping

from scaletest.analysis.repetitions import BenchmarkComparison, RepeatedChange
from scaletest.render.text import clean
from scaletest.render.units import quantity


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
