"""What a page shows of a run of benchmarks."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.analysis.benchmark_run import BenchmarkRun, MeasuredPermutation
from scaletest.kinds.benchmark import BenchmarkResult
from scaletest.kinds.fields import as_yaml
from scaletest.kinds.kind import Headline
from scaletest.render import svg
from scaletest.render.contents import Block, Charts, Facts, Section, Table, Text
from scaletest.render.numbers import duration, quantity_measured, scale
from scaletest.render.svg import CHARACTER, Axis, Chart
from scaletest.render.text import clean
from scaletest.report.benchmark.summary import networks, repeated, table, time_rows

WIDTH, HEIGHT = 380.0, 250.0
# So many failures are shown whole, and so many permutations are drawn.
MOST_FAILURES, MOST_DRAWN = 20, 200
# An interval of two repetitions may be many times its mean; the axis does not follow it beyond
# this.
HIGHEST = 1.6


def took_s(run: BenchmarkRun) -> float:
    """Seconds that all benchmarks took together."""
    return sum(max(0.0, ended.finished_s - ended.started_s) for _, ended in run.counted)


def facts(run: BenchmarkRun) -> list[tuple[str, str]]:
    """The few numbers that stand beside the verdict."""
    return [
        ("measured", str(len(run.counted) - len(run.failures))),
        ("failed", str(len(run.failures))),
        ("not measured", str(run.plan.counted - len(run.counted))),
        ("measuring took", duration(took_s(run))),
    ]


def sections(run: BenchmarkRun) -> list[Section]:
    """All sections that have anything to show."""
    plan = [("kinds", run.plan.workload), ("network", "; ".join(networks(run)))]
    parts: dict[str, Sequence[Block]] = {
        "Results": _results(run),
        "Over the permutations": _charts(run),
        "Where the time went": _times(run),
        "Failed": _failures(run),
        "Run": [Facts([(name, text) for name, text in plan if text])],
    }
    return [Section(title, blocks) for title, blocks in parts.items() if blocks]


def _results(run: BenchmarkRun) -> list[Block]:
    meaning = ["n: repetitions. Mean ± half of its 95 % interval over them."]
    notes = [f"Note: {note}" for note in run.notes]
    return [table(run), Text([*(meaning if repeated(run) else []), *notes], "soft")]


def _charts(run: BenchmarkRun) -> list[Block]:
    drawn = charts(run)
    meaning = "Large dots: means, with their 95 % intervals; small dots: single values."
    return [Charts(drawn, "two"), Text([meaning], "soft")] if drawn else []


def _times(run: BenchmarkRun) -> list[Block]:
    rows = time_rows(run)[:MOST_DRAWN]
    if not rows:
        return []
    titles = ["permutation", "part", "CPU", "where its time went"]
    meaning = (
        "Each part from its start to its end, over all repetitions: a server waits for its client"
        " before and after."
    )
    return [Table(titles, rows, texts=(0, 1, 3), layout="wrapped"), Text([meaning], "soft")]


def _failures(run: BenchmarkRun) -> list[Block]:
    if not run.failures:
        return []
    titles = ["benchmark", "why", "message", "what the tool said", "what to do"]
    rows = [_failure(ended) for ended in run.failures[:MOST_FAILURES]]
    left_out = len(run.failures) - MOST_FAILURES
    rest = [f"{left_out} more: see the JSON."] if left_out > 0 else []
    return [Table(titles, rows, texts=(0, 1, 2, 3, 4), layout="errors"), Text(rest, "soft")]


def charts(run: BenchmarkRun) -> list[Chart]:
    """One a number, over the permutations; none where there is nothing to compare."""
    rows = run.rows[:MOST_DRAWN]
    return [
        _chart(run, headline, rows)
        for headline in run.headlines
        if sum(headline.name in row.summaries for row in rows) > 1
    ]


def _chart(run: BenchmarkRun, headline: Headline, rows: Sequence[MeasuredPermutation]) -> Chart:
    summaries = {
        number: row.summaries[headline.name]
        for number, row in enumerate(rows)
        if headline.name in row.summaries
    }
    top = max(summary.most for summary in summaries.values()) or 1.0
    high = min(
        HIGHEST * top,
        max([top, *(row.mean + row.half_width for row in summaries.values() if row.count > 1)]),
    )
    size, unit = scale(top, headline.unit)
    chart = Chart(
        id=f"chart-{headline.name}",
        title=f"{headline.name}, {unit}" if unit else headline.name,
        description=(
            f"{headline.help} Mean, 95 % interval and single values at each permutation, in the"
            " order of the table."
        ),
        x=_across(rows),
        y=Axis(unit or headline.name, 0.0, svg.ceiling(high / size)),
        width=WIDTH,
        height=HEIGHT,
    )
    singles: dict[int, list[float]] = {}
    for benchmark, ended in run.counted:
        if ended.ok and headline.name in ended.headlines:
            singles.setdefault(benchmark.permutation, []).append(ended.headlines[headline.name])
    for number, summary in summaries.items():
        if summary.count > 1:
            low, high = (
                max(0.0, summary.mean - summary.half_width),
                summary.mean + summary.half_width,
            )
            chart.error(number, low / size, high / size, "c-error")
            for value in singles.get(number, []):
                chart.dot(number, value / size, "c-faint", radius=2.5)
        text = quantity_measured(summary.mean, summary.half_width, headline.unit)
        tip = f"{rows[number].name}: {text}"
        chart.dot(number, summary.mean / size, "c-dot", clean(tip, 200))
    return chart


def _across(rows: Sequence[MeasuredPermutation]) -> Axis:
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
