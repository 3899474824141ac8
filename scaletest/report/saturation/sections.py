"""What a page shows of a saturation run."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.analysis.saturation.evaluation import SaturationResult
from scaletest.analysis.saturation.step import Assessed, level_text
from scaletest.archive.queries import Answer
from scaletest.model.digits import short
from scaletest.model.saturation import LoadKind, Phase
from scaletest.render.contents import Block, Facts, Section, Table, Text
from scaletest.render.numbers import NOTHING, duration, percent, seconds, significant
from scaletest.report.saturation import words
from scaletest.report.saturation.figures import latency, throughput
from scaletest.report.saturation.run import SaturationRun

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
    told = words.told(result)
    if not told:
        return []
    charts = (throughput(result), latency(result))
    return [Text(told, "list"), *(chart for chart in charts if chart)]


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


def _step(one: Assessed) -> list[str]:
    found = one.growth
    return [
        str(one.step.phase),
        level_text(one.step),
        significant(one.offered) if one.step.load == LoadKind.OPEN else "",
        words.rate(one),
        f"{short(found.value)} [{short(found.low)}, {short(found.high)}]" if found else "",
        percent(one.success),
        words.errors(one),
        seconds(one.lag_s),
        percent(one.step.cpu, 0),
        one.tester or one.saturated or one.undecided or "held",
    ]


def _times(one: Assessed) -> list[list[str]]:
    rows = []
    kinds = [("latency", one.latency), ("since sent", one.service), ("in the service", one.server)]
    for name, values in (
        kinds if one.step.load == LoadKind.OPEN or one.step.phase == Phase.WARM else kinds[1:]
    ):
        if values.count:
            cells = [words.quantile(values, name) for name in ("p50", "p90", "p95", "p99")]
            longest = seconds(values.max) if values.max is not None else NOTHING
            head = [
                str(one.step.phase),
                level_text(one.step),
                name,
                str(values.count),
                seconds(values.mean),
            ]
            rows.append([*head, *cells, longest])
    return rows
