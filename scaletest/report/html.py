"""A run as one HTML file: no script, no address outside itself, readable on a phone, in the dark
and on paper.

The template says where things stand, this file what they say; whatever is no markup is escaped on
its way in.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from scaletest.analysis.background import BackgroundStep
from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.failures import FailureGroup
from scaletest.analysis.percentiles import Distribution
from scaletest.analysis.steps import REPEATS_FOR_INTERVAL, Step
from scaletest.model import Plan
from scaletest.render.numbers import (
    NOTHING,
    between,
    duration,
    instant,
    measured,
    percent,
    percent_between,
    plural,
    seconds,
    seconds_between,
    significant,
)
from scaletest.render.style import CHART, PALETTE
from scaletest.render.text import Markup, clean
from scaletest.report import limits, usage, words
from scaletest.report.figures import course, growth, spread, time_spent
from scaletest.report.groups import groups
from scaletest.report.run import Run
from scaletest.report.table import Row, rows, works

LONGEST_TEXT = 4000
FORMATS = ("text", "md", "csv", "json", "junit")


def page(run: Run) -> str:
    """The whole file."""
    return environment().get_template("report.html").render(view(run))


@cache
def environment() -> Environment:
    """The templates of all reports; what is no markup is escaped on its way in."""
    found = Environment(
        loader=PackageLoader("scaletest.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_safe,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.globals.update(seconds=seconds, quoted=shlex.quote)
    return found


def view(run: Run) -> dict[str, Any]:
    """Everything that the template shows, in words and charts."""
    result = run.result
    found = rows(result)
    many = len(found) > 2 and not result.plan.compares
    return {
        "style": Markup(PALETTE + CHART),
        "title": words.heading(result),
        "machine": words.machine(run.environment),
        "began": str(run.environment.get("began", "")),
        "verdict": result.verdict,
        "warnings": result.warnings,
        "thresholds": [_threshold(one) for one in result.thresholds],
        "facts": _facts(run, found),
        "law": words.law(result),
        "throughput": growth.throughput(result),
        "efficiency": growth.efficiency(result),
        **_limits(result),
        "steps": [_step(row, works(found)) for row in found],
        **_sharing(result, found),
        "works": works(found),
        "knees": [(words.KNEES[one.method], words.knee(one)) for one in result.growth.knees]
        if many
        else [],
        "serial": result.growth.serial.sentence if many else "",
        "interval": words.interval(result.steps),
        "measurings": _measurings(result.plan),
        "courses": course.panels(result, run.records),
        "course_caption": course.CAPTION,
        "boxes": [
            chart
            for kind in ("run_s", "wait_s")
            if (chart := spread.boxes(result, run.records, kind))
        ],
        "box_caption": spread.BOX_CAPTION,
        "histograms": spread.histograms(result, run.records, "run_s"),
        "histogram_caption": spread.HISTOGRAM_CAPTION,
        "percentiles": [
            _percentiles(step, kind) for step in result.steps for kind in ("run", "wait")
        ],
        **_shares(run),
        "background": [_background(result.plan, row) for row in result.background],
        "failures": [_failure(group) for group in result.failures],
        "environment": [
            (key.replace("_", " "), shown(value)) for key, value in _conditions(run.environment)
        ],
        "plan": [
            (key.replace("_", " "), shown(value)) for key, value in result.plan.to_dict().items()
        ],
        "command_line": run.command_line,
        "name": run.name,
        "folder": run.folder,
        "formats": FORMATS,
    }


def _facts(run: Run, found: Sequence[Row]) -> list[tuple[str, str]]:
    """The few numbers that stand beside the verdict."""
    result = run.result
    good = [row for row in found if row.scaled]
    facts = []
    if good:
        best = max(good, key=lambda row: row.step.throughput.per_s)
        facts.append(
            (
                f"requests/s at most, with {plural(best.step.workers, 'worker')}",
                words.rate(best.step),
            )
        )
        facts += [(f"{name}/s there", words.work(best.step, name)) for name in best.step.work]
    if result.sharing and result.sharing.best:
        facts.append(("workers on each device are best", str(result.sharing.best)))
    elif len(good) > 1 and good[-1].scaled:
        last = good[-1].scaled
        facts.append(
            (
                f"speed-up with {plural(last.workers, 'worker')}",
                f"{significant(last.speedup.value)}x",
            )
        )
        facts.append(("efficiency there", percent(last.efficiency.value, 0)))
    done = sum(step.run.count for step in result.steps)
    facts.append(("requests done", str(done)))
    facts.append(("failed", str(sum(step.failures for step in result.steps))))
    facts.append(("duration", duration(result.elapsed_s)))
    return facts


def _limits(result: Evaluation) -> dict[str, Any]:
    """What stops the run, where its requests say it."""
    causes = result.causes
    shown = limits.rows(causes)
    optional = {
        "object": [row.object for row in shown],
        "measured": [row.evidence for row in shown],
    }
    told = {title: cells for title, cells in optional.items() if any(cells)}
    return {
        "causes_of": limits.doubling(causes) if causes else "",
        "causes_optional": list(told),
        "causes": [
            (
                row.label,
                row.share,
                row.added,
                row.course,
                *(cells[number] for cells in told.values()),
                row.remedy,
            )
            for number, row in enumerate(shown)
        ],
        "causes_note": limits.note(causes) if causes else "",
        "time_spent": time_spent.time_spent(result),
        **_resources(result),
    }


def _resources(result: Evaluation) -> dict[str, Any]:
    """What the nodes did, where samples are there."""
    titles, lines = usage.table(result)
    disturbed = [
        (instant(spell.begin_s), instant(spell.end_s), spell.node, spell.text)
        for spell in result.disturbed
    ]
    return {
        "resource_titles": titles,
        "resources": lines,
        "resources_note": usage.note(result),
        "disturbed": disturbed,
    }


def _sharing(result: Evaluation, found: Sequence[Row]) -> dict[str, Any]:
    """How many workers share a device, in a run that compares that."""
    compared = found if result.plan.compares else []
    return {
        "sharing": [_shared(row, works(found)) for row in compared],
        "shared": words.shares(result),
    }


def _shared(row: Row, figures: Sequence[str]) -> list[str]:
    step = row.step
    return [
        str(step.per_device),
        str(step.workers),
        words.rate(step),
        *(words.work(step, name) for name in figures),
        significant(row.scaled.speedup.value) if row.scaled else NOTHING,
        words.fair(step, "worker") or NOTHING,
        words.fair(step, "device") or NOTHING,
        str(step.memory_hits),
        str(step.failures),
    ]


def _step(row: Row, figures: Sequence[str]) -> list[str]:
    step, scaled = row.step, row.scaled
    serial = scaled.serial_fraction if scaled else None
    found = step.ratio
    return [
        str(step.workers),
        words.rate(step),
        *(words.work(step, name) for name in figures),
        between(found.value, found.low, found.high) if found else "",
        significant(scaled.speedup.value) if scaled else NOTHING,
        (_share(scaled.efficiency) if serial else "100%") if scaled else NOTHING,
        _share(serial) if serial else "",
        str(step.failures),
        percent(step.overhead_share),
        words.stops(step),
        seconds(words.measured_s(step)),
    ]


def _share(found: Any) -> str:
    return percent_between(found.value, found.low, found.high)


def _percentiles(step: Step, kind: str) -> list[str]:
    values: Distribution = getattr(step, kind)
    cells = [str(step.workers), kind, str(values.count), seconds(values.mean)]
    for name, _ in words.QUANTILES:
        found = words.quantile(values, name)
        if found is None:
            cells.append(f"{NOTHING} (needs ≥ {words.needs(name)})")
        elif found.low is None or found.high is None:
            cells.append(seconds(found.value))
        else:
            cells.append(seconds_between(found.value, found.low, found.high))
    return [*cells, seconds(values.max)]


def _shares(run: Run) -> dict[str, Any]:
    """Of the last step that did anything: there it shows best who held it up."""
    steps = [step for step in run.result.steps if step.run.count]
    found = groups(steps[-1], run.records) if steps else []
    return {
        "shares_at": steps[-1].workers if steps else 0,
        "shares_of": _first_measuring(run.result.plan),
        "shares": found,
        "fairness": [
            [str(step.workers), kind, significant(one.ratio), f"{one.jain:.3f}"]
            for step in run.result.steps
            for kind, one in step.fairness.items()
        ],
    }


def _measurings(plan: Plan) -> str:
    """What follows from how often steps are measured; "" where repeats give the interval."""
    if plan.mirrored:
        up_and_down = "each step is measured on the way up and again on the way down"
        return f" ({up_and_down}, so that an even change of the machine cancels in every ratio)"
    return (
        "" if plan.repeats >= REPEATS_FOR_INTERVAL else " (one between repeats needs --repeats 3)"
    )


def _first_measuring(plan: Plan) -> str:
    """Of which measuring the workers and pods are; "" where each step is measured once."""
    if plan.mirrored:
        return "the way up"
    return "the first repeat" if plan.repeats > 1 else ""


def _threshold(one: Any) -> tuple[str, str, str]:
    return str(one.kind), one.text, one.reason


def _background(plan: Plan, row: BackgroundStep) -> list[str]:
    return [
        row.name,
        str(row.workers),
        words.measuring(plan, row.repeat) or "the only one",
        measured(row.throughput.per_s, row.throughput.half_width),
        seconds(row.wait.mean),
        seconds(row.run.mean),
        str(row.failures),
    ]


def _failure(group: FailureGroup) -> list[str]:
    code = NOTHING if group.exit_code is None else str(group.exit_code)
    what = f"{group.outcome}, {group.reason}" if group.reason else group.outcome
    return [
        str(group.count),
        what,
        code,
        clean(group.error or NOTHING, LONGEST_TEXT),
        group.node or NOTHING,
        group.device or NOTHING,
        instant(group.first_s),
        instant(group.last_s),
    ]


def _conditions(environment: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        (str(key), value)
        for key, value in environment.items()
        if key != "command_line" and value not in ("", [])
    ]


def shown(value: object) -> str:
    """Any value of a plan or an environment as text."""
    if value in ("", [], (), {}):
        return NOTHING
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(shown, value))
    return clean(NOTHING if value is None else value, LONGEST_TEXT)


def _safe(value: object) -> object:
    """Foreign text printable; markup, numbers and the like as they are."""
    return clean(value) if type(value) is str else value
