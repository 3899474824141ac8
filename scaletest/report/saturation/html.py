"""A saturation run as one HTML file, with the template, charts and rules of every report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scaletest.analysis.saturation.step import Assessed, level_text
from scaletest.archive.queries import Answer
from scaletest.model.digits import short
from scaletest.model.saturation import LoadKind, Phase
from scaletest.render.numbers import NOTHING, duration, percent, seconds, significant
from scaletest.render.style import CHART, PALETTE
from scaletest.render.text import Markup
from scaletest.report import words as common
from scaletest.report.html import environment, shown
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


def page(run: SaturationRun) -> str:
    """The whole file."""
    return environment().get_template("saturation.html").render(view(run))


def view(run: SaturationRun) -> dict[str, Any]:
    """Everything that the template shows, in words and charts."""
    result = run.result
    return {
        "style": Markup(PALETTE + CHART),
        "title": words.heading(result),
        "machine": common.machine(run.environment),
        "began": str(run.environment.get("began", "")),
        "verdict": result.verdict,
        "warnings": result.warnings,
        "facts": _facts(run),
        "told": words.told(result),
        "figures": [one for one in (throughput(result), latency(result)) if one],
        "step_titles": STEP_TITLES,
        "steps": [_step(one) for one in result.steps],
        "time_titles": TIME_TITLES,
        "times": [row for one in result.steps for row in _times(one)],
        "knees": words.knee_rows(result),
        "queries": [_answer(one) for one in words.queries(run)],
        "lines": [str(one) for one in (*run.extra.get("lines", []), *words.pods(run))],
        "environment": [
            (key.replace("_", " "), shown(value))
            for key, value in run.environment.items()
            if key != "command_line" and value not in ("", [])
        ],
        "plan": [
            (key.replace("_", " "), shown(value)) for key, value in result.plan.to_dict().items()
        ],
        "command_line": run.command_line,
        "name": run.name,
        "folder": run.folder,
        "formats": ("text", "md", "csv", "json", "junit"),
    }


def _answer(found: Answer) -> Answer:
    """A query's rows as cells: times to the microsecond, as they are stored, and nothing where
    nothing is known.
    """
    cells = [
        tuple(f"{one:.6f}" if isinstance(one, float) else one for one in row) for row in found.rows
    ]
    return replace(found, rows=[tuple("" if one is None else one for one in row) for row in cells])


def _facts(run: SaturationRun) -> list[tuple[str, str]]:
    result = run.result
    facts = []
    if result.point:
        facts.append(("requests/s is the saturation point", significant(result.point.value, 4)))
    if result.parallel:
        facts.append(("in flight reach it", str(result.parallel)))
    if result.operating:
        facts.append(("requests/s to operate at", significant(result.operating.step.level)))
        facts.append(("mean latency there", seconds(result.operating.latency.mean)))
    steps, requests = words.counts(result)
    facts += [("steps", str(steps)), ("requests", str(requests))]
    facts.append(("duration", duration(result.elapsed_s)))
    return facts


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
