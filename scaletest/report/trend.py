"""The trend of a measure over runs as a report: its course, and a row for each run."""

from math import isfinite

from scaletest.model import Verdict, VerdictKind
from scaletest.render import contents
from scaletest.render.axis import Axis, axis_end
from scaletest.render.blocks import Charts, Table, Text
from scaletest.render.chart import Chart
from scaletest.render.contents import Case, Head, Report, Sheet, column_at
from scaletest.render.numbers import (
    NOTHING,
    plural,
    unit_scale,
    with_interval,
)
from scaletest.render.text import clean_text
from scaletest.report.words import AXES
from scaletest.stats.change import Change, ratio_text
from scaletest.stats.trend import Trend, TrendPoint

ANSWER = "TREND"
MEANING = (
    "Change: against the run in which the measure changed last, the first one at the beginning, by"
    " the rule of scaletest compare. Intervals are those of 95 %."
)
COLUMNS = {
    "run": column_at("side.name"),
    "value": column_at("estimate.value"),
    "low": column_at("estimate.low"),
    "high": column_at("estimate.high"),
    "change": column_at("change"),
    "ratio": column_at("ratio.value"),
    "ratio_low": column_at("ratio.low"),
    "ratio_high": column_at("ratio.high"),
    "cause": column_at("side.cause"),
    "note": column_at("note"),
}


def trend_report(trend: Trend, title: str) -> Report:
    """Make the report of a trend. title: by what the runs were chosen."""
    table = _run_table(trend)
    is_worse = bool(trend.flagged) and trend.flagged[-1].change is Change.REGRESSION
    kind = VerdictKind.FAIL if is_worse else VerdictKind.PASS
    return Report(
        head=Head(
            title=f"trend of {trend.name} in {clean_text(title, limit=80)}",
            verdict=Verdict(kind, _describe_changes(trend)),
            folder="",
            conditions=(
                plural(len(trend.points), trend.run_type),
                f"tolerance {100 * trend.tolerance:.3g} %",
            ),
            environment={
                "command_line": ["scaletest", "runs", "trend", title, "--measure", trend.name]
            },
            answer=ANSWER,
        ),
        summary=lambda: [table],
        comment=lambda: [table],
        sections=lambda: contents.make_page(
            {
                "Course": [Charts([draw_course(trend)], "one", narrow_size=(360.0, 330.0))],
                "Runs": [table, Text([MEANING], "soft")],
            }
        ),
        sheet=lambda: Sheet.of_columns(COLUMNS, trend.points),
        cases=lambda: [
            Case(point.side.name, VerdictKind.PASS, str(point.change or ""))
            for point in trend.points
        ],
        data=trend.to_dict,
    )


def _describe_changes(trend: Trend) -> str:
    """Say in which runs the measure changed."""
    changes = [
        f"{point.change} in {point.side.name} ({point.ratio.value:.2f}x)"
        for point in trend.flagged
        if point.ratio
    ]
    if not changes:
        return f"no change of more than {100 * trend.tolerance:.3g} % was shown"
    return clean_text(", ".join(changes), limit=300)


def _run_table(trend: Trend) -> Table:
    """Make a row for each run."""
    rows = []
    for point in trend.points:
        cause = point.side.cause + (" (new)" if point.has_other_cause and point.side.cause else "")
        rows.append(
            {
                "run": clean_text(point.side.name, limit=60),
                trend.name: _value_text(point, trend.measure.unit),
                "ratio (95 %)": ratio_text(point.ratio) if point.ratio else "",
                "change": str(point.change or ""),
                "note": clean_text(point.note, limit=100),
                "cause": clean_text(cause, limit=60),
            }
        )
    return Table.of_rows(
        rows, ("run", "change", "cause"), spare=("note", "ratio (95 %)"), layout="wrapped"
    )


def _value_text(point: TrendPoint, unit: str) -> str:
    value = point.estimate
    if value is None:
        return NOTHING
    size, prefixed = unit_scale(value.value, unit)
    scaled = value.scaled(1 / size)
    return f"{with_interval(scaled.value, scaled.low, scaled.high)} {prefixed}".rstrip()


def draw_course(trend: Trend) -> Chart:
    """Draw the measure run by run; runs in which it changed stand out."""
    # of the names that runs get by themselves this is the date
    names = [clean_text(point.side.name[:10]) for point in trend.points]
    known = [
        (number, point, point.estimate)
        for number, point in enumerate(trend.points)
        if point.estimate is not None
    ]
    size, unit = unit_scale(max(estimate.value for _, _, estimate in known), trend.measure.unit)
    ends = [end for _, _, value in known for end in (value.value, value.high) if isfinite(end)]
    chart = Chart(
        "trend",
        trend.name,
        f"{plural(len(known), 'run')}, the oldest first",
        Axis("run", low=-0.5, high=len(names) - 0.5, marks=range(len(names)), names=names),
        Axis(AXES.get(unit, unit or trend.name), low=0.0, high=axis_end(max(ends) / size)),
    )
    chart.legend("measured, 95 % interval", "c-dot", "dot")
    if trend.flagged:
        chart.legend("changed", "c-mark")
    for number, point, _ in known:
        if point in trend.flagged:
            chart.vertical_line(number, "c-mark", str(point.change))
    chart.line([(number, estimate.value / size) for number, _, estimate in known], "c-data")
    for number, point, estimate in known:
        if isfinite(estimate.high) and estimate.high > estimate.low:
            chart.error(number, estimate.low / size, estimate.high / size, "c-error")
        tip = f"{point.side.name}: {_value_text(point, trend.measure.unit)}"
        chart.dot(number, estimate.value / size, "c-dot", tip)
    return chart
