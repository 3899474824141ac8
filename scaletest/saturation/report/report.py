"""A saturation run as a report: what each form shows, and sentences on what a service can take.

The sheet has one row a step for programs. Test cases are its steps.
"""

import math
import shlex

from scaletest.model import VerdictKind
from scaletest.model.measurement import MachineUse
from scaletest.model.texts import short_number
from scaletest.render import contents
from scaletest.render.blocks import Block, Text
from scaletest.render.contents import CLOCK_DIGITS, Case, Head, Report, Section, Sheet
from scaletest.render.numbers import (
    format_duration,
    format_percent,
    format_seconds,
    format_significant,
    with_interval,
)
from scaletest.report.words import format_percentile, run_warnings, states_sentence
from scaletest.saturation.judging.evaluation import SaturationResult
from scaletest.saturation.judging.pods import PodTimes, times_of_pods
from scaletest.saturation.judging.step import AssessedStep, level_text
from scaletest.saturation.judging.step_sequence import OPERATING_SHARE
from scaletest.saturation.plan import Phase, SaturationPlan
from scaletest.saturation.report.charts import charts
from scaletest.saturation.report.steps import (
    COLUMNS,
    FEW_QUANTILES,
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
        # a saturated step is what was looked for, one that the tester spoilt is an error
        cases=lambda: [
            Case(
                f"{assessed.step.number} {assessed.step.phase} {level_text(assessed.step)}",
                VerdictKind.INVALID if assessed.tester else VerdictKind.PASS,
                assessed.tester,
                assessed.step.seconds,
            )
            for assessed in run.result.steps
        ],
        data=lambda: {
            **run.result.to_dict(),
            "pods": [times.to_dict() for times in _pods(run)],
            "folder": run.folder,
            **({"extra": run.extra} if run.extra else {}),
        },
    )


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
        facts.append(
            ("requests/s is the saturation point", format_significant(result.point.value, 4))
        )
    if result.parallel:
        facts.append(("in flight reach it", str(result.parallel)))
    if result.operating:
        facts.append(("requests/s to operate at", format_significant(result.operating.step.level)))
        facts.append(("mean latency there", format_seconds(result.operating.latency.mean)))
    after_probe = sum(assessed.step.phase != Phase.WARM for assessed in result.steps)
    facts.append(("steps", str(after_probe)))
    facts.append(("requests", str(sum(assessed.step.requests for assessed in result.steps))))
    if result.elapsed_s:  # not known while it is measured
        facts.append(("duration", format_duration(result.elapsed_s)))
    return Head(
        title=f"saturate {plan.target}",
        verdict=result.verdict,
        folder=run.folder,
        name=run.name,
        conditions=(", ".join(filter(None, asked)),),
        elapsed_s=result.elapsed_s,
        facts=facts,
        warnings=run_warnings(result.verdict, result.interrupted, result.warnings),
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
            run_warnings(result.verdict, result.interrupted, result.warnings),
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
    return contents.make_page(
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


def sentences(result: SaturationResult) -> list[str]:
    """Say the saturation point, the operating point, where the service's time goes and where the
    knee lies, as far as these are known.
    """
    lines = [point_sentence(result)]
    measured = result.operating
    if measured is not None:
        latency = measured.latency
        known = [name for name in FEW_QUANTILES if getattr(latency, name)]
        times = ", ".join(f"{name} {format_percentile(latency, name)}" for name in known)
        state = f"; {measured.saturated}" if measured.saturated else ""
        lines.append(
            f"operate at {short_number(measured.step.level, 4)} requests/s,"
            f" {format_percent(OPERATING_SHARE, 0)}"
            f" of it: mean latency {format_seconds(latency.mean)},"
            f" {times or 'too few for percentiles'}{state}"
        )
    lines.append(service_time_sentence(result))
    if result.knee:
        lines.append(f"knee (Kneedle): {result.knee} {result.plan.unit}")
    return list(filter(None, lines))


def point_sentence(result: SaturationResult) -> str:
    """Say the saturation point; "" when there is none."""
    estimate = result.point
    if estimate is None:
        return ""
    if not math.isfinite(estimate.high):
        return f"{format_significant(estimate.value)}/s were served, and no limit was reached"
    point = (
        f"saturation point {with_interval(estimate.value, estimate.low, estimate.high)} requests/s"
    )
    return f"{point}, reached with {result.parallel} in flight" if result.parallel else point


def service_time_sentence(result: SaturationResult) -> str:
    """Say where the service's time goes at the lowest level that is too much, else at the highest.

    "" when that is not known.
    """
    known: list[tuple[AssessedStep, MachineUse]] = []
    for assessed in result.steps:
        around = assessed.step.around
        fit = not assessed.tester and assessed.step.phase != Phase.WARM
        if fit and around and around.activities:
            known.insert(0, (assessed, around))
    if not known:
        return ""
    # among repeated steps of one level the last
    known = sorted(known, key=lambda pair: pair[0].step.level)
    over = [pair for pair in known if pair[0].saturated]
    limiting, around = over[0] if over else max(known, key=lambda pair: pair[0].step.level)
    return (
        f"at {level_text(limiting.step)} the service's time:"
        f" {states_sentence(around.activities)}; of"
        f" {around.cores:.0f} cores it used {around.service:.2f}, the tester {around.tester:.2f},"
        f" other programs {around.others:.2f}"
    )
