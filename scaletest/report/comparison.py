"""A comparison of runs as a report: what changed, and the curves of all runs over each other."""

from collections.abc import Sequence
from itertools import chain

from scaletest.model import VerdictKind
from scaletest.render import contents
from scaletest.render.blocks import Charts, Table, Text
from scaletest.render.contents import Case, Head, Report, Section, Sheet, Value, column_at
from scaletest.render.numbers import NOTHING, format_quantity
from scaletest.render.text import clean_text
from scaletest.report.comparison_charts import curve_charts
from scaletest.report.words import CUT
from scaletest.stats.change import FLAGGED, Change, MeasureChange, ratio_text
from scaletest.stats.comparison import Comparison
from scaletest.stats.measure import Measure, place_text

MOST_NOTES, MOST_REASONS = 6, 8
KINDS = {
    Change.REGRESSION: VerdictKind.FAIL,
    Change.UNDECIDED: VerdictKind.INVALID,
}
# Numbers beside the verdict.
COUNTED = {
    "worse": Change.REGRESSION,
    "better": Change.IMPROVEMENT,
    "undecided": Change.UNDECIDED,
}
NO_DECISION = (
    "They decide nothing: requests that follow each other are not independent, so chance flags"
    " them more often."
)
MEANING = (
    "Ratio: of a run over the first one, with its 95 % interval. A change is flagged when it is"
    " beyond chance, all measures of all runs considered, and larger than the tolerance."
)
LEGEND = f"Points with their 95 % intervals; the lines only lead the eye. {CUT}"


def comparison_report(comparison: Comparison) -> Report:
    """Make the report of a comparison."""
    changes = list(chain.from_iterable(candidate.changes for candidate in comparison.candidates))
    deciding = [change for change in changes if change.base.decides]
    others = [change for change in changes if not change.base.decides]
    facts = []
    if deciding:
        facts = [("measures decide", str(len(deciding)))]
        results = [change.change for change in deciding]
        facts += [(label, str(results.count(change))) for label, change in COUNTED.items()]
    deciding_table = _change_table(comparison, deciding)
    flagged = [change for change in others if change.change in FLAGGED]
    tables = [
        deciding_table,
        _change_table(comparison, flagged, "What else changed", NO_DECISION),
    ]
    reasons = _undecided_reasons(comparison)
    notes = _notes(comparison, is_repeated=all(change.repeated for change in deciding))
    causes = _cause_change(comparison)
    names = [candidate.candidate.name for candidate in comparison.candidates]
    tolerance = f"{100 * comparison.tolerance:.3g}"
    is_forced = any(pair.contrast.foreign and pair.changes for pair in comparison.candidates)
    head = Head(
        statement=causes,
        title=f"compare {comparison.base.name} with {', '.join(names)}",
        verdict=comparison.verdict,
        folder="",
        conditions=(f"{comparison.run_type}s", f"tolerance {tolerance} %"),
        facts=facts,
        warnings=notes,
        # the command that gives the same comparison
        environment={
            "command_line": [
                *("scaletest", "compare", comparison.base.name, *names),
                *("--tolerance", f"{tolerance}%"),
                *(["--force"] if is_forced else []),
            ]
        },
    )
    return Report(
        head=head,
        summary=lambda: [
            *tables,
            Text([causes]),
            Text(reasons, most=MOST_REASONS, rest="undecided measure"),
            Text(notes, "soft", label="note", most=MOST_NOTES, rest="note"),
        ],
        comment=lambda: [
            *tables,
            Text(reasons, "list", most=MOST_REASONS, rest="undecided measure"),
        ],
        sections=lambda: _sections(comparison, deciding_table, others, reasons),
        sheet=lambda: _sheet(comparison),
        cases=lambda: _cases(comparison),
        data=comparison.to_dict,
    )


def _cause_change(comparison: Comparison) -> str:
    """Return whether the runs have the same cause; "" where nothing limits any of them."""
    base = comparison.base
    parts = []
    for candidate in (candidate.candidate for candidate in comparison.candidates):
        if base.cause == candidate.cause != "":
            parts.append(f"{candidate.name} has the same cause as {base.name}: {base.cause}")
        elif base.cause != candidate.cause:
            before, after = base.cause or "none", candidate.cause or "none"
            parts.append(f"the cause changed: {before} in {base.name}, {after} in {candidate.name}")
    return clean_text("; ".join(parts), limit=300)


def _notes(comparison: Comparison, *, is_repeated: bool) -> list[str]:
    """Return what a reader must know of the runs, each sentence once.

    is_repeated: whether the intervals of all measures that decide are those of repeats.
    """
    base, notes = comparison.base.name, []
    for candidate in comparison.candidates:
        name, contrast = candidate.candidate.name, candidate.contrast
        for difference in contrast.differences:
            notes.append(f"the plans of {base} and {name} differ in {difference.text}")
        # two runs may have one name
        for run, names in ((base, candidate.only_base), (name, candidate.only_candidate)):
            if names:
                notes.append(f"only {run} has {', '.join(names)}")
    if not is_repeated:
        notes.append(
            "intervals cover variation within a run only; measure with more <repeats> to include"
            " run-to-run variation"
        )
    return [clean_text(note, limit=300) for note in dict.fromkeys(notes)]


def _change_table(
    comparison: Comparison, changes: Sequence[MeasureChange], title: str = "", note: str = ""
) -> Table:
    """Make a row for each measure: the base run, then every candidate with ratio and result."""
    if not changes:
        return Table((), ())
    titles = ["measure", comparison.base.name]
    columns_of_text = [0]
    for candidate in comparison.candidates:
        titles += [candidate.candidate.name, "ratio (95 %)", "result"]
        columns_of_text.append(len(titles) - 1)
    # the change of each measure, for each candidate
    changes_by_key = [
        {change.base.key: change for change in candidate.changes}
        for candidate in comparison.candidates
    ]
    rows = []
    # several candidates may have changed the same measure, which gets one row
    for key, base in {change.base.key: change.base for change in changes}.items():
        row = [clean_text(base.text, limit=80), _value_text(base)]
        for by_key in changes_by_key:
            change = by_key.get(key)
            if change is None:
                row += [NOTHING, NOTHING, "not measured"]
            else:
                ratio = ratio_text(change.ratio) if change.ratio else NOTHING
                row += [_value_text(change.candidate), ratio, str(change.change)]
        rows.append(row)
    return Table(titles, rows, texts=columns_of_text, layout="names", title=title, note=note)


def _value_text(measure: Measure) -> str:
    return format_quantity(measure.estimate.value, measure.unit)


def _undecided_reasons(comparison: Comparison) -> list[str]:
    """Return why measures that decide are undecided, a line each."""
    lines = []
    for candidate in comparison.candidates:
        place = f" in {candidate.candidate.name}" if len(comparison.candidates) > 1 else ""
        for change in candidate.deciding:
            if change.reason:
                lines.append(
                    clean_text(f"undecided{place}: {change.base.text}: {change.reason}", limit=300)
                )
    return lines


def _sections(
    comparison: Comparison,
    deciding_table: Table,
    others: Sequence[MeasureChange],
    reasons: Sequence[str],
) -> list[Section]:
    """Make the page. others: changes of measures that do not decide."""
    runs = [comparison.base, *(candidate.candidate for candidate in comparison.candidates)]
    folders = [(run.name, run.folder) for run in runs]
    return contents.make_page(
        {
            "What changed": [
                deciding_table,
                Text(reasons, "list"),
                Text([MEANING] if deciding_table.rows else [], "soft"),
            ],
            "All runs": [Charts(curve_charts(runs), "two", note=LEGEND)],
        },
        folded={
            "Other measures": [_change_table(comparison, others)],
            "Where the runs are stored": [
                Table(("run", "folder"), folders, (0, 1), layout="wrapped")
            ],
        },
    )


def _sheet(comparison: Comparison) -> Sheet:
    """Make a row for each measure and candidate. New columns come at the end."""
    titles = ["run", "measure", "where", "unit", "decides", "change"]
    for name in ("base", "candidate", "ratio"):
        titles += [name, f"{name}_low", f"{name}_high"]
    rows: list[list[Value]] = []
    for candidate in comparison.candidates:
        for change in candidate.changes:
            base = change.base
            numbers: list[Value] = []
            for estimate in (base.estimate, change.candidate.estimate, change.ratio):
                # empty where an interval has no end, or there is no ratio
                numbers += [column_at(end)(estimate) for end in ("value", "low", "high")]
            rows.append(
                [
                    candidate.candidate.name,
                    base.name,
                    place_text(base.where),
                    base.unit,
                    "yes" if base.decides else "no",
                    str(change.change),
                    *numbers,
                    "yes" if change.significant else "no",
                    change.reason,
                ]
            )
    return Sheet([*titles, "significant", "reason"], rows)


def _cases(comparison: Comparison) -> list[Case]:
    """Make a test case of each measure that decides, for each candidate."""
    return [
        Case(
            change.base.text,
            KINDS.get(change.change, VerdictKind.PASS),
            f"{change.text}: {change.change}\n{change.reason}".strip(),
            group=candidate.candidate.name,
        )
        for candidate in comparison.candidates
        for change in candidate.deciding
    ]
