"""A saturation run as a report: what a terminal, a comment in CI and a page show, and test cases.

The sheet has one row a step for programs; new columns come at the end. Test cases are its steps.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from scaletest.model import VerdictKind
from scaletest.model.measurement import MachineUse
from scaletest.model.texts import short
from scaletest.render import contents
from scaletest.render.blocks import Block, Table, Text
from scaletest.render.contents import Case, Head, Report, Section
from scaletest.render.numbers import between, duration, percent, plural, seconds, significant
from scaletest.render.sheet import CLOCK_DIGITS, Sheet, Value, at
from scaletest.report.words import percentile, sentence, warnings
from scaletest.saturation.judging.evaluation import SaturationResult
from scaletest.saturation.judging.pods import PodTimes, times_of_pods
from scaletest.saturation.judging.sequence import OPERATING_SHARE
from scaletest.saturation.judging.step import Assessed, failed_pods, level_text
from scaletest.saturation.plan import LoadKind, Phase, SaturationPlan
from scaletest.saturation.report.figures import charts, state
from scaletest.saturation.run_type import SaturationRun
from scaletest.stats.estimate import Distribution

QUANTILES = ("p50", "p90", "p95", "p99")
# A terminal has no room for all.
FEW_QUANTILES = ("p50", "p95", "p99")
MOST_ERRORS, MOST_COMMENT_ERRORS, MOST_WARNINGS, MOST_LINES = 6, 10, 3, 20


def saturation_report(run: SaturationRun) -> Report:
    """What every format shows of a saturation run."""
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
    """The result, and what else was on record."""
    extra = {"extra": run.extra} if run.extra else {}
    return {
        **run.result.to_dict(),
        "pods": [times.to_dict() for times in _pods(run)],
        "folder": run.folder,
        **extra,
    }


def _pods(run: SaturationRun) -> list[PodTimes]:
    """What each pod said it took at the operating point, beside what its client saw."""
    measured = run.result.operating
    return times_of_pods(run.samples.get(measured.step.number, ())) if measured else []


def _head(run: SaturationRun) -> Head:
    result, plan = run.result, run.result.plan
    name = shlex.quote(run.name)
    following = f"scaletest report {name} -o report.html"
    if result.point:
        following = f"scaletest size --run {name}"
    wanted = f"{plan.wanted:g}/s wanted" if plan.wanted else ""
    asked = (f"{plan.load} load", f"at least {plan.success:.0%} succeed", plan.limit, wanted)
    return Head(
        title=f"saturate {plan.target}",
        verdict=result.verdict,
        folder=run.folder,
        name=run.name,
        conditions=(", ".join(filter(None, asked)),),
        elapsed_s=result.elapsed_s,
        facts=_facts(result),
        warnings=warnings(result.verdict, result.interrupted, result.warnings),
        following=following,
        environment=run.environment,
        plan=plan.to_dict(),
        usual=contents.usual_settings(SaturationPlan),
    )


def _facts(result: SaturationResult) -> list[tuple[str, str]]:
    """The few numbers that stand beside the verdict."""
    pairs = []
    if result.point:
        pairs.append(("requests/s is the saturation point", significant(result.point.value, 4)))
    if result.parallel:
        pairs.append(("in flight reach it", str(result.parallel)))
    if result.operating:
        pairs.append(("requests/s to operate at", significant(result.operating.step.level)))
        pairs.append(("mean latency there", seconds(result.operating.latency.mean)))
    after_probe = sum(assessed.step.phase != Phase.WARM for assessed in result.steps)
    requests = sum(assessed.step.requests for assessed in result.steps)
    return [
        *pairs,
        ("steps", str(after_probe)),
        ("requests", str(requests)),
        # not known while it is measured
        *([("duration", duration(result.elapsed_s))] if result.elapsed_s else []),
    ]


def summary(run: SaturationRun) -> list[Block]:
    """The steps, errors by kind, what the service can take, settings, and warnings."""
    result = run.result
    return [
        _step_table(result.steps),
        Text(_error_lines(result), label="errors", most=MOST_ERRORS, rest="step"),
        Text(_pod_lines(result), label="pods", most=MOST_ERRORS, rest="step"),
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
    errors = _error_lines(result)
    return [
        _step_table(result.steps),
        Text(sentences(result), "list"),
        Text(errors, "list", "Errors", most=MOST_COMMENT_ERRORS, rest="step"),
        Text(_pod_lines(result), "list", "Pods", most=MOST_COMMENT_ERRORS, rest="step"),
    ]


def sections(run: SaturationRun) -> list[Section]:
    """All sections that have anything to show."""
    result = run.result
    lines = sentences(result)
    return contents.page(
        {
            "What it can take": [
                Text(lines, "list"),
                charts(result, _point(result) or "no saturation point is known"),
            ],
            "Settings and target": [Text(_settings(run), "code")],
            "Steps": _steps(result),
            "Pods under load": [Text(_pod_lines(result), "list")],
        }
    )


def _settings(run: SaturationRun) -> list[str]:
    """The settings on record, and what each pod said."""
    return [str(line) for line in (*run.extra.get("lines", []), *_pods(run))]


def sentences(result: SaturationResult) -> list[str]:
    """The saturation point, the operating point, where the service's time goes and where the knee
    lies, as far as these are known.
    """
    knee = f"knee (Kneedle): {result.knee} {result.plan.unit}" if result.knee else ""
    return list(filter(None, (_point(result), _operating(result), service_time(result), knee)))


def _point(result: SaturationResult) -> str:
    """The saturation point in one sentence; "" when there is none."""
    estimate = result.point
    if estimate is None:
        return ""
    if not math.isfinite(estimate.high):
        return f"{significant(estimate.value)}/s were served, and no limit was reached"
    point = f"saturation point {between(estimate.value, estimate.low, estimate.high)} requests/s"
    return f"{point}, reached with {result.parallel} in flight" if result.parallel else point


def _operating(result: SaturationResult) -> str:
    """The operating point in one sentence; "" when it was not measured."""
    measured = result.operating
    if measured is None:
        return ""
    latency = measured.latency
    known = [name for name in FEW_QUANTILES if getattr(latency, name)]
    times = ", ".join(f"{name} {percentile(latency, name)}" for name in known)
    state = f"; {measured.saturated}" if measured.saturated else ""
    return (
        f"operate at {short(measured.step.level, 4)} requests/s, {percent(OPERATING_SHARE, 0)} of"
        f" it: mean latency {seconds(latency.mean)},"
        f" {times or 'too few for percentiles'}{state}"
    )


def service_time(result: SaturationResult) -> str:
    """Where the service's time goes at the lowest level that is too much, else at the highest; ""
    when not known.
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


def _rate(assessed: Assessed) -> str:
    """Successes a second with their interval."""
    goodput = assessed.goodput
    if not math.isfinite(goodput.high):
        return significant(goodput.value)
    return between(goodput.value, goodput.low, goodput.high)


def _errors(assessed: Assessed) -> str:
    """Errors by kind; "" when there are none."""
    return ", ".join(f"{count} x {kind}" for kind, count in assessed.errors.items())


def _error_lines(result: SaturationResult) -> list[str]:
    """Errors by kind at every step that had any."""
    return [
        f"{assessed.step.phase} {level_text(assessed.step)}: {_errors(assessed)}"
        for assessed in result.steps
        if assessed.errors
    ]


def _pod_lines(result: SaturationResult) -> list[str]:
    """How pods fared at every step in which anything befell them."""
    lines = []
    for step in (assessed.step for assessed in result.steps):
        events = step.pods.events if step.pods else ()
        if troubles := "; ".join(filter(None, [failed_pods(step), *events])):
            lines.append(f"{step.phase} {level_text(step)}: {troubles}")
    return lines


def _place(assessed: Assessed) -> dict[str, str]:
    """With which cells the row of a step begins."""
    return {"phase": str(assessed.step.phase), "level": level_text(assessed.step)}


def _quantiles(times: Distribution, names: Sequence[str]) -> dict[str, str]:
    return {name: percentile(times, name) for name in names}


def _step_table(steps: Sequence[Assessed]) -> Table:
    """A row for each step, in short."""
    queueing = any(assessed.server.count for assessed in steps)
    rows = []
    for assessed in steps:
        rows.append(
            {
                **_place(assessed),
                "succeeded/s": _rate(assessed),
                **_quantiles(assessed.latency, FEW_QUANTILES),
                "queueing": percent(assessed.queueing, 0) if queueing else "",
                "ok": percent(assessed.success),
                "state": state(assessed),
            }
        )
    return Table.of_rows(rows, spare=("p50", "queueing"))


def _steps(result: SaturationResult) -> list[Block]:
    meaning = (
        "Open load is counted from the intended start of each request. Brackets are 95 % intervals."
        " A step held when enough succeeded and the interval of the backlog's growth contains 0; it"
        " is undecided where the backlog grew by more than 5 % of the rate, which may be chance."
    )
    steps, reasons, times = [], [], []
    for assessed in result.steps:
        steps.append(_step(assessed))
        reasons += _reason(assessed)
        times += _times(assessed)
    count = plural(len(reasons), "step")
    return [
        Table.of_rows(steps, {"phase", "errors", "state"}, note=meaning),
        Table.of_rows(
            reasons,
            {*reasons[0]} if reasons else (),
            folded=f"Why {count} did not hold",
            layout="wrapped",
        ),
        Table.of_rows(times, {"phase", "what"}, folded="Latency at each step"),
    ]


def _reason(assessed: Assessed) -> list[dict[str, str]]:
    """Why a step did not hold, as a row; none where it did."""
    reason = assessed.tester or assessed.saturated or assessed.undecided
    row = {**_place(assessed), "state": state(assessed), "reason": reason}
    return [row] if reason else []


def _step(assessed: Assessed) -> dict[str, str]:
    step, growth = assessed.step, assessed.growth
    backlog = ""
    if growth:
        backlog = f"{short(growth.value)} [{short(growth.low)}, {short(growth.high)}]"
    return {
        **_place(assessed),
        "offered/s": significant(assessed.offered) if step.load == LoadKind.OPEN else "",
        "succeeded/s": _rate(assessed),
        "backlog/s": backlog,
        "ok": percent(assessed.success),
        "errors": _errors(assessed),
        "tester late p99": seconds(assessed.lag_s),
        "CPU": percent(step.cpu, 0),
        "state": state(assessed),
    }


def _times(assessed: Assessed) -> list[dict[str, str]]:
    kinds = {"since sent": assessed.service, "in the service": assessed.server}
    if assessed.step.load == LoadKind.OPEN or assessed.step.phase == Phase.WARM:
        kinds = {"latency": assessed.latency, **kinds}
    return [
        {
            **_place(assessed),
            "what": kind,
            "requests": str(times.count),
            "mean": seconds(times.mean),
            **_quantiles(times, QUANTILES),
            "longest": seconds(times.max),
        }
        for kind, times in kinds.items()
        if times.count
    ]


COLUMNS: dict[str, Callable[[Assessed], Value]] = {
    "number": at("step.number"),
    "phase": at("step.phase"),
    "load": at("step.load"),
    "level": at("step.level"),
    "seconds": at("step.seconds"),
    "requests": at("step.requests"),
    "offered_per_s": at("offered"),
    "goodput_per_s": at("goodput.value"),
    "goodput_low_per_s": at("goodput.low"),
    "goodput_high_per_s": at("goodput.high"),
    "backlog_growth_per_s": at("growth.value"),
    "backlog_growth_low_per_s": at("growth.low"),
    "backlog_growth_high_per_s": at("growth.high"),
    "success": at("success"),
    "latency_mean_s": at("latency.mean"),
    **{f"latency_{name}_s": at(f"latency.{name}.value") for name in QUANTILES},
    "latency_max_s": at("latency.max"),
    "server_mean_s": at("server.mean"),
    "queueing_share": at("queueing"),
    "errors": _errors,
    "pods": lambda assessed: failed_pods(assessed.step),
    "lag_p99_s": at("lag_s"),
    "cpu_cores": at("step.cpu"),
    "saturated": at("saturated"),
    "tester_bottleneck": at("tester"),
    "undecided": at("undecided"),
}
