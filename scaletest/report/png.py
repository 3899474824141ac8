"""The scaling chart as a picture; imports matplotlib, of the extra `plot`, only here."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from scaletest.analysis.evaluation import Evaluation
from scaletest.model.errors import UsageError
from scaletest.render.text import clean
from scaletest.report import words
from scaletest.report.figures.growth import Curve, curve_of, rate_axis

BLUE, ORANGE, GREY, PURPLE, GREEN = "#0068a8", "#c2410c", "#7b8794", "#a3195b", "#00745a"
INCHES, DOTS_PER_INCH = (8.0, 4.8), 200


def save(result: Evaluation, path: Path) -> None:
    """Write the chart; UsageError without matplotlib or data, or when the file is not writable."""
    data = curve_of(result)
    if data is None:
        raise UsageError("the run has no throughput to draw", hint="run it again to the end")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(
            "a PNG needs matplotlib, which is not installed",
            hint="install it: pip install 'scaletest[plot]'",
        ) from error
    figure = Figure(figsize=INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.subplots()
    _draw(axes, data)
    axes.set_title(_title(result), loc="left", fontsize=11, wrap=True, parse_math=False)
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror or error}", hint="give another --png FILE"
        ) from error


def _draw(axes: Any, data: Curve) -> None:
    _draw_curves(axes, data)
    _draw_measured(axes, data)
    _draw_limits(axes, data)
    _draw_axes(axes, data)
    axes.legend(frameon=False)


def _draw_curves(axes: Any, data: Curve) -> None:
    """The ideal, and the law as far as it was tested and beyond."""
    curve = data.grid()
    axes.plot(curve, [data.base * n for n in curve], "--", color=GREY, label="ideal")
    if data.law:
        tested = data.tested()
        beyond = data.beyond()
        axes.plot(
            tested, [data.law.at(n) for n in tested], color=ORANGE, label=f"law: {data.law.name}"
        )
        axes.plot(beyond, [data.law.at(n) for n in beyond], ":", color=ORANGE)
        axes.axvspan(data.last, data.end, color=GREY, alpha=0.15, lw=0, label="not tested")


def _draw_measured(axes: Any, data: Curve) -> None:
    rates = [step.throughput for step in data.steps]
    counts = [step.level for step in data.steps]
    halves = [rate.half_width if math.isfinite(rate.half_width) else 0.0 for rate in rates]
    axes.errorbar(
        counts,
        [rate.per_s for rate in rates],
        halves,
        fmt="o",
        color=BLUE,
        capsize=4,
        label="measured, 95 % interval",
    )


def _draw_limits(axes: Any, data: Curve) -> None:
    """Upright lines at cores, devices and the peak."""
    for style, (label, count) in zip(("-.", ":"), data.limits.items(), strict=False):
        axes.axvline(count, ls=style, lw=1.2, color=GREEN, label=label)
    if data.peak:
        axes.axvline(data.peak, ls="--", lw=1.2, color=PURPLE, label="peak")


def _draw_axes(axes: Any, data: Curve) -> None:
    counts = [step.level for step in data.steps]
    rate = rate_axis(data)
    if data.log:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
    axes.set_xlim(counts[0] * 0.9 if data.log else 0, data.end)
    axes.set_ylim(rate.low, rate.high)
    axes.minorticks_off()
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.set_yticks([value for value, _ in rate.labelled], [name for _, name in rate.labelled])
    axes.set_xlabel("workers")
    axes.set_ylabel("requests/s")
    axes.grid(color="#e2e6eb")
    axes.spines[["top", "right"]].set_visible(False)


def _title(result: Evaluation) -> str:
    return f"{clean(words.heading(result), 70)}: {result.verdict.kind}".replace("\n", " ")
