"""What is said about a saturation run, and the rows of its tables: the same in every form."""

from __future__ import annotations

import math

from scaletest.analysis.estimate import Distribution
from scaletest.analysis.saturation.evaluation import SaturationResult
from scaletest.analysis.saturation.pods import PodTimes, from_headers
from scaletest.analysis.saturation.step import Assessed, level_text
from scaletest.archive.sql import Answer, answers
from scaletest.model.saturation import Phase
from scaletest.model.texts import short
from scaletest.render.numbers import NOTHING, between, percent, seconds, significant
from scaletest.report.activity import sentence
from scaletest.report.words import KNEES, knee
from scaletest.saturation.run_type import SaturationRun

QUANTILES = ("p50", "p95", "p99")


def heading(result: SaturationResult) -> str:
    """What was run."""
    return f"saturate {result.plan.target}"


def wanted(result: SaturationResult) -> str:
    """What was asked of the run."""
    plan = result.plan
    parts = [f"{plan.load} load", f"at least {plan.success:.0%} succeed"]
    if plan.limit:
        parts.append(plan.limit)
    if plan.wanted:
        parts.append(f"{plan.wanted:g}/s wanted")
    return ", ".join(parts)


def point(result: SaturationResult) -> str:
    """The saturation point in one sentence; "" when there is none."""
    estimate = result.point
    if estimate is None:
        return ""
    if not math.isfinite(estimate.high):
        return f"{significant(estimate.value)}/s were served, and no limit was reached"
    where = f"saturation point {between(estimate.value, estimate.low, estimate.high)} requests/s"
    return f"{where}, reached with {result.parallel} in flight" if result.parallel else where


def operating(result: SaturationResult) -> str:
    """The operating point in one sentence; "" when it was not measured."""
    measured = result.operating
    if measured is None:
        return ""
    times = ", ".join(
        f"{name} {seconds(value.value)}"
        for name in QUANTILES
        if (value := getattr(measured.latency, name)) is not None
    )
    state = f"; {measured.saturated}" if measured.saturated else ""
    return (
        f"operate at {short(measured.step.level, 4)} requests/s, {percent(result.plan.share, 0)} of"
        f" it: mean latency {seconds(measured.latency.mean)},"
        f" {times or 'too few for percentiles'}{state}"
    )


def ceiling(result: SaturationResult) -> str:
    """Where the service's time goes at the lowest level that is too much, else at the highest; ""
    when not known.
    """
    fit = [
        assessed
        for assessed in result.steps
        if not assessed.tester and assessed.step.phase != Phase.WARM
    ]
    known = [
        assessed for assessed in fit if assessed.step.around and assessed.step.around.activities
    ]
    if not known:
        return ""
    over = [assessed for assessed in known if assessed.saturated]
    # among repeated steps of one level the last
    limiting = min(reversed(over), key=_level) if over else max(reversed(known), key=_level)
    around = limiting.step.around
    assert around is not None
    return (
        f"at {level_text(limiting.step)} the service's time: {sentence(around.activities)}; of"
        f" {around.cores:.0f} cores it used {around.service:.2f}, the tester {around.tester:.2f},"
        f" other programs {around.others:.2f}"
    )


def _level(assessed: Assessed) -> float:
    return assessed.step.level


def sentences(result: SaturationResult) -> list[str]:
    """The sentences that stand under the table."""
    lines = [line for line in (point(result), operating(result), ceiling(result)) if line]
    known = [
        f"{definition.method} {knee(definition)}"
        for definition in result.knees
        if definition.workers is not None
    ]
    if known:
        lines.append(f"knee, {result.plan.unit}: {', '.join(known)}")
    return lines


def knee_rows(result: SaturationResult) -> list[tuple[str, str]]:
    """Each definition of a knee, and where it lies."""
    unit = result.plan.unit
    return [
        (KNEES[definition.method].replace("workers", unit), f"{knee(definition)} {unit}")
        for definition in result.knees
        if definition.workers
    ]


def errors(assessed: Assessed) -> str:
    """Errors by kind; "" when there are none."""
    return ", ".join(f"{count} x {kind}" for kind, count in assessed.errors.items())


def quantile(times: Distribution, name: str) -> str:
    """A percentile as text."""
    percentile = getattr(times, name)
    return seconds(percentile.value) if percentile else NOTHING


def state(assessed: Assessed) -> str:
    """What was decided about a step, in a word."""
    if assessed.tester:
        return "tester"
    if assessed.saturated:
        return "saturated"
    return "undecided" if assessed.undecided else "held"


def rate(assessed: Assessed) -> str:
    """Successes a second with their interval."""
    goodput = assessed.goodput
    return (
        between(goodput.value, goodput.low, goodput.high)
        if math.isfinite(goodput.high)
        else significant(goodput.value)
    )


def error_lines(result: SaturationResult) -> list[str]:
    """Errors by kind at every step that had any, and what a step was found to be."""
    return [
        f"{assessed.step.phase} {level_text(assessed.step)}: {errors(assessed)}"
        for assessed in result.steps
        if assessed.errors
    ]


def queries(run: SaturationRun) -> list[Answer]:
    """The five result queries of the original tool, over all of the run's samples."""
    return answers(
        run.result.plan.client_name, [assessed.step for assessed in run.result.steps], run.samples
    )


def pods(run: SaturationRun) -> list[PodTimes]:
    """What each pod said it took at the operating point, beside what its client saw."""
    measured = run.result.operating
    return from_headers(run.samples.get(measured.step.number, ())) if measured else []


def counts(result: SaturationResult) -> tuple[int, int]:
    """How many steps after the probe, and requests in all."""
    asked = sum(assessed.step.requests for assessed in result.steps)
    return sum(assessed.step.phase != Phase.WARM for assessed in result.steps), asked
