"""A comparison of runs as a report: what changed, and the curves of all runs over each other."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain

from scaletest.model import VerdictKind
from scaletest.render import contents
from scaletest.render.axis import Axis, ceiling, nice
from scaletest.render.blocks import Charts, Table, Text
from scaletest.render.chart import Chart
from scaletest.render.contents import Case, Head, Report, Section
from scaletest.render.numbers import NOTHING, plural, quantity, scale
from scaletest.render.sheet import Sheet, Value, at
from scaletest.render.text import clean
from scaletest.report.words import AXES, CUT
from scaletest.stats.comparison import (
    FLAGGED,
    TOLERANCE,
    Change,
    Comparison,
    Measure,
    MeasureChange,
    Side,
    place_text,
    ratio_text,
)
from scaletest.stats.estimate import Estimate

WIDTH, HEIGHT = 420.0, 280.0
# So many runs are told apart by colour and dashes, and so many charts are drawn.
MOST_RUNS, MOST_CHARTS = 6, 24
MOST_NOTES, MOST_REASONS = 6, 8
# Intervals that reach higher are cut, so that curves can be seen.
HIGHEST = 1.6
# Numbers that go beyond so many times the least stand on a logarithmic axis.
FAR = 16.0
# How far runs stand apart where marks are texts, which are 1 apart.
BESIDE = 0.1
KINDS = {
    Change.REGRESSION: VerdictKind.FAIL,
    Change.UNDECIDED: VerdictKind.INVALID,
}


def comparison_report(comparison: Comparison) -> Report:
    """What every format shows of a comparison."""
    names = [each.candidate.name for each in comparison.candidates]
    tables = [_deciding(comparison), _others(comparison)]
    reasons = _reasons(comparison)
    notes = _notes(comparison)
    rest = "undecided measure"
    return Report(
        head=Head(
            title=f"compare {comparison.base.name} with {', '.join(names)}",
            verdict=comparison.verdict,
            folder="",
            conditions=(f"{comparison.run_type}s", f"tolerance {100 * comparison.tolerance:.3g} %"),
            facts=_facts(comparison),
            warnings=notes,
            environment={"command_line": _command(comparison)},
        ),
        summary=lambda: [
            *tables,
            Text(reasons, most=MOST_REASONS, rest=rest),
            Text(notes, "soft", label="note", most=MOST_NOTES, rest="note"),
        ],
        comment=lambda: [*tables, Text(reasons, "list", most=MOST_REASONS, rest=rest)],
        sections=lambda: _sections(comparison),
        sheet=lambda: _sheet(comparison),
        cases=lambda: _cases(comparison),
        data=comparison.to_dict,
    )


def _command(comparison: Comparison) -> list[str]:
    """The command that gives the same comparison."""
    names = [comparison.base.name, *(each.candidate.name for each in comparison.candidates)]
    options = []
    if comparison.tolerance != TOLERANCE:
        options += ["--tolerance", f"{100 * comparison.tolerance:g}%"]
    if any(each.contrast.foreign and each.changes for each in comparison.candidates):
        options.append("--force")
    return ["scaletest", "compare", *names, *options]


def _facts(comparison: Comparison) -> list[tuple[str, str]]:
    changes = [change.change for change in _all_changes(comparison) if change.base.decides]
    if not changes:
        return []
    labels = {
        "worse": Change.REGRESSION,
        "better": Change.IMPROVEMENT,
        "undecided": Change.UNDECIDED,
    }
    counts = [(label, str(changes.count(change))) for label, change in labels.items()]
    return [("measures decide", str(len(changes))), *counts]


def _notes(comparison: Comparison) -> list[str]:
    """What a reader must know of the runs, each sentence once."""
    base, notes = comparison.base.name, []
    for each in comparison.candidates:
        name = each.candidate.name
        notes += [
            f"the plans of {base} and {name} differ in {difference.text}"
            for difference in each.contrast.differences
        ]
        # two runs may have one name
        alone = ((base, each.only_base), (name, each.only_candidate))
        notes += [f"only {run} has {', '.join(names)}" for run, names in alone if names]
    deciding = (change for change in _all_changes(comparison) if change.base.decides)
    if not all(change.repeated for change in deciding):
        notes.append("the intervals leave out what differs from run to run; repeats bring it in")
    return [clean(note, 300) for note in dict.fromkeys(notes)]


def _all_changes(comparison: Comparison) -> list[MeasureChange]:
    return list(chain.from_iterable(each.changes for each in comparison.candidates))


def _deciding(comparison: Comparison) -> Table:
    """A row for each measure that decides, with its change in each candidate."""
    changes = [change for change in _all_changes(comparison) if change.base.decides]
    return _table(comparison, changes)


def _others(comparison: Comparison) -> Table:
    """The other measures that changed, which decide nothing."""
    changes = [
        change
        for change in _all_changes(comparison)
        if not change.base.decides and change.change in FLAGGED
    ]
    meaning = (
        "They decide nothing: requests that follow each other are not independent, so chance flags"
        " them more often."
    )
    return _table(comparison, changes, "What else changed", meaning)


def _table(
    comparison: Comparison, changes: Sequence[MeasureChange], title: str = "", note: str = ""
) -> Table:
    """A row for each measure: the base, then every candidate with ratio and result."""
    if not changes:
        return Table((), ())
    names = [each.candidate.name for each in comparison.candidates]
    titles = ["measure", comparison.base.name]
    for name in names:
        titles += [name, "ratio (95 %)", "result"]
    wanted = {change.base.key: change.base for change in changes}
    changes_by_key = [
        {change.base.key: change for change in each.changes} for each in comparison.candidates
    ]
    rows = []
    for key, base in wanted.items():
        row = [clean(base.text, 80), _figure(base)]
        for by_key in changes_by_key:
            row += _cells(by_key.get(key))
        rows.append(row)
    texts = (0, *(4 + 3 * number for number in range(len(names))))
    return Table(titles, rows, texts=texts, layout="names", title=title, note=note)


def _cells(change: MeasureChange | None) -> list[str]:
    if change is None:
        return [NOTHING, NOTHING, "not measured"]
    ratio = ratio_text(change.ratio) if change.ratio else NOTHING
    return [_figure(change.candidate), ratio, str(change.change)]


def _figure(measure: Measure) -> str:
    return quantity(measure.estimate.value, measure.unit)


def _reasons(comparison: Comparison) -> list[str]:
    """Why measures that decide are undecided."""
    lines = []
    for each in comparison.candidates:
        place = f" in {each.candidate.name}" if len(comparison.candidates) > 1 else ""
        lines += [
            clean(f"undecided{place}: {change.base.text}: {change.reason}", 300)
            for change in each.deciding
            if change.reason
        ]
    return lines


def _sections(comparison: Comparison) -> list[Section]:
    others = [change for change in _all_changes(comparison) if not change.base.decides]
    decisive = _deciding(comparison)
    meaning = (
        "Ratio: of a run over the first one, with its 95 % interval. A change is flagged when it is"
        " beyond chance, all measures of all runs considered, and larger than the tolerance."
    )
    legend = f"Points with their 95 % intervals; the lines only lead the eye. {CUT}"
    folders = [(run.name, run.folder) for run in _runs(comparison)]
    return contents.page(
        {
            "What changed": [
                decisive,
                Text(_reasons(comparison), "list"),
                Text([meaning] if decisive.rows else [], "soft"),
            ],
            "All runs": [Charts(_charts(comparison), "two", note=legend)],
            "Other measures": [_table(comparison, others)],
            "Where the runs lie": [Table(("run", "folder"), folders, (0, 1), layout="wrapped")],
        }
    )


def _runs(comparison: Comparison) -> list[Side]:
    """The base and its candidates."""
    return [comparison.base, *(each.candidate for each in comparison.candidates)]


Mark = str | int | float


# What a run's measures have where they are shown across: mark -> estimate.
Curve = dict[Mark, Estimate]


def _charts(comparison: Comparison) -> list[Chart]:
    """A chart for every number that has several places, the curves of all runs in each."""
    runs = _runs(comparison)[:MOST_RUNS]
    names = [clean(run.name, 40) for run in runs]
    measures: dict[tuple[str, str], Measure] = {}
    curves: dict[tuple[str, str], dict[int, Curve]] = {}
    for number, run in enumerate(runs):
        for measure in run.measures:
            title, label, mark = _place(measure)
            measures.setdefault((title, label), measure)
            own = curves.setdefault((title, label), {}).setdefault(number, {})
            own[mark] = measure.estimate
    # those that decide come first
    titles = sorted(curves, key=lambda title: not measures[title].decides)
    charts = [_chart(*title, measures[title], names, curves[title]) for title in titles]
    return [chart for chart in charts if chart][:MOST_CHARTS]


def _place(measure: Measure) -> tuple[str, str, Mark]:
    """The title of a measure's chart, the label of the axis across, and where it stands there: at
    its place, or, where it has none, at its own name.
    """
    if len(measure.where) == 1:
        ((label, mark),) = measure.where.items()
        return measure.name, label.replace("_", " "), mark
    if measure.where:
        return measure.name, ", ".join(measure.where), place_text(measure.where)
    name, _, statistic = measure.name.rpartition(".")
    return statistic if name else measure.unit or "others", "", name or measure.name


def _chart(
    title: str, label: str, measure: Measure, names: Sequence[str], curves: Mapping[int, Curve]
) -> Chart | None:
    """None where there is nothing to lay over each other. names, curves: by the number of the
    run.
    """
    marks = list(dict.fromkeys(chain.from_iterable(curves.values())))
    points = list(chain.from_iterable(own.values() for own in curves.values()))
    top = max(point.value for point in points)
    if len(marks) < 2 or top <= 0:
        return None
    high = max(top, *(point.high for point in points if point.high < HIGHEST * top), 0.0)
    size, unit = scale(top, measure.unit)
    counts = [f"{names[run]}: {plural(len(own), 'point')}" for run, own in curves.items()]
    chart = Chart(
        re.sub(r"[^A-Za-z0-9]+", "-", f"compare-{title}-{label}"),
        title,
        "; ".join(counts),
        _across(label, marks),
        Axis(AXES.get(unit, unit or title), 0.0, ceiling(high / size * 1.02)),
        WIDTH,
        HEIGHT,
    )
    for run in curves:
        chart.legend(names[run], f"c-run c-run-{run}")
    for run, own in curves.items():
        if not chart.x.names:
            line = sorted((float(mark), own[mark].value / size) for mark in own)
            chart.line(line, f"c-run c-run-{run}")
        for mark, estimate in own.items():
            tip = clean(f"{names[run]}, {mark}: {quantity(estimate.value, measure.unit)}", 200)
            _point(chart, run, _position(mark, marks, run), estimate.scaled(1 / size), tip)
    return chart


def _position(mark: Mark, marks: Sequence[Mark], run: int) -> float:
    """Where a mark of a run stands: a number at itself; of texts, runs stand beside each other."""
    if any(isinstance(each, str) for each in marks):
        return marks.index(mark) + BESIDE * (run - MOST_RUNS / 2)
    return float(mark)


def _point(chart: Chart, run: int, place: float, estimate: Estimate, tip: str) -> None:
    if math.isfinite(estimate.high) and estimate.high > estimate.low:
        chart.error(place, estimate.low, estimate.high, f"c-run-error c-run-{run}")
    chart.dot(place, estimate.value, f"c-run-dot c-run-dot-{run}", tip)


def _across(label: str, marks: Sequence[Mark]) -> Axis:
    """Numbers where they stand, doublings equally long where they go far; texts side by side."""
    numbers = [mark for mark in marks if not isinstance(mark, str)]
    if len(numbers) < len(marks):
        names = [clean(mark, 24) for mark in marks]
        return Axis(label, -0.5, len(marks) - 0.5, marks=range(len(marks)), names=names)
    low, high = min(numbers), max(numbers)
    if low > 0 and high > FAR * low:
        return Axis(label, low * 0.9, high * 1.1, "log2")
    shown = nice(0.0, high * 1.05)
    if all(isinstance(number, int) for number in numbers):
        shown = [mark for mark in shown if mark == round(mark)]
    return Axis(label, 0.0, high * 1.05, marks=shown)


def _sheet(comparison: Comparison) -> Sheet:
    """One row a measure and candidate; new columns come at the end."""
    titles = ["run", "measure", "where", "unit", "decides", "change"]
    for name in ("base", "candidate", "ratio"):
        titles += [name, f"{name}_low", f"{name}_high"]
    rows: list[list[Value]] = []
    for each in comparison.candidates:
        rows += [[each.candidate.name, *_row(change)] for change in each.changes]
    return Sheet([*titles, "significant", "reason"], rows)


def _row(change: MeasureChange) -> list[Value]:
    base = change.base
    ends: list[Value] = []
    for estimate in (base.estimate, change.candidate.estimate, change.ratio):
        ends += [at(end)(estimate) for end in ("value", "low", "high")]
    return [
        base.name,
        place_text(base.where),
        base.unit,
        "yes" if base.decides else "no",
        str(change.change),
        *ends,
        "yes" if change.significant else "no",
        change.reason,
    ]


def _cases(comparison: Comparison) -> list[Case]:
    """Each measure that decides in each candidate."""
    cases = []
    for each in comparison.candidates:
        cases += [
            Case(
                change.base.text,
                KINDS.get(change.change, VerdictKind.PASS),
                f"{change.text}: {change.change}\n{change.reason}".strip(),
                group=each.candidate.name,
            )
            for change in each.deciding
        ]
    return cases
