"""A saturation run as a report, with what a terminal and a comment in CI show, and test cases.

Its two charts show what succeeded against what was asked for, and latency against it. The sheet has
one row a step for programs; new columns come at the end. Test cases are the verdict, and every
step.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from scaletest.analysis.estimate import finite
from scaletest.analysis.saturation.evaluation import SaturationResult
from scaletest.analysis.saturation.step import Assessed, level_text
from scaletest.archive.sql import Answer
from scaletest.model import VerdictKind
from scaletest.model.saturation import LoadKind, Phase
from scaletest.model.texts import short
from scaletest.render import svg
from scaletest.render.contents import (
    CLOCK_DIGITS,
    Block,
    Case,
    Facts,
    Figure,
    Head,
    Report,
    Section,
    Sheet,
    Table,
    Text,
)
from scaletest.render.numbers import NOTHING, duration, percent, seconds, significant, unit_of
from scaletest.render.svg import Axis, Chart
from scaletest.report import words as common
from scaletest.report.saturation import words
from scaletest.saturation.run_type import SaturationRun

SIZES = ((760.0, 420.0), (360.0, 330.0))


def throughput(result: SaturationResult) -> Figure | None:
    """Successes a second at every level; None with fewer than two levels."""
    rows = _rows(result)
    if len(rows) < 2:
        return None
    charts = [
        _throughput(result, rows, f"goodput-{index}", *size) for index, size in enumerate(SIZES)
    ]
    return Figure(
        charts[0], charts[1], f"{words.point(result) or 'No saturation point was found'}."
    )


def _throughput(
    result: SaturationResult, rows: Sequence[Assessed], name: str, width: float, height: float
) -> Chart:
    top = max(min(assessed.goodput.high, 1.5 * assessed.goodput.value) for assessed in rows)
    description = "; ".join(
        f"{assessed.step.level:g}: {significant(assessed.goodput.value)}/s" for assessed in rows
    )
    chart = Chart(
        name,
        "What succeeded",
        description,
        _levels(result, rows),
        _up("requests/s", top),
        width,
        height,
    )
    chart.legend("succeeded, 95 % interval", "c-dot", "dot")
    chart.legend("saturated", "c-dot c-hollow", "dot")
    if result.plan.open:
        chart.legend("all that was offered", "c-ideal")
        # a line that left the frame would lose its slope
        end = min(chart.x.high, chart.y.high)
        chart.line([(0.0, 0.0), (end, end)], "c-ideal")
    if result.point:
        chart.legend("saturation point", "c-wanted")
        chart.across(result.point.value, "c-wanted")
    for assessed in rows:
        if math.isfinite(assessed.goodput.high):
            chart.error(assessed.step.level, assessed.goodput.low, assessed.goodput.high, "c-error")
        css = "c-dot" if words.state(assessed) == "held" else "c-dot c-hollow"
        chart.dot(
            assessed.step.level,
            assessed.goodput.value,
            css,
            f"{assessed.step.level:g}: {words.rate(assessed)}/s",
        )
    return chart


def latency(result: SaturationResult) -> Figure | None:
    """Median and 95th percentile at every level that held; None with fewer than two."""
    rows = [
        assessed
        for assessed in _rows(result)
        if assessed.latency.p50 and words.state(assessed) == "held"
    ]
    # of a level that was measured again the last counts, so that the line goes one way
    rows = list({assessed.step.level: assessed for assessed in rows}.values())
    if len(rows) < 2:
        return None
    charts = [_latency(result, rows, f"latency-{index}", *size) for index, size in enumerate(SIZES)]
    counted = "from the intended start" if result.plan.open else "from when it was sent"
    return Figure(charts[0], charts[1], f"Latency {counted}, of steps that held.")


def _latency(
    result: SaturationResult, rows: Sequence[Assessed], name: str, width: float, height: float
) -> Chart:
    highest = max(
        (assessed.latency.p95 or assessed.latency.p50).value
        for assessed in rows
        if assessed.latency.p50
    )
    size, unit = unit_of(highest)
    chart = Chart(
        name,
        "Latency",
        "median and 95th percentile at every level",
        _levels(result, rows),
        _up(f"latency, {unit}", highest / size),
        width,
        height,
    )
    chart.legend("median", "c-data")
    chart.legend("95 %", "c-wanted")
    for quantile, css in (("p50", "c-data"), ("p95", "c-wanted")):
        points = [(assessed.step.level, getattr(assessed.latency, quantile)) for assessed in rows]
        chart.line([(level, value.value / size) for level, value in points if value], css)
    for assessed in rows:
        if assessed.latency.p50:
            chart.dot(
                assessed.step.level,
                assessed.latency.p50.value / size,
                "c-dot",
                f"{assessed.step.level:g}",
            )
    return chart


def _rows(result: SaturationResult) -> list[Assessed]:
    measured = [
        assessed
        for assessed in result.steps
        if assessed.step.phase not in (Phase.WARM, Phase.OPERATE)
    ]
    return sorted(measured, key=lambda assessed: assessed.step.level)


def _levels(result: SaturationResult, rows: Sequence[Assessed]) -> Axis:
    label = "requests/s offered" if result.plan.open else "requests in flight"
    return Axis(label, 0.0, 1.05 * max(assessed.step.level for assessed in rows))


def _up(label: str, top: float) -> Axis:
    return Axis(label, 0.0, svg.ceiling(top * 1.05))


STEP_TITLES = (
    "phase",
    "level",
    "offered/s",
    "succeeded/s",
    "backlog/s",
    "ok",
    "errors",
    "tester late p99",
    "CPU",
    "state",
)
TIME_TITLES = ("phase", "level", "what", "requests", "mean", "p50", "p90", "p95", "p99", "longest")


def sections(run: SaturationRun) -> list[Section]:
    """All sections that have anything to show."""
    result = run.result
    settings = [str(line) for line in (*run.extra.get("lines", []), *words.pods(run))]
    knees = words.knee_rows(result)
    parts: dict[str, Sequence[Block]] = {
        "What it can take": _point(result),
        "Settings and target": [Text(settings, "code")] if settings else [],
        "Steps": _steps(result),
        "Knees": [Facts(knees)] if knees else [],
        "Result queries": [_answer(answer) for answer in words.queries(run)],
    }
    return [Section(title, blocks) for title, blocks in parts.items() if blocks]


def _point(result: SaturationResult) -> list[Block]:
    sentences = words.sentences(result)
    if not sentences:
        return []
    charts = (throughput(result), latency(result))
    return [Text(sentences, "list"), *(chart for chart in charts if chart)]


def _steps(result: SaturationResult) -> list[Block]:
    if not result.steps:
        return []
    meaning = (
        "Open load is counted from the intended start of each request. Brackets are 95 % intervals."
        " A step held when enough succeeded and the interval of the backlog's growth contains 0."
    )
    steps = [_step(assessed) for assessed in result.steps]
    times = [row for assessed in result.steps for row in _times(assessed)]
    return [
        Table(STEP_TITLES, steps, texts=(0, 6, 9), layout="states"),
        Text([meaning], "soft"),
        Table(TIME_TITLES, times, texts=(0, 2)),
    ]


def _answer(answer: Answer) -> Table:
    """A query's rows: times to the microsecond, as they are stored, and nothing where nothing is
    known.
    """
    rows = [[_cell(figure) for figure in row] for row in answer.rows]
    return Table(answer.columns, rows, folded=answer.title)


def _cell(figure: object) -> str:
    if figure is None:
        return ""
    return f"{figure:.6f}" if isinstance(figure, float) else str(figure)


def facts(run: SaturationRun) -> list[tuple[str, str]]:
    result = run.result
    pairs = []
    if result.point:
        pairs.append(("requests/s is the saturation point", significant(result.point.value, 4)))
    if result.parallel:
        pairs.append(("in flight reach it", str(result.parallel)))
    if result.operating:
        pairs.append(("requests/s to operate at", significant(result.operating.step.level)))
        pairs.append(("mean latency there", seconds(result.operating.latency.mean)))
    steps, requests = words.counts(result)
    pairs += [("steps", str(steps)), ("requests", str(requests))]
    pairs.append(("duration", duration(result.elapsed_s)))
    return pairs


def _step(assessed: Assessed) -> list[str]:
    growth = assessed.growth
    return [
        str(assessed.step.phase),
        level_text(assessed.step),
        significant(assessed.offered) if assessed.step.load == LoadKind.OPEN else "",
        words.rate(assessed),
        f"{short(growth.value)} [{short(growth.low)}, {short(growth.high)}]" if growth else "",
        percent(assessed.success),
        words.errors(assessed),
        seconds(assessed.lag_s),
        percent(assessed.step.cpu, 0),
        assessed.tester or assessed.saturated or assessed.undecided or "held",
    ]


def _times(assessed: Assessed) -> list[list[str]]:
    rows = []
    kinds = [
        ("latency", assessed.latency),
        ("since sent", assessed.service),
        ("in the service", assessed.server),
    ]
    for name, values in (
        kinds
        if assessed.step.load == LoadKind.OPEN or assessed.step.phase == Phase.WARM
        else kinds[1:]
    ):
        if values.count:
            cells = [words.quantile(values, name) for name in ("p50", "p90", "p95", "p99")]
            longest = seconds(values.max) if values.max is not None else NOTHING
            head = [
                str(assessed.step.phase),
                level_text(assessed.step),
                name,
                str(values.count),
                seconds(values.mean),
            ]
            rows.append([*head, *cells, longest])
    return rows


MOST_ERRORS, MOST_COMMENT_ERRORS, MOST_WARNINGS, MOST_LINES = 6, 10, 3, 20


def summary(run: SaturationRun) -> list[Block]:
    """The steps, errors by kind, what the service can take, settings, and warnings."""
    result = run.result
    settings = [str(line) for line in (*run.extra.get("lines", []), *words.pods(run))]
    return [
        *_step_table(result.steps),
        Text(words.error_lines(result), label="errors", most=MOST_ERRORS, rest="step with errors"),
        Text(words.sentences(result)),
        Text(settings, most=MOST_LINES),
        Text(
            common.warnings(result.verdict, result.interrupted, result.warnings),
            "warning",
            label="warning",
            most=MOST_WARNINGS,
            rest="warning",
        ),
    ]


def comment(run: SaturationRun) -> list[Block]:
    """The steps, what the service can take, and errors by kind."""
    result = run.result
    errors = words.error_lines(result)
    return [
        *_step_table(result.steps),
        Text(words.sentences(result), "list"),
        Text(errors, "list", "Errors", most=MOST_COMMENT_ERRORS, rest="step with errors"),
    ]


def _step_table(steps: Sequence[Assessed]) -> list[Block]:
    if not steps:
        return []
    queueing = any(assessed.server.count for assessed in steps)
    titles = ["phase", "level", "succeeded/s", *words.QUANTILES]
    titles += ["queueing"] if queueing else []
    rows = []
    for assessed in steps:
        row = [str(assessed.step.phase), level_text(assessed.step), words.rate(assessed)]
        row += [words.quantile(assessed.latency, name) for name in words.QUANTILES]
        row += [percent(assessed.queueing, 0)] if queueing else []
        rows.append([*row, percent(assessed.success), words.state(assessed)])
    return [Table([*titles, "ok", "state"], rows, spare=("p50", "queueing"))]


Value = float | int | str | None


def _quantile(times: str, name: str) -> Callable[[Assessed], Value]:
    def get(assessed: Assessed) -> Value:
        value = getattr(getattr(assessed, times), name)
        return value.value if value else None

    return get


COLUMNS: dict[str, Callable[[Assessed], Value]] = {
    "number": lambda assessed: assessed.step.number,
    "phase": lambda assessed: assessed.step.phase,
    "load": lambda assessed: assessed.step.load,
    "level": lambda assessed: assessed.step.level,
    "seconds": lambda assessed: assessed.step.seconds,
    "requests": lambda assessed: assessed.step.requests,
    "attempts": lambda assessed: assessed.attempts,
    "offered_per_s": lambda assessed: assessed.offered,
    "goodput_per_s": lambda assessed: assessed.goodput.value,
    "goodput_low_per_s": lambda assessed: finite(assessed.goodput.low),
    "goodput_high_per_s": lambda assessed: finite(assessed.goodput.high),
    "backlog_growth_per_s": lambda assessed: assessed.growth.value if assessed.growth else None,
    "backlog_growth_low_per_s": lambda assessed: assessed.growth.low if assessed.growth else None,
    "backlog_growth_high_per_s": lambda assessed: assessed.growth.high if assessed.growth else None,
    "success": lambda assessed: assessed.success,
    "latency_mean_s": lambda assessed: assessed.latency.mean,
    **{f"latency_{name}_s": _quantile("latency", name) for name in ("p50", "p90", "p95", "p99")},
    "latency_max_s": lambda assessed: assessed.latency.max,
    "server_mean_s": lambda assessed: assessed.server.mean,
    "queueing_share": lambda assessed: assessed.queueing,
    "errors": words.errors,
    "lag_p99_s": lambda assessed: assessed.lag_s,
    "cpu_cores": lambda assessed: assessed.step.cpu,
    "saturated": lambda assessed: assessed.saturated,
    "tester_bottleneck": lambda assessed: assessed.tester,
    "undecided": lambda assessed: assessed.undecided,
}


def sheet(result: SaturationResult) -> Sheet:
    """Titles and one row a step."""
    rows = [[get(assessed) for get in COLUMNS.values()] for assessed in result.steps]
    return Sheet(list(COLUMNS), rows, digits=CLOCK_DIGITS)


def cases(run: SaturationRun) -> Iterator[Case]:
    """The run, then its steps: a saturated step is what was looked for, one that the tester spoilt
    is an error.
    """
    result = run.result
    message = f"{result.verdict.reason}\n{result.verdict.remedy}".strip()
    yield Case("verdict", result.verdict.kind, message, result.elapsed_s)
    for assessed in result.steps:
        kind = VerdictKind.INVALID if assessed.tester else VerdictKind.PASS
        step = assessed.step
        name = f"{step.number} {step.phase} {level_text(step)}"
        yield Case(name, kind, assessed.tester, step.seconds)


def saturation_report(run: SaturationRun) -> Report:
    """What every format shows of a saturation run."""
    return Report(
        head=_head(run),
        summary=lambda: summary(run),
        comment=lambda: comment(run),
        sections=lambda: sections(run),
        sheet=lambda: sheet(run.result),
        cases=lambda: list(cases(run)),
        data=lambda: _data(run),
    )


def _head(run: SaturationRun) -> Head:
    result = run.result
    name = shlex.quote(run.name)
    page = f"scaletest report {name} -o report.html"
    return Head(
        title=words.heading(result),
        verdict=result.verdict,
        folder=run.folder,
        name=run.name,
        conditions=(words.wanted(result),),
        machine=common.machine(run.environment),
        began=str(run.environment.get("began", "")),
        elapsed_s=result.elapsed_s,
        facts=facts(run),
        warnings=common.warnings(result.verdict, result.interrupted, result.warnings),
        command_line=common.command_line(run.environment),
        following=f"scaletest size --run {name}" if result.point else page,
        environment=run.environment,
        plan=result.plan.to_dict(),
    )


def _data(run: SaturationRun) -> dict[str, Any]:
    """The result, the original tool's queries, and what else was on record."""
    extra = {"extra": run.extra} if run.extra else {}
    return {
        "queries": [answer.to_dict() for answer in words.queries(run)],
        **run.result.to_dict(),
        "pods": [times.to_dict() for times in words.pods(run)],
        "folder": run.folder,
        **extra,
    }
