"""A run of benchmarks as a report: what a terminal, a comment in CI and a page show, its benchmarks
for programs, and test cases.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from scaletest.benchmarks.benchmark import Benchmark, BenchmarkResult
from scaletest.benchmarks.judging.benchmark_run import BenchmarkRun, MeasuredPermutation
from scaletest.benchmarks.kinds.kind import Headline
from scaletest.model import Activity, VerdictKind
from scaletest.model.error_pattern import pattern_of
from scaletest.model.texts import as_yaml
from scaletest.render import contents
from scaletest.render.axis import Axis, ceiling
from scaletest.render.blocks import Block, Charts, Facts, Table, Text
from scaletest.render.chart import Chart
from scaletest.render.contents import Case, Head, Report, Section
from scaletest.render.numbers import NOTHING, duration, plural, quantity, quantity_measured, scale
from scaletest.render.sheet import Sheet
from scaletest.render.text import cell, clean, one_line
from scaletest.report.words import AXES, CUT, sentence
from scaletest.runs.places import default_root, reference
from scaletest.stats.estimate import Summary

# So many parts of benchmarks are told where their time went, where a page would have a table.
MOST_TIMES = 6
# So many failures a terminal shows, and so many a page.
MOST_FAILURES, MOST_FAILURES_SHOWN, MOST_NAMES = 5, 20, 3
WIDTH, HEIGHT = 380.0, 250.0
# So many permutations are drawn.
MOST_DRAWN = 200
# So many numbers stand beside the verdict.
MOST_TILES = 8
TIMES_NOTE = (
    "Each part from its start to its end, over all repetitions: a server waits for its client"
    " before and after."
)
# An interval of two repetitions may be many times its mean; the axis does not follow it beyond
# this.
HIGHEST = 1.6


def benchmark_report(run: BenchmarkRun) -> Report:
    """What every format shows of a run of benchmarks."""
    return Report(
        head=_head(run),
        summary=lambda: summary(run),
        comment=lambda: comment(run),
        sections=lambda: sections(run),
        sheet=lambda: sheet(run),
        cases=lambda: _cases(run),
        data=run.to_dict,
    )


def _head(run: BenchmarkRun) -> Head:
    took_s = sum(map(_took_s, (ended for _, ended in run.counted)))
    return Head(
        title=run.plan.name,
        verdict=run.verdict,
        conditions=[run.plan.described],
        folder=run.folder,
        name=reference(Path(run.folder), default_root(os.environ)),
        elapsed_s=took_s,
        facts=[
            *_main_numbers(run),
            ("measured", str(len(run.counted) - len(run.failures))),
            ("failed", str(len(run.failures))),
            ("not measured", str(run.plan.counted - len(run.counted))),
            # not known while it is measured
            *([("measuring took", duration(took_s))] if took_s else []),
        ],
        thresholds=run.thresholds,
        environment=run.environment,
        alarming=("failed",) if run.failures else (),
    )


def _main_numbers(run: BenchmarkRun) -> list[tuple[str, str]]:
    """The numbers of a run that has a single permutation, where a chart would have one point."""
    if len(run.rows) != 1:
        return []
    (row,) = run.rows
    measured = [headline for headline in run.headlines if headline.name in row.summaries]
    return [
        (headline.label, quantity(row.summaries[headline.name].mean, headline.unit))
        for headline in measured[:MOST_TILES]
    ]


def _took_s(ended: BenchmarkResult) -> float:
    return max(0.0, ended.finished_s - ended.started_s)


def summary(run: BenchmarkRun) -> list[Block]:
    """The table of permutations, how they ran, failures and notes."""
    groups = failure_groups(run.failures)
    failures = list(chain.from_iterable(map(_group_lines, groups[:MOST_FAILURES])))
    left_out = sum(map(len, groups[MOST_FAILURES:]))
    if left_out > 0:
        failures.append(f"{plural(left_out, 'more failed benchmark')} in the report")
    return [
        table(run),
        Text(["± 95 % over repetitions"] if _is_repeated(run) else [], "soft"),
        Text(_networks(run), label="network"),
        Text(_time_lines(run), most=MOST_TIMES, rest="part's time"),
        Text(failures),
        Text(run.notes, label="note"),
    ]


def comment(run: BenchmarkRun) -> list[Block]:
    """What the summary has, with all failures, for a comment in CI."""
    failures = chain.from_iterable(map(_group_lines, failure_groups(run.failures)))
    return [
        table(run),
        Text([line.strip() for line in failures], "list"),
        Text(_time_lines(run), "list", most=MOST_TIMES, rest="part's time"),
        Text(run.notes, "list", label="Note"),
    ]


def sections(run: BenchmarkRun) -> list[Section]:
    """All sections that have anything to show."""
    plan = [("benchmarks", run.plan.described), ("network", "; ".join(_networks(run)))]
    meaning = f"Large dots: means, with their 95 % intervals; small dots: single values. {CUT}"
    times = Table.of_rows(
        _times(run)[:MOST_DRAWN],
        {"permutation", "part", "where its time went"},
        layout="wrapped",
        note=TIMES_NOTE,
    )
    return contents.page(
        {
            "Results": _results(run),
            "Over the permutations": [Charts(_charts(run), "two", note=meaning)],
            "Where the time went": [times],
            "Failed": [_failures(run)],
            "Run": [Facts([(name, text) for name, text in plan if text])],
        }
    )


def _results(run: BenchmarkRun) -> list[Block]:
    notes = [f"Note: {note}" for note in run.notes]
    if _is_repeated(run):
        notes.insert(0, "Mean ± half of its 95 % interval over n repetitions.")
    return [table(run, on_page=True), Text(notes, "soft")]


def _is_repeated(run: BenchmarkRun) -> bool:
    """Whether any number is a mean over repetitions."""
    return any(row.good > 1 for row in run.rows)


def table(run: BenchmarkRun, *, on_page: bool = False) -> Table:
    """A row for each permutation; of a single one, a row for each number. on_page: with the numbers
    by which charts name the permutations.
    """
    if len(run.rows) == 1:
        return _numbers(run)
    is_numbered, rows = on_page and not _only_key(run.rows[:MOST_DRAWN]), []
    for row in run.rows:
        number = f"{row.number + 1}: " if is_numbered else ""
        cells = {"permutation": f"{number}{clean(row.name, 60)}", "n": str(row.good)}
        for headline in run.headlines:
            cells[headline.label] = _number(headline, row)
        rows.append({**cells, "failed": str(row.failed) if run.failures else ""})
    return Table.of_rows(rows, {"permutation"}, {"permutation"}, layout="names")


def failure_groups(failures: Sequence[BenchmarkResult]) -> list[list[BenchmarkResult]]:
    """Failed benchmarks in groups of one kind and one pattern of text, the largest group first."""
    groups: dict[tuple[str, str], list[BenchmarkResult]] = {}
    for ended in failures:
        pattern = pattern_of("\n".join((ended.message, *ended.lines)))
        groups.setdefault((str(ended.failure), pattern), []).append(ended)
    return sorted(groups.values(), key=len, reverse=True)


def _group_lines(group: Sequence[BenchmarkResult]) -> list[str]:
    """The first failure of a group, and which other benchmarks failed alike."""
    lines = failure_lines(group[0])
    if len(group) > 1:
        lines.insert(1, f"  {plural(len(group) - 1, 'more benchmark')} alike: {_names(group[1:])}")
    return lines


def _names(group: Sequence[BenchmarkResult]) -> str:
    """The names of the first few benchmarks of a group."""
    rest = len(group) - MOST_NAMES
    names = [one_line(ended.name, 100) for ended in group[:MOST_NAMES]]
    return ", ".join([*names, *([f"{rest} more"] if rest > 0 else [])])


def _numbers(run: BenchmarkRun) -> Table:
    """A row for each number of the only permutation."""
    (row,) = run.rows
    rows = [
        {
            "measured": headline.label,
            "value": _number(headline, row),
            "meaning": headline.help,
            "name in thresholds": headline.name,
        }
        for headline in run.headlines
    ]
    return Table.of_rows(rows, {"measured", "meaning", "name in thresholds"}, layout="wrapped")


def _number(headline: Headline, row: MeasuredPermutation) -> str:
    """A number of a permutation with its interval and its unit; n/a where it was not measured."""
    summary = row.summaries.get(headline.name)
    if summary is None:
        return NOTHING
    return quantity_measured(summary.mean, summary.half_width, headline.unit)


def failure_lines(ended: BenchmarkResult) -> list[str]:
    """Why a benchmark failed, with the lines that say so, and what to do where the failure itself
    knows that.
    """
    first = f"{ended.name}: {ended.failure or 'failed'}: {clean(ended.message, 300)}"
    advice = [f"  what to do: {clean(ended.remedy, 300)}"] if ended.remedy else []
    return [one_line(first), *(f"  | {clean(line, 200)}" for line in ended.lines), *advice]


def _failures(run: BenchmarkRun) -> Table:
    groups = failure_groups(run.failures)
    rows = [
        {
            "benchmark": _names(group),
            "why": str(group[0].failure or "failed"),
            "message": clean(group[0].message, 300),
            "what the tool said": "\n".join(map(clean, group[0].lines)),
            "what to do": clean(group[0].advice, 300),
            "count": str(len(group)),
        }
        for group in groups[:MOST_FAILURES_SHOWN]
    ]
    left_out = sum(map(len, groups[MOST_FAILURES_SHOWN:]))
    rest = f"{left_out} more: see the JSON." if left_out > 0 else ""
    texts = ("benchmark", "why", "message", "what the tool said", "what to do")
    return Table.of_rows(rows, texts, layout="errors", note=rest)


def _networks(run: BenchmarkRun) -> list[str]:
    """The networks that were really used."""
    used = [ended.network for _, ended in run.counted if ended.network]
    rows = [
        clean(f"{network.get('interface')}, {network.get('family')}, MTU {network.get('mtu')}")
        for network in used
    ]
    return list(dict.fromkeys(rows))[:4]


def _times(run: BenchmarkRun) -> list[dict[str, str]]:
    """Where the time of each part of each permutation went, over all repetitions."""
    activities: dict[tuple[int, str], list[Activity]] = {}
    for benchmark, ended in run.counted:
        for part, activity in ended.activities.items():
            activities.setdefault((benchmark.permutation, part), []).append(activity)
    return [
        {
            "permutation": run.rows[number].name,
            "part": part,
            "CPU": f"{_cores(parts):.2g} cores",
            "where its time went": sentence(parts),
        }
        for (number, part), parts in sorted(activities.items())
    ]


def _cores(activities: Sequence[Activity]) -> float:
    """CPU time over the time that these ran."""
    whole_s = sum(chain.from_iterable(activity.seconds.values() for activity in activities))
    used_s = sum(activity.cpu_s for activity in activities)
    return used_s / whole_s if whole_s else 0.0


def _time_lines(run: BenchmarkRun) -> list[str]:
    """Where the time of each part went, in a line each."""
    rows = map(dict.values, _times(run))
    return [clean(f"time of {part}, {name}: {cores}; {place}") for name, part, cores, place in rows]


def _charts(run: BenchmarkRun) -> list[Chart]:
    """One a number, over the permutations; none where there is nothing to compare."""
    rows = run.rows[:MOST_DRAWN]
    charts = []
    for headline in run.headlines:
        measured = [row for row in rows if headline.name in row.summaries]
        if len(measured) > 1:
            charts.append(_chart(run, headline, measured, _across(rows)))
    return charts


def _chart(
    run: BenchmarkRun, headline: Headline, rows: Sequence[MeasuredPermutation], across: Axis
) -> Chart:
    name = headline.name
    summaries = {row.number: row.summaries[name] for row in rows}
    top = max(summary.most for summary in summaries.values()) or 1.0
    size, unit = scale(top, headline.unit)
    chart = Chart(
        id=f"chart-{name}",
        title=headline.label,
        description=(f"{headline.help} Mean, 95 % interval and single values at each permutation."),
        x=across,
        y=Axis(
            AXES.get(unit, unit or headline.label),
            0.0,
            ceiling(_highest(summaries.values(), top) / size),
        ),
        width=WIDTH,
        height=HEIGHT,
    )
    repeated = {number: each for number, each in summaries.items() if each.count > 1}
    for number, each in repeated.items():
        low, high = max(0.0, each.mean - each.half_width), each.mean + each.half_width
        chart.error(number, low / size, high / size, "c-error")
    for benchmark, ended in run.counted:
        number = benchmark.permutation
        if number in repeated and ended.ok and name in ended.headlines:
            chart.dot(number, ended.headlines[name] / size, "c-faint", radius=2.5)
    for row in rows:
        number, summary = row.number, row.summaries[name]
        text = quantity_measured(summary.mean, summary.half_width, headline.unit)
        chart.dot(number, summary.mean / size, "c-dot", clean(f"{row.name}: {text}", 200))
    return chart


def _highest(summaries: Iterable[Summary], top: float) -> float:
    """How high the axis goes for these numbers and their intervals. top: the largest number."""
    ends = [each.mean + each.half_width for each in summaries if each.count > 1]
    return min(HIGHEST * top, max([top, *ends]))


def _across(rows: Sequence[MeasuredPermutation]) -> Axis:
    """The permutations side by side: by their values when one key alone varies, else by their
    numbers.
    """
    label, names = "permutation", [str(row.number + 1) for row in rows]
    if key := _only_key(rows):
        label, names = key, [clean(as_yaml(row.values[key]), 24) for row in rows]
    return Axis(label, -0.5, len(rows) - 0.5, marks=range(len(rows)), names=names)


def _only_key(rows: Sequence[MeasuredPermutation]) -> str:
    """The key that alone varies, whose values can stand at an axis; "" for none."""
    keys = set(chain.from_iterable(row.values for row in rows))
    values = list(chain.from_iterable(row.values.values() for row in rows))
    is_plain = all(isinstance(value, str | int | float) for value in values)
    return keys.pop() if len(keys) == 1 and len(values) == len(rows) and is_plain else ""


FIXED = ("name", "kind", "permutation", "repetition", "phase", "failure", "started_s", "finished_s")
NETWORK, ADDRESSES = ("interface", "family", "mtu"), ("address", "peer")


def sheet(run: BenchmarkRun) -> Sheet:
    """One row a benchmark; new columns come at the end.

    KEY is permutation.KEY where it is taken.
    """
    keys = list(dict.fromkeys(chain.from_iterable(row.values for row in run.rows)))
    numbers = [headline.name for headline in run.headlines]
    taken = {*FIXED, *NETWORK, *numbers, *ADDRESSES}
    titles = [f"permutation.{key}" for key in keys]
    for number, key in enumerate(keys):
        if key not in taken:
            titles[number] = cell(key)
    rows = [_row(run, *pair, keys) for pair in run.counted]
    return Sheet([*FIXED, *NETWORK, *titles, *numbers, *ADDRESSES], rows, line_end="\n")


def _row(
    run: BenchmarkRun, benchmark: Benchmark, ended: BenchmarkResult, keys: Sequence[str]
) -> list[Any]:
    values = run.rows[benchmark.permutation].values
    return [
        benchmark.name,
        benchmark.kind.name,
        benchmark.permutation,
        benchmark.repetition,
        ended.phase,
        ended.failure,
        ended.started_s,
        ended.finished_s,
        *(ended.network.get(name, "") for name in NETWORK),
        *(as_yaml(values.get(key, "")) for key in keys),
        *(ended.headlines.get(headline.name, "") for headline in run.headlines),
        *(ended.network.get(name, "") for name in ADDRESSES),
    ]


def _cases(run: BenchmarkRun) -> list[Case]:
    """Each benchmark."""
    kinds = {True: VerdictKind.PASS, False: VerdictKind.FAIL}
    return [
        Case(
            ended.name,
            kinds[ended.ok],
            "\n".join([ended.message, *failure_lines(ended)[1:]]),
            _took_s(ended),
            group=benchmark.kind.name,
            problem=str(ended.failure),
        )
        for benchmark, ended in run.counted
    ]
