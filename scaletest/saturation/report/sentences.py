"""What a service can take and what limits it, in sentences."""

import math

from scaletest.model.measurement import MachineUse
from scaletest.model.texts import short
from scaletest.render.numbers import between, percent, seconds, significant
from scaletest.report.words import percentile, sentence
from scaletest.saturation.judging.evaluation import SaturationResult
from scaletest.saturation.judging.sequence import OPERATING_SHARE
from scaletest.saturation.judging.step import Assessed, level_text
from scaletest.saturation.plan import Phase
from scaletest.saturation.report.steps import FEW_QUANTILES


def sentences(result: SaturationResult) -> list[str]:
    """Say the saturation point, the operating point, where the service's time goes and where the
    knee lies, as far as these are known.
    """
    lines = [point_sentence(result)]
    measured = result.operating
    if measured is not None:
        latency = measured.latency
        known = [name for name in FEW_QUANTILES if getattr(latency, name)]
        times = ", ".join(f"{name} {percentile(latency, name)}" for name in known)
        state = f"; {measured.saturated}" if measured.saturated else ""
        lines.append(
            f"operate at {short(measured.step.level, 4)} requests/s, {percent(OPERATING_SHARE, 0)}"
            f" of it: mean latency {seconds(latency.mean)},"
            f" {times or 'too few for percentiles'}{state}"
        )
    lines.append(service_time(result))
    if result.knee:
        lines.append(f"knee (Kneedle): {result.knee} {result.plan.unit}")
    return list(filter(None, lines))


def point_sentence(result: SaturationResult) -> str:
    """Say the saturation point; "" when there is none."""
    estimate = result.point
    if estimate is None:
        return ""
    if not math.isfinite(estimate.high):
        return f"{significant(estimate.value)}/s were served, and no limit was reached"
    point = f"saturation point {between(estimate.value, estimate.low, estimate.high)} requests/s"
    return f"{point}, reached with {result.parallel} in flight" if result.parallel else point


def service_time(result: SaturationResult) -> str:
    """Say where the service's time goes at the lowest level that is too much, else at the highest.

    "" when that is not known.
    """
    known: list[tuple[Assessed, MachineUse]] = []
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
        f"at {level_text(limiting.step)} the service's time: {sentence(around.activities)}; of"
        f" {around.cores:.0f} cores it used {around.service:.2f}, the tester {around.tester:.2f},"
        f" other programs {around.others:.2f}"
    )
