"""What is said about a saturation run, and the rows of its tables: the same in every form."""

from __future__ import annotations

import math

from scaletest.analysis.percentiles import Distribution
from scaletest.analysis.saturation.evaluation import SaturationResult
from scaletest.analysis.saturation.pod_times import PodTimes, from_headers
from scaletest.analysis.saturation.step import Assessed, level_text
from scaletest.archive.queries import Answer, answers
from scaletest.model.digits import short
from scaletest.model.saturation import Phase
from scaletest.render.numbers import NOTHING, between, percent, seconds, significant
from scaletest.report.activity import sentence
from scaletest.report.saturation.run import SaturationRun
from scaletest.report.words import KNEES, knee

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
    found = result.point
    if found is None:
        return ""
    if not math.isfinite(found.high):
        return f"{significant(found.value)}/s were served, and no limit was reached"
    where = f"saturation point {between(found.value, found.low, found.high)} requests/s"
    return f"{where}, reached with {result.parallel} in flight" if result.parallel else where


def operating(result: SaturationResult) -> str:
    """The operating point in one sentence; "" when it was not measured."""
    found = result.operating
    if found is None:
        return ""
    times = ", ".join(
        f"{name} {seconds(value.value)}"
        for name in QUANTILES
        if (value := getattr(found.latency, name)) is not None
    )
    state = f"; {found.saturated}" if found.saturated else ""
    return (
        f"operate at {short(found.step.level, 4)} requests/s, {percent(result.plan.share, 0)} of"
        f" it: mean latency {seconds(found.latency.mean)},"
        f" {times or 'too few for percentiles'}{state}"
    )


def ceiling(result: SaturationResult) -> str:
    """Where the service's time goes at the lowest level that is too much, else at the highest; ""
    when not known.
    """
    fit = [one for one in result.steps if not one.tester and one.step.phase != Phase.WARM]
    known = [one for one in fit if one.step.around and one.step.around.activities]
    if not known:
        return ""
    over = [one for one in known if one.saturated]
    # among repeated steps of one level the last
    found = min(reversed(over), key=_level) if over else max(reversed(known), key=_level)
    around = found.step.around
    assert around is not None
    return (
        f"at {level_text(found.step)} the service's time: {sentence(around.activities)}; of"
        f" {around.cores:.0f} cores it used {around.service:.2f}, the tester {around.tester:.2f},"
        f" other programs {around.others:.2f}"
    )


def _level(found: Assessed) -> float:
    return found.step.level


def told(result: SaturationResult) -> list[str]:
    """The sentences that stand under the table."""
    lines = [line for line in (point(result), operating(result), ceiling(result)) if line]
    known = [f"{one.method} {knee(one)}" for one in result.knees if one.workers is not None]
    if known:
        lines.append(f"knee, {result.plan.unit}: {', '.join(known)}")
    return lines


def knee_rows(result: SaturationResult) -> list[tuple[str, str]]:
    """Each definition of a knee, and where it lies."""
    unit = result.plan.unit
    return [
        (KNEES[one.method].replace("workers", unit), f"{knee(one)} {unit}")
        for one in result.knees
        if one.workers
    ]


def errors(found: Assessed) -> str:
    """Errors by kind; "" when there are none."""
    return ", ".join(f"{count} x {kind}" for kind, count in found.errors.items())


def quantile(times: Distribution, name: str) -> str:
    """A percentile as text."""
    found = getattr(times, name)
    return seconds(found.value) if found else NOTHING


def state(found: Assessed) -> str:
    """What was decided about a step, in a word."""
    if found.tester:
        return "tester"
    if found.saturated:
        return "saturated"
    return "undecided" if found.undecided else "held"


def rate(found: Assessed) -> str:
    """Successes a second with their interval."""
    one = found.goodput
    return (
        between(one.value, one.low, one.high) if math.isfinite(one.high) else significant(one.value)
    )


def error_lines(result: SaturationResult) -> list[str]:
    """Errors by kind at every step that had any, and what a step was found to be."""
    return [
        f"{one.step.phase} {level_text(one.step)}: {errors(one)}"
        for one in result.steps
        if one.errors
    ]


def queries(run: SaturationRun) -> list[Answer]:
    """The five result queries of the original tool, over all of the run's samples."""
    return answers(run.result.plan.client_name, [one.step for one in run.result.steps], run.samples)


def pods(run: SaturationRun) -> list[PodTimes]:
    """What each pod said it took at the operating point, beside what its client saw."""
    found = run.result.operating
    return from_headers(run.samples.get(found.step.number, ())) if found else []


def counts(result: SaturationResult) -> tuple[int, int]:
    """How many steps after the probe, and requests in all."""
    asked = sum(one.step.requests for one in result.steps)
    return sum(one.step.phase != Phase.WARM for one in result.steps), asked
