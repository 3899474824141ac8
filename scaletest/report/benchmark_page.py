"""A run of benchmarks as one HTML file: no script, nothing from elsewhere, readable in the dark and
on paper.
"""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from scaletest.kinds.benchmark import BenchmarkResult
from scaletest.kinds.fields import as_yaml
from scaletest.kinds.kind import Headline
from scaletest.render import ticks
from scaletest.render.numbers import duration
from scaletest.render.style import CHART, PALETTE
from scaletest.render.svg import CHARACTER, Axis, Chart
from scaletest.render.text import Markup, clean
from scaletest.render.units import quantity_measured, scale
from scaletest.report.benchmarks import BenchmarkRun, Row, networks, table, time_rows

WIDTH, HEIGHT = 380.0, 250.0
# So many failures are shown whole, and so many permutations are drawn.
MOST_FAILURES, MOST_DRAWN = 20, 200
# An interval of two repetitions may be many times its mean; the axis does not follow it beyond
# this.
HIGHEST = 1.6


def page(run: BenchmarkRun) -> str:
    """The whole file."""
    pages = Environment(
        loader=PackageLoader("scaletest.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_safe,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    titles, lines = table(run)
    plan, failures = run.stored.plan, run.failures
    took = sum(max(0.0, ended.finished_s - ended.started_s) for _, ended in run.counted)
    made_on = {
        key: value
        for key, value in run.stored.environment.items()
        if isinstance(value, str) and value
    }
    return pages.get_template("benchmarks.html").render(
        style=Markup(PALETTE + CHART),
        name=plan.name,
        verdict=run.verdict,
        facts=[
            ("measured", str(len(run.counted) - len(failures))),
            ("failed", str(len(failures))),
            ("not measured", str(plan.counted - len(run.counted))),
            ("measuring took", duration(took)),
        ],
        titles=titles,
        lines=lines,
        repeated=any(row.good > 1 for row in run.rows),
        thresholds=[(str(one.kind), one.text, one.reason) for one in run.thresholds],
        charts=charts(run),
        failures=[_failure(one) for one in failures[:MOST_FAILURES]],
        left_out=max(0, len(failures) - MOST_FAILURES),
        times=time_rows(run)[:MOST_DRAWN],
        notes=run.notes,
        run=[("run", run.name), ("kinds", plan.workload), ("network", "; ".join(networks(run)))],
        made_on=[(key.replace("_", " "), clean(value, 300)) for key, value in made_on.items()],
    )


def charts(run: BenchmarkRun) -> list[Chart]:
    """One a number, over the permutations; none where there is nothing to compare."""
    rows = run.rows[:MOST_DRAWN]
    return [
        _chart(run, one, rows)
        for one in run.headlines
        if sum(one.name in row.summaries for row in rows) > 1
    ]


def _chart(run: BenchmarkRun, one: Headline, rows: Sequence[Row]) -> Chart:
    found = {
        number: row.summaries[one.name]
        for number, row in enumerate(rows)
        if one.name in row.summaries
    }
    top = max(summary.most for summary in found.values()) or 1.0
    high = min(
        HIGHEST * top,
        max([top, *(row.mean + row.half_width for row in found.values() if row.count > 1)]),
    )
    size, unit = scale(top, one.unit)
    chart = Chart(
        id=f"chart-{one.name}",
        title=f"{one.name}, {unit}" if unit else one.name,
        description=(
            f"{one.help} Mean, 95 % interval and single values at each permutation, in the order of"
            " the table."
        ),
        x=_across(rows),
        y=Axis(unit or one.name, 0.0, ticks.ceiling(high / size)),
        width=WIDTH,
        height=HEIGHT,
    )
    singles: dict[int, list[float]] = {}
    for benchmark, ended in run.counted:
        if ended.ok and one.name in ended.headlines:
            singles.setdefault(benchmark.permutation, []).append(ended.headlines[one.name])
    for number, summary in found.items():
        if summary.count > 1:
            low, high = (
                max(0.0, summary.mean - summary.half_width),
                summary.mean + summary.half_width,
            )
            chart.error(number, low / size, high / size, "c-error")
            for value in singles.get(number, []):
                chart.dot(number, value / size, "c-faint", radius=2.5)
        tip = (
            f"{rows[number].what}: {quantity_measured(summary.mean, summary.half_width, one.unit)}"
        )
        chart.dot(number, summary.mean / size, "c-dot", clean(tip, 200))
    return chart


def _across(rows: Sequence[Row]) -> Axis:
    """The permutations side by side: by their values when one key alone varies, else by their
    numbers.
    """
    keys = {key for row in rows for key in row.values}
    plain = [next(iter(row.values.values())) if len(row.values) == 1 else None for row in rows]
    named = len(keys) == 1 and all(isinstance(value, str | int | float) for value in plain)
    names = [
        clean(as_yaml(value), 24) if named else str(row.number + 1)
        for value, row in zip(plain, rows, strict=True)
    ]
    label = next(iter(keys)) if named else "permutation, in the table's order"
    room = (WIDTH - 80) / (CHARACTER * (2 + max(map(len, names))))
    every = max(1, -(-len(rows) // max(1, int(room))))
    marks = range(0, len(rows), every)
    return Axis(
        label,
        -0.5,
        len(rows) - 0.5,
        marks=list(map(float, marks)),
        names=[names[mark] for mark in marks],
    )


def _failure(ended: BenchmarkResult) -> tuple[str, ...]:
    name, why = ended.name, str(ended.failure or "failed")
    return (
        name,
        why,
        clean(ended.message, 300),
        "\n".join(map(clean, ended.lines)),
        clean(ended.advice, 300),
    )


def _safe(value: object) -> object:
    """Foreign text printable; markup and numbers as they are."""
    return clean(value) if type(value) is str else value
