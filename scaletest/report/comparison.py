"""A comparison of runs as a report: what changed, and the curves of all runs over each other."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from scaletest.analysis.comparison import (
    FLAGGED,
    CandidateComparison,
    Change,
    Comparison,
    Measure,
    MeasureChange,
    place_text,
    ratio_text,
)
from scaletest.analysis.estimate import Estimate, finite
from scaletest.model import VerdictKind
from scaletest.render.contents import (
    Block,
    Case,
    Charts,
    Head,
    Report,
    Section,
    Sheet,
    Table,
    Text,
)
from scaletest.render.numbers import NOTHING, plural, quantity, scale
from scaletest.render.svg import CHARACTER, Axis, Chart, ceiling
from scaletest.render.text import clean

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
LIKELY = 0.01
KINDS = {
    Change.REGRESSION: VerdictKind.FAIL,
    Change.UNDECIDED: VerdictKind.INVALID,
}


def comparison_report(comparison: Comparison) -> Report:
    """What every format shows of a comparison."""
    names = [each.candidate.name for each in comparison.candidates]
    head = Head(
        title=f"compare {comparison.base.name} with {', '.join(names)}",
        verdict=comparison.verdict,
        folder="",
        command_line=shlex.join(["scaletest", "compare", comparison.base.name, *names]),
        conditions=(f"{comparison.run_type}s", f"tolerance {100 * comparison.tolerance:.3g} %"),
        facts=_facts(comparison),
        warnings=_notes(comparison),
    )
    return Report(
        head=head,
        summary=lambda: _summary(comparison),
        comment=lambda: _comment(comparison),
        sections=lambda: _sections(comparison),
        sheet=lambda: _sheet(comparison),
        cases=lambda: _cases(comparison),
        data=comparison.to_dict,
    )


def _facts(comparison: Comparison) -> list[tuple[str, str]]:
    deciding = chain.from_iterable(each.deciding for each in comparison.candidates)
    changes = [change.change for change in deciding]
    labels = {
        "worse": Change.REGRESSION,
        "better": Change.IMPROVEMENT,
        "undecided": Change.UNDECIDED,
    }
    counts = [(label, str(changes.count(change))) for label, change in labels.items()]
    return [("measures decide", str(len(changes))), *counts]


def _notes(comparison: Comparison) -> list[str]:
    """What a reader must know of the runs, each sentence once."""
    notes: list[str] = []
    for each in comparison.candidates:
        name = each.candidate.name
        notes += [
            f"the plans of {comparison.base.name} and {name} differ in {difference.text}"
            for difference in each.contrast.differences
        ]
        for label, alone in ((comparison.base.name, each.only_base), (name, each.only_candidate)):
            notes += [f"only {label} has {', '.join(alone)}"] if alone else []
    deciding = chain.from_iterable(each.deciding for each in comparison.candidates)
    if not all(change.repeated for change in deciding):
        notes.append("the intervals leave out what differs from run to run; repeats bring it in")
    return [clean(note, 300) for note in dict.fromkeys(notes)]


def _summary(comparison: Comparison) -> list[Block]:
    return [
        *_deciding(comparison),
        *_others(comparison),
        Text(_reasons(comparison), most=MOST_REASONS, rest="undecided measure"),
        Text(_notes(comparison), "soft", label="note", most=MOST_NOTES, rest="note"),
    ]


def _comment(comparison: Comparison) -> list[Block]:
    return [
        *_deciding(comparison),
        *_others(comparison),
        Text(_reasons(comparison), "list", most=MOST_REASONS, rest="undecided measure"),
    ]


def _deciding(comparison: Comparison) -> list[Block]:
    """A row for each measure that decides, with its change in each candidate."""
    changes = list(chain.from_iterable(each.deciding for each in comparison.candidates))
    return [_table(comparison, changes)] if changes else []


def _others(comparison: Comparison) -> list[Block]:
    """The other measures that changed, which decide nothing."""
    changes = [
        change
        for change in _all_changes(comparison)
        if not change.base.decides and change.change in FLAGGED
    ]
    if not changes:
        return []
    meaning = (
        "They decide nothing: requests that follow each other are not independent, so chance flags"
        " them more often."
    )
    table = _table(comparison, changes, "What else changed")
    return [table, Text([meaning], "soft", optional=True)]


def _all_changes(comparison: Comparison) -> Iterable[MeasureChange]:
    return chain.from_iterable(each.changes for each in comparison.candidates)


def _table(comparison: Comparison, changes: Sequence[MeasureChange], title: str = "") -> Table:
    """A row for each measure: the base, then every candidate with ratio and result."""
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
    return Table(titles, rows, texts=texts, layout="names", title=title)


def _cells(change: MeasureChange | None) -> list[str]:
    if change is None:
        return [NOTHING, NOTHING, "not measured"]
    ratio = ratio_text(change.ratio) if change.ratio else NOTHING
    longer = ""
    if change.ranks and change.ranks.p < LIKELY and change.change not in FLAGGED:
        way = "larger" if change.ranks.larger > 0.5 else "smaller"
        longer = f", values tend to be {way}"
    return [_figure(change.candidate), ratio, f"{change.change}{longer}"]


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
    changes = list(_all_changes(comparison))
    others = [change for change in changes if not change.base.decides]
    meaning = (
        "Ratio: of a run over the first one, with its 95 % interval. A change is flagged when it is"
        " beyond chance, all measures of all runs considered, and larger than the tolerance."
    )
    decisive: list[Block] = _deciding(comparison)
    reasons = _reasons(comparison)
    if decisive:
        decisive += [Text(reasons, "list"), Text([meaning], "soft")]
    charts = _charts(comparison)
    curves: list[Block] = []
    if charts:
        legend = "Points with their 95 % intervals; the lines only lead the eye."
        curves = [Charts(charts, "two"), Text([legend], "soft")]
    runs = [comparison.base, *(each.candidate for each in comparison.candidates)]
    folders = [(run.name, run.folder) for run in runs]
    parts: dict[str, Sequence[Block]] = {
        "What changed": decisive,
        "All runs": curves,
        "Other measures": [_table(comparison, others)] if others else [],
        "Where the runs lie": [Table(("run", "folder"), folders, (0, 1), layout="wrapped")],
    }
    return [Section(title, blocks) for title, blocks in parts.items() if blocks]


Mark = str | int | float


@dataclass(frozen=True, slots=True)
class RunCurve:
    """A measure of one run: its estimates by what is on the axis across."""

    name: str
    estimates: dict[Mark, Estimate]


def _charts(comparison: Comparison) -> list[Chart]:
    """A chart for every number that has several places, the curves of all runs in each."""
    runs = [comparison.base, *(each.candidate for each in comparison.candidates)][:MOST_RUNS]
    measures: dict[tuple[str, str], Measure] = {}
    curves: dict[tuple[str, str], dict[int, RunCurve]] = {}
    for number, run in enumerate(runs):
        for measure in run.measures:
            title, label, mark = _place(measure)
            measures.setdefault((title, label), measure)
            own = curves.setdefault((title, label), {}).setdefault(number, RunCurve(run.name, {}))
            own.estimates[mark] = measure.estimate
    # those that decide come first
    titles = sorted(curves, key=lambda title: not measures[title].decides)
    charts = [_chart(*title, measures[title], curves[title]) for title in titles]
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
    return statistic if name else measure.unit or "count", "", name or measure.name


def _chart(
    title: str, label: str, measure: Measure, curves: Mapping[int, RunCurve]
) -> Chart | None:
    """None where there is nothing to lay over each other. curves: by the number of the run."""
    marks = list(dict.fromkeys(chain.from_iterable(own.estimates for own in curves.values())))
    points = list(chain.from_iterable(own.estimates.values() for own in curves.values()))
    top = max(point.value for point in points)
    if len(marks) < 2 or top <= 0:
        return None
    high = max(top, *(point.high for point in points if point.high < HIGHEST * top), 0.0)
    size, unit = scale(top, measure.unit)
    chart = Chart(
        re.sub(r"[^A-Za-z0-9]+", "-", f"compare-{title}-{label}"),
        title,
        "; ".join(f"{own.name}: {plural(len(own.estimates), 'point')}" for own in curves.values()),
        _across(label, marks),
        Axis(unit or title, 0.0, ceiling(high / size * 1.02)),
        WIDTH,
        HEIGHT,
    )
    for run, own in curves.items():
        chart.legend(clean(own.name, 40), f"c-run c-run-{run}")
    for run, own in curves.items():
        places = [(_position(mark, marks, run), mark) for mark in own.estimates]
        _draw(chart, run, own, sorted(places, key=itemgetter(0)), size, measure.unit)
    return chart


def _position(mark: Mark, marks: Sequence[Mark], run: int) -> float:
    """Where a mark of a run stands: a number at itself; of texts, runs stand beside each other."""
    if any(isinstance(each, str) for each in marks):
        return marks.index(mark) + BESIDE * (run - MOST_RUNS / 2)
    return float(mark)


def _draw(
    chart: Chart,
    run: int,
    curve: RunCurve,
    places: Sequence[tuple[float, Mark]],
    size: float,
    unit: str,
) -> None:
    """One curve with its intervals. places: where each mark stands."""
    if not any(isinstance(mark, str) for _, mark in places):
        points = [(at, curve.estimates[mark].value / size) for at, mark in places]
        chart.line(points, f"c-run c-run-{run}")
    for at, mark in places:
        estimate = curve.estimates[mark]
        if math.isfinite(estimate.high) and estimate.high > estimate.low:
            css = f"c-run-error c-run-{run}"
            chart.error(at, estimate.low / size, estimate.high / size, css)
        tip = clean(f"{curve.name}, {mark}: {quantity(estimate.value, unit)}", 200)
        chart.dot(at, estimate.value / size, f"c-run-dot c-run-dot-{run}", tip)


def _across(label: str, marks: Sequence[Mark]) -> Axis:
    """Numbers where they stand, doublings equally long where they go far; texts side by side."""
    numbers = [mark for mark in marks if not isinstance(mark, str)]
    if len(numbers) == len(marks):
        low, high = min(numbers), max(numbers)
        if low > 0 and high > FAR * low:
            return Axis(label, low * 0.9, high * 1.1, "log2")
        return Axis(label, 0.0, high * 1.05)
    names = [clean(mark, 24) for mark in marks]
    room = (WIDTH - 80) / (CHARACTER * (2 + max(map(len, names))))
    shown = range(0, len(marks), max(1, math.ceil(len(marks) / max(1.0, room))))
    return Axis(
        label,
        -0.5,
        len(marks) - 0.5,
        marks=list(map(float, shown)),
        names=[names[at] for at in shown],
    )


def _sheet(comparison: Comparison) -> Sheet:
    """One row a measure and candidate; new columns come at the end."""
    titles = ["run", "measure", "where", "unit", "decides", "change"]
    for name in ("base", "candidate", "ratio"):
        titles += [name, f"{name}_low", f"{name}_high"]
    rows: list[Sequence[float | int | str | None]] = []
    for each in comparison.candidates:
        rows += [_row(each, change) for change in each.changes]
    return Sheet([*titles, "significant", "reason"], rows)


def _row(each: CandidateComparison, change: MeasureChange) -> list[float | int | str | None]:
    base = change.base
    ends: list[float | None] = []
    for estimate in (base.estimate, change.candidate.estimate, change.ratio):
        if estimate is None:
            ends += [None] * 3
        else:
            ends += map(finite, (estimate.value, estimate.low, estimate.high))
    return [
        each.candidate.name,
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
    """The verdict, and each measure that decides in each candidate."""
    verdict = comparison.verdict
    cases = [Case("verdict", verdict.kind, f"{verdict.reason}\n{verdict.remedy}".strip(), 0.0)]
    for each in comparison.candidates:
        cases += [
            Case(
                change.base.text,
                KINDS.get(change.change, VerdictKind.PASS),
                f"{change.text}: {change.change}\n{change.reason}".strip(),
                0.0,
                group=each.candidate.name,
            )
            for change in each.deciding
        ]
    return cases
