"""A saturation run as a report: what each form shows, and sentences on what a service can take."""

import math
import shlex

from scaletest.model import VerdictKind
from scaletest.model.measurement import MachineUse
from scaletest.model.texts import short_number
from scaletest.render.blocks import Block, Text
from scaletest.render.contents import (
    CLOCK_DIGITS,
    Case,
    Head,
    Report,
    Section,
    Sheet,
    make_page,
)
from scaletest.render.numbers import (
    format_duration,
    format_percent,
    format_seconds,
    format_significant,
    with_interval,
)
from scaletest.report.time_spent import states_sentence
from scaletest.report.words import format_percentile, run_warnings
from scaletest.saturation.judging.evaluation import SaturationResult
from scaletest.saturation.judging.pods import PodTimes, times_of_pods
from scaletest.saturation.judging.step import AssessedStep, level_text
from scaletest.saturation.judging.step_sequence import OPERATING_SHARE
from scaletest.saturation.plan import Phase
from scaletest.saturation.report.charts import draw_charts
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
MOST_ERRORS, MOST_COMMENT_ERRORS = 6, 10
MOST_WARNINGS = 3
MOST_SETTINGS = 20


def saturation_report(run: SaturationRun) -> Report:
    """Return what every format shows of a saturation run."""
    return Report(
        head=_make_head(run),
        summary=lambda: summary(run),
        comment=lambda: comment(run),
        sections=lambda: sections(run),
        sheet=lambda: Sheet.of_columns(COLUMNS, run.result.steps, digits=CLOCK_DIGITS),
        # a case for each step; a saturated one is what was looked for, and no failure
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
            "pods": [times.to_dict() for times in _pod_times(run)],
            "folder": run.folder,
            **({"extra": run.extra} if run.extra else {}),
        },
    )


def _pod_times(run: SaturationRun) -> list[PodTimes]:
    """Return what each pod said it took at the operating point, beside what its client saw."""
    operating = run.result.operating
    return times_of_pods(run.samples.get(operating.step.number, ())) if operating else []


def _make_head(run: SaturationRun) -> Head:
    """Return what stands above a report: verdict, conditions and the few numbers beside it."""
    result, plan = run.result, run.result.plan
    name = shlex.quote(run.name)
    following = f"scaletest report {name} -o report.html"
    wanted = f"{plan.wanted:g}/s wanted" if plan.wanted else ""
    conditions = (f"{plan.load} load", f"at least {plan.success:.0%} succeed", plan.limit, wanted)
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
    steps_after_probe = sum(assessed.step.phase != Phase.WARM for assessed in result.steps)
    facts.append(("steps", str(steps_after_probe)))
    facts.append(("requests", str(sum(assessed.step.requests for assessed in result.steps))))
    if result.elapsed_s:  # not known while it is measured
        facts.append(("duration", format_duration(result.elapsed_s)))
    return Head(
        title=f"saturate {plan.target}",
        verdict=result.verdict,
        folder=run.folder,
        name=run.name,
        conditions=(", ".join(filter(None, conditions)),),
        elapsed_s=result.elapsed_s,
        statement=point_sentence(result),
        facts=facts,
        warnings=run_warnings(result.verdict, result.interrupted, result.warnings),
        following=following,
        environment=run.environment,
        plan=plan.to_dict(),
    )


def summary(run: SaturationRun) -> list[Block]:
    """Return the steps, errors by kind, what the service can take, settings, and warnings."""
    result = run.result
    return [
        step_table(result.steps),
        Text(error_lines(result), label="errors", most=MOST_ERRORS, rest="step"),
        Text(pod_lines(result), label="pods", most=MOST_ERRORS, rest="step"),
        Text(sentences(result)),
        Text(_setting_lines(run), most=MOST_SETTINGS),
        Text(
            run_warnings(result.verdict, result.interrupted, result.warnings),
            "warning",
            label="warning",
            most=MOST_WARNINGS,
            rest="warning",
        ),
    ]


def comment(run: SaturationRun) -> list[Block]:
    """Return the steps, what the service can take, and errors by kind."""
    result = run.result
    return [
        step_table(result.steps),
        Text(sentences(result), "list"),
        Text(error_lines(result), "list", "Errors", most=MOST_COMMENT_ERRORS, rest="step"),
        Text(pod_lines(result), "list", "Pods", most=MOST_COMMENT_ERRORS, rest="step"),
    ]


def sections(run: SaturationRun) -> list[Section]:
    """Return all sections that have anything to show."""
    result = run.result
    return make_page(
        {
            "Capacity": [
                Text(sentences(result), "list"),
                draw_charts(result, point_sentence(result) or "no saturation point is known"),
            ],
            "Pods under load": [Text(pod_lines(result), "list")],
        },
        folded={
            "Settings and target": [Text(_setting_lines(run), "code")],
            "Steps": step_details(result),
        },
    )


def _setting_lines(run: SaturationRun) -> list[str]:
    """Return the settings on record, and what each pod said."""
    return [str(line) for line in (*run.extra.get("lines", []), *_pod_times(run))]


def sentences(result: SaturationResult) -> list[str]:
    """Say as far as is known: saturation point, operating point, the service's time."""
    lines = [point_sentence(result)]
    operating = result.operating
    if operating is not None:
        latency = operating.latency
        percentiles = [
            f"{name} {format_percentile(latency, name)}"
            for name in FEW_QUANTILES
            if getattr(latency, name)
        ]
        state = f"; {operating.saturated}" if operating.saturated else ""
        lines.append(
            f"operate at {short_number(operating.step.level, 4)} requests/s,"
            f" {format_percent(OPERATING_SHARE, 0)}"
            f" of it: mean latency {format_seconds(latency.mean)},"
            f" {', '.join(percentiles) or 'too few for percentiles'}{state}"
        )
    lines.append(service_time_sentence(result))
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
    # backwards, since of repeated steps of one level the last counts
    for assessed in reversed(result.steps):
        around = assessed.step.around
        # the operating point is no limit, and a rate also where levels are requests in flight
        is_fit = not assessed.tester and assessed.step.phase not in (Phase.WARM, Phase.OPERATE)
        if is_fit and around and around.activities:
            known.append((assessed, around))
    if not known:
        return ""

    def level(pair: tuple[AssessedStep, MachineUse]) -> float:
        return pair[0].step.level

    saturated = [pair for pair in known if pair[0].saturated]
    assessed, around = min(saturated, key=level) if saturated else max(known, key=level)
    return (
        f"at {level_text(assessed.step)} the service's time:"
        f" {states_sentence(around.activities)}; of"
        f" {around.cores:.0f} cores it used {around.service:.2f}, the load generator"
        f" {around.tester:.2f}, other programs {around.others:.2f}"
    )
