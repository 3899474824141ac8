"""Report a run of benchmarks: to a terminal, a comment in CI, a page, programs and test suites."""

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from scaletest.benchmarks.documents import BenchmarkResult
from scaletest.benchmarks.judging.evaluation import BenchmarkRun, MeasuredPermutation
from scaletest.benchmarks.kinds import Headline
from scaletest.model import VerdictKind, error_pattern, texts
from scaletest.render.axis import Axis, axis_end
from scaletest.render.blocks import Block, Charts, Table, Text
from scaletest.render.chart import Chart
from scaletest.render.contents import Case, Head, Report, Section, Sheet, make_page
from scaletest.render.numbers import (
    NOTHING,
    format_quantity,
    plural,
    quantity_with_half_width,
    unit_scale,
)
from scaletest.render.text import clean_text, csv_cell, one_line
from scaletest.report.words import AXES, CUT
from scaletest.runs.places import default_root, run_reference

MOST_GROUPS = 5  # of failures, on a terminal
MOST_GROUPS_ON_PAGE = 20
MOST_NAMES = 3  # of benchmarks in a group of failures
MOST_NETWORKS = 4
MOST_DRAWN = 200  # permutations in a chart
# An interval of two repetitions may be many times its mean: the axis of a chart follows intervals
# up to so many times the largest value.
MOST_HEADROOM = 1.6
# Columns of the sheet.
RUN_COLUMNS = (
    "name",
    "kind",
    "permutation",
    "repetition",
    "phase",
    "failure",
    "started_s",
    "finished_s",
)
NETWORK_COLUMNS = ("interface", "family", "mtu", "address", "peer")


def benchmark_report(run: BenchmarkRun) -> Report:
    """Return what every format shows of a run of benchmarks."""
    return Report(
        head=Head(
            title=run.plan.name,
            verdict=run.verdict,
            # without a threshold nothing was judged
            answer="" if run.thresholds or run.verdict.kind is not VerdictKind.PASS else "DONE",
            conditions=[run.plan.workload],
            folder=run.folder,
            name=run_reference(Path(run.folder), default_root(os.environ)),
            elapsed_s=sum(result.length_s for _, result in run.counted),
            facts=[
                ("measured", str(len(run.counted) - len(run.failures))),
                ("failed", str(len(run.failures))),
                ("not measured", str(run.plan.count - len(run.counted))),
            ],
            thresholds=run.thresholds,
            environment=run.environment,
            alarming=("failed",) if run.failures else (),
        ),
        summary=lambda: show_summary(run),
        comment=lambda: show_comment(run),
        sections=lambda: show_page(run),
        sheet=lambda: make_sheet(run),
        cases=lambda: [
            Case(
                result.name,
                VerdictKind.PASS if result.ok else VerdictKind.FAIL,
                "\n".join([result.message, *failure_lines(result)[1:]]),
                result.length_s,
                group=benchmark.kind.name,
                problem=str(result.failure),
            )
            for benchmark, result in run.counted
        ],
        data=run.to_dict,
    )


def show_summary(run: BenchmarkRun) -> list[Block]:
    """Return the table of permutations, failures and notes, for a terminal."""
    legend = []
    if _is_repeated(run):
        legend.append("± 95 % over repetitions")
    groups = group_failures(run.failures)
    failures = list(chain.from_iterable(map(_group_lines, groups[:MOST_GROUPS])))
    if left_out := sum(map(len, groups[MOST_GROUPS:])):
        failures.append(f"{plural(left_out, 'more failed benchmark')} in the report")
    return [
        results_table(run),
        Text(legend, "soft"),
        Text(_used_networks(run), label="network"),
        Text(failures),
        Text(run.notes, label="note"),
    ]


def show_comment(run: BenchmarkRun) -> list[Block]:
    """Return what the summary has, with all failures, for a comment in CI."""
    failures = chain.from_iterable(map(_group_lines, group_failures(run.failures)))
    return [
        results_table(run),
        Text([line.strip() for line in failures], "list"),
        Text(run.notes, "list", label="Note"),
    ]


def show_page(run: BenchmarkRun) -> list[Section]:
    """Return all sections of the page that have anything to show."""
    notes = [f"Note: {note}" for note in run.notes]
    if _is_repeated(run):
        notes.insert(0, "Mean ± half of its 95 % interval over n repetitions.")
    # a row for each of the largest groups of failures
    groups = group_failures(run.failures)
    left_out = sum(map(len, groups[MOST_GROUPS_ON_PAGE:]))
    failures = Table.of_rows(
        [
            {
                "benchmark": _first_names(group),
                "why": str(group[0].failure or "failed"),
                "message": clean_text(group[0].message, 300),
                "what the tool said": "\n".join(map(clean_text, group[0].lines)),
                "what to do": clean_text(group[0].advice, 300),
                "count": str(len(group)),
            }
            for group in groups[:MOST_GROUPS_ON_PAGE]
        ],
        ("benchmark", "why", "message", "what the tool said", "what to do"),
        layout="errors",
        note=f"{left_out} more: see the JSON." if left_out > 0 else "",
    )
    return make_page(
        {
            "Results": [results_table(run, on_page=True), Text(notes, "soft")],
            "Over the permutations": [
                Charts(
                    _draw_charts(run),
                    "two",
                    note="Large dots: means, with their 95 % intervals; small dots: single values."
                    f" {CUT}",
                )
            ],
            "Failed": [failures],
            "Networks": [Text(_used_networks(run))],
        }
    )


def _is_repeated(run: BenchmarkRun) -> bool:
    """Check whether any number is shown with its interval over repetitions."""
    # two repetitions are shown as two values
    return any(row.succeeded > 2 for row in run.rows)


def results_table(run: BenchmarkRun, *, on_page: bool = False) -> Table:
    """Return a row for each permutation; of a single one, a row for each number.

    on_page: with the numbers by which charts name the permutations.
    """
    if len(run.rows) == 1:
        rows = [
            {
                "measured": headline.label,
                "value": _format_number(headline, run.rows[0]),
                "meaning": headline.help,
                "name in thresholds": headline.name,
            }
            for headline in run.headlines
        ]
        return Table.of_rows(rows, {"measured", "meaning", "name in thresholds"}, layout="wrapped")
    rows = []
    is_numbered = on_page and not _only_key(run.rows[:MOST_DRAWN])
    for row in run.rows:
        number = f"{row.number + 1}: " if is_numbered else ""
        cells = {"permutation": f"{number}{clean_text(row.name, 60)}", "n": str(row.succeeded)}
        cells |= {headline.label: _format_number(headline, row) for headline in run.headlines}
        rows.append({**cells, "failed": str(row.failed) if run.failures else ""})
    return Table.of_rows(rows, {"permutation"}, {"permutation"}, layout="names")


def group_failures(failures: Sequence[BenchmarkResult]) -> list[list[BenchmarkResult]]:
    """Group failed benchmarks by their kind of failure and pattern of text, the largest first."""
    groups: dict[tuple[str, str], list[BenchmarkResult]] = {}
    for result in failures:
        pattern = error_pattern.pattern_of("\n".join((result.message, *result.lines)))
        groups.setdefault((str(result.failure), pattern), []).append(result)
    return sorted(groups.values(), key=len, reverse=True)


def _group_lines(group: Sequence[BenchmarkResult]) -> list[str]:
    """Describe the first failure of a group, and name other benchmarks that failed alike."""
    lines = failure_lines(group[0])
    if len(group) > 1:
        lines.insert(
            1, f"  {plural(len(group) - 1, 'more benchmark')} alike: {_first_names(group[1:])}"
        )
    return lines


def _first_names(group: Sequence[BenchmarkResult]) -> str:
    """Return the names of the first few benchmarks of a group."""
    names = [one_line(result.name, 100) for result in group[:MOST_NAMES]]
    if len(group) > MOST_NAMES:
        names.append(f"{len(group) - MOST_NAMES} more")
    return ", ".join(names)


def _format_number(headline: Headline, row: MeasuredPermutation) -> str:
    """Write a number of a permutation with interval and unit; n/a where it was not measured."""
    summary = row.summaries.get(headline.name)
    if summary is None:
        return NOTHING
    if summary.count == 2 and summary.least < summary.most:
        # two values say more than their interval, which may be wider than they are large
        least, most = (format_quantity(end, headline.unit) for end in (summary.least, summary.most))
        return f"{least}, {most}"
    return quantity_with_half_width(summary.mean, summary.half_width, headline.unit)


def failure_lines(result: BenchmarkResult) -> list[str]:
    """Say why a benchmark failed, with the tool's lines that say so, and what to do."""
    first = f"{result.name}: {result.failure or 'failed'}: {clean_text(result.message, 300)}"
    lines = [one_line(first), *(f"  | {clean_text(line, 200)}" for line in result.lines)]
    if result.remedy:
        lines.append(f"  what to do: {clean_text(result.remedy, 300)}")
    return lines


def _used_networks(run: BenchmarkRun) -> list[str]:
    """Describe the first few networks that were really used."""
    descriptions = []
    for _, result in run.counted:
        if network := result.network:
            text = f"{network.get('interface')}, {network.get('family')}, MTU {network.get('mtu')}"
            descriptions.append(clean_text(text))
    return list(dict.fromkeys(descriptions))[:MOST_NETWORKS]


def _draw_charts(run: BenchmarkRun) -> list[Chart]:
    """Draw each number over the permutations; none where there is nothing to compare."""
    rows = run.rows[:MOST_DRAWN]
    # side by side: by their values when one key alone varies, else by their numbers
    key = _only_key(rows)
    names = []
    for row in rows:
        names.append(clean_text(texts.as_yaml(row.values[key]), 24) if key else str(row.number + 1))
    x_axis = Axis(key or "permutation", -0.5, len(rows) - 0.5, marks=range(len(rows)), names=names)
    charts = []
    for headline in run.headlines:
        measured = [row for row in rows if headline.name in row.summaries]
        if len(measured) > 1:
            charts.append(_draw_chart(run, headline, measured, x_axis))
    return charts


def _draw_chart(
    run: BenchmarkRun, headline: Headline, rows: Sequence[MeasuredPermutation], x_axis: Axis
) -> Chart:
    """Draw a number at the permutations that have it.

    Means with their intervals are large dots, and single values small ones.
    """
    name = headline.name
    summaries = {row.number: row.summaries[name] for row in rows}
    repeated = {number: summary for number, summary in summaries.items() if summary.count > 1}
    largest = max(summary.most for summary in summaries.values()) or 1.0
    ends = [summary.mean + summary.half_width for summary in repeated.values()]
    top = min(MOST_HEADROOM * largest, max([largest, *ends]))
    size, unit = unit_scale(largest, headline.unit)
    chart = Chart(
        id=f"chart-{name}",
        title=headline.label,
        description=f"{headline.help} Mean, 95 % interval and single values at each permutation.",
        x=x_axis,
        y=Axis(AXES.get(unit, unit or headline.label), 0.0, axis_end(top / size)),
        width=380.0,
        height=250.0,
    )
    for number, summary in repeated.items():
        low = max(0.0, summary.mean - summary.half_width)
        high = summary.mean + summary.half_width
        chart.error(number, low / size, high / size, "c-error")
    for benchmark, result in run.counted:
        number = benchmark.permutation
        if number in repeated and result.ok and name in result.headlines:
            chart.dot(number, result.headlines[name] / size, "c-faint", radius=2.5)
    for row in rows:
        hint = clean_text(f"{row.name}: {_format_number(headline, row)}", 200)
        chart.dot(row.number, summaries[row.number].mean / size, "c-dot", hint)
    return chart


def _only_key(rows: Sequence[MeasuredPermutation]) -> str:
    """Return the key that alone varies, whose values can stand at an axis; "" for none."""
    keys = set(chain.from_iterable(row.values for row in rows))
    values = list(chain.from_iterable(row.values.values() for row in rows))
    has_each_a_value = len(keys) == 1 and len(values) == len(rows)
    if has_each_a_value and all(isinstance(value, str | int | float) for value in values):
        return keys.pop()
    return ""


def make_sheet(run: BenchmarkRun) -> Sheet:
    """Return one row a benchmark.

    The column of a key of the permutations is permutation.KEY where KEY is taken.
    """
    keys = list(dict.fromkeys(chain.from_iterable(row.values for row in run.rows)))
    numbers = [headline.name for headline in run.headlines]
    taken = {*RUN_COLUMNS, *NETWORK_COLUMNS, *numbers}
    key_columns = [f"permutation.{key}" if key in taken else csv_cell(key) for key in keys]
    rows = []
    for benchmark, result in run.counted:
        values = run.rows[benchmark.permutation].values
        rows.append(
            [
                benchmark.name,
                benchmark.kind.name,
                benchmark.permutation,
                benchmark.repetition,
                result.phase,
                result.failure,
                result.started_s,
                result.finished_s,
                *(result.network.get(name, "") for name in NETWORK_COLUMNS),
                *(texts.as_yaml(values.get(key, "")) for key in keys),
                *(result.headlines.get(name, "") for name in numbers),
            ]
        )
    return Sheet([*RUN_COLUMNS, *NETWORK_COLUMNS, *key_columns, *numbers], rows, line_end="\n")
