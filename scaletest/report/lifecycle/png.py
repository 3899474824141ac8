"""The figures as PNG, drawn by matplotlib, imported here only (extra `plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scaletest.analysis.lifecycle.result import LifecycleResult
from scaletest.model.errors import UsageError
from scaletest.render.numbers import plural
from scaletest.report.lifecycle.figures import BINS, Panel, panels

BLUE = "#0068a8"
DOTS_PER_INCH = 110


def save(result: LifecycleResult, names: tuple[str, ...], path: Path) -> None:
    """One picture with a row for each step. UsageError without matplotlib, values or a file."""
    rows = panels(result, names)
    if not rows:
        raise UsageError(
            "there is nothing to draw: no step has values", hint="sample the run first"
        )
    figure = drawn(rows)
    figure.suptitle(plural(len(result.courses), "workload"), fontsize=13)
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror or error}", hint="look at the folder"
        ) from error


def drawn(rows: Sequence[Panel]) -> Any:
    """The rows as a figure of matplotlib; UsageError without it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(
            "a PNG needs matplotlib, which is not installed",
            hint="install it: pip install 'scaletest[plot]'",
        ) from error
    figure = Figure(figsize=(22.0, 1.0 + 2.6 * len(rows)), dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.subplots(len(rows), 2, squeeze=False)
    for pair, panel in zip(axes, rows, strict=True):
        _row(pair, panel)
    return figure


def _row(pair: Any, panel: Panel) -> None:
    left, right = pair
    left.plot(
        [at for at, _ in panel.points],
        [value for _, value in panel.points],
        color=BLUE,
        lw=0.5,
        marker=".",
        markersize=8 if len(panel.points) < 50 else 3,
    )
    left.set_ylim(0, 1.05 * max(value for _, value in panel.points) or 0.001)
    left.set_xlim(0, 1.01 * max(at for at, _ in panel.points) or 1.0)
    left.set_xlabel("submitted after, s")
    left.set_ylabel("s")
    width = (panel.high - panel.low) / BINS
    edges = [panel.low + index * width for index in range(BINS)]
    right.bar(edges, panel.counts, width=width, align="edge", color=BLUE, alpha=0.85)
    right.set_xlim(panel.low, panel.high)
    right.set_xlabel("s")
    right.set_ylabel("workloads")
    left.set_title(panel.title, loc="left", fontsize=9, parse_math=False)
    right.set_title(panel.spread, loc="left", fontsize=9, parse_math=False)
    for axes in pair:
        axes.ticklabel_format(style="plain", useOffset=False)
        axes.set_axisbelow(True)
        axes.grid(color="#e2e6eb")
        axes.spines[["top", "right"]].set_visible(False)
