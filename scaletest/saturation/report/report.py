"""A saturation run as a report: what a terminal, a comment in CI and a page show, and test cases.

The sheet has one row a step for programs. Test cases are its steps.
"""

import shlex
from typing import Any

from scaletest.model import VerdictKind
from scaletest.render import contents
from scaletest.render.blocks import Block, Text
from scaletest.render.contents import CLOCK_DIGITS, Case, Head, Report, Section, Sheet
from scaletest.render.numbers import duration, seconds, significant
from scaletest.report.words import warnings
from scaletest.saturation.judging.pods import PodTimes, times_of_pods
from scaletest.saturation.judging.step import Assessed, level_text
from scaletest.saturation.plan import Phase, SaturationPlan
from scaletest.saturation.report.figures import charts
from scaletest.saturation.report.sentences import point_sentence, sentences
from scaletest.saturation.report.steps import (
    COLUMNS,
    error_lines,
    pod_lines,
    step_details,
    step_table,
)
from scaletest.saturation.run_type import SaturationRun

# Lines that are shown at most: a terminal and a comment have little room.
MOST_ERRORS, MOST_COMMENT_ERRORS, MOST_WARNINGS, MOST_LINES = 6, 10, 3, 20


def saturation_report(run: SaturationRun) -> Report:
    """Return what every format shows of a saturation run."""
    return Report(
        head=_head(run),
        summary=lambda: summary(run),
        comment=lambda: comment(run),
        sections=lambda: sections(run),
        sheet=lambda: Sheet.of_columns(COLUMNS, run.result.steps, digits=CLOCK_DIGITS),
        cases=lambda: list(map(_case, run.result.steps)),
        data=lambda: _data(run),
    )


def _case(assessed: Assessed) -> Case:
    """A step: a saturated one is what was looked for, one that the tester spoilt is an error."""
    step = assessed.step
    kind = VerdictKind.INVALID if assessed.tester else VerdictKind.PASS
    name = f"{step.number} {step.phase} {level_text(step)}"
    return Case(name, kind, assessed.tester, step.seconds)


def _data(run: SaturationRun) -> dict[str, Any]:
    """Return the result, and what else was on record."""
    extra = {"extra": run.extra} if run.extra else {}
    return {
        **run.result.to_dict(),
        "pods": [times.to_dict() for times in _pods(run)],
        "folder": run.folder,
        **extra,
    }


def _pods(run: SaturationRun) -> list[PodTimes]:
    """Return what each pod said it took at the operating point, beside what its client saw."""
    measured = run.result.operating
    return times_of_pods(run.samples.get(measured.step.number, ())) if measured else []


def _head(run: SaturationRun) -> Head:
    result, plan = run.result, run.result.plan
    name = shlex.quote(run.name)
    following = f"scaletest report {name} -o report.html"
    wanted = f"{plan.wanted:g}/s wanted" if plan.wanted else ""
    asked = (f"{plan.load} load", f"at least {plan.success:.0%} succeed", plan.limit, wanted)
    # the few numbers that stand beside the verdict
    facts = []
    if result.point:
        following = f"scaletest size --run {name}"
        facts.append(("requests/s is the saturation point", significant(result.point.value, 4)))
    if result.parallel:
        facts.append(("in flight reach it", str(result.parallel)))
    if result.operating:
        facts.append(("requests/s to operate at", significant(result.operating.step.level)))
        facts.append(("mean latency there", seconds(result.operating.latency.mean)))
    after_probe = sum(assessed.step.phase != Phase.WARM for assessed in result.steps)
    facts.append(("steps", str(after_probe)))
    facts.append(("requests", str(sum(assessed.step.requests for assessed in result.steps))))
    if result.elapsed_s:  # not known while it is measured
        facts.append(("duration", duration(result.elapsed_s)))
    return Head(
        title=f"saturate {plan.target}",
        verdict=result.verdict,
        folder=run.folder,
        name=run.name,
        conditions=(", ".join(filter(None, asked)),),
        elapsed_s=result.elapsed_s,
        facts=facts,
        warnings=warnings(result.verdict, result.interrupted, result.warnings),
        following=following,
        environment=run.environment,
        plan=plan.to_dict(),
        usual=contents.usual_settings(SaturationPlan),
    )


def summary(run: SaturationRun) -> list[Block]:
    """The steps, errors by kind, what the service can take, settings, and warnings."""
    result = run.result
    return [
        step_table(result.steps),
        Text(error_lines(result), label="errors", most=MOST_ERRORS, rest="step"),
        Text(pod_lines(result), label="pods", most=MOST_ERRORS, rest="step"),
        Text(sentences(result)),
        Text(_settings(run), most=MOST_LINES),
        Text(
            warnings(result.verdict, result.interrupted, result.warnings),
            "warning",
            label="warning",
            most=MOST_WARNINGS,
            rest="warning",
        ),
    ]


def comment(run: SaturationRun) -> list[Block]:
    """The steps, what the service can take, and errors by kind."""
    result = run.result
    errors = error_lines(result)
    return [
        step_table(result.steps),
        Text(sentences(result), "list"),
        Text(errors, "list", "Errors", most=MOST_COMMENT_ERRORS, rest="step"),
        Text(pod_lines(result), "list", "Pods", most=MOST_COMMENT_ERRORS, rest="step"),
    ]


def sections(run: SaturationRun) -> list[Section]:
    """All sections that have anything to show."""
    result = run.result
    lines = sentences(result)
    return contents.page(
        {
            "What it can take": [
                Text(lines, "list"),
                charts(result, point_sentence(result) or "no saturation point is known"),
            ],
            "Settings and target": [Text(_settings(run), "code")],
            "Steps": step_details(result),
            "Pods under load": [Text(pod_lines(result), "list")],
        }
    )


def _settings(run: SaturationRun) -> list[str]:
    """Return the settings on record, and what each pod said."""
    return [str(line) for line in (*run.extra.get("lines", []), *_pods(run))]
