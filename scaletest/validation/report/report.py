"""A validation as a report: what a terminal, a comment in CI and a page show, and test cases.

A terminal shows under 25 lines for 8 steps, in 80 columns. Test cases are every doubling.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from scaletest.causes.causes import Cause, Causes
from scaletest.causes.resources import clock_text
from scaletest.model import VerdictKind
from scaletest.render import contents
from scaletest.render.contents import (
    Block,
    Case,
    Cell,
    Charts,
    Head,
    Report,
    Section,
    Share,
    Table,
    Text,
)
from scaletest.render.numbers import (
    NOTHING,
    between,
    duration,
    leading,
    measured,
    percent,
    plural,
    seconds,
    seconds_between,
    significant,
)
from scaletest.render.svg import Chart
from scaletest.render.text import clean, one_line
from scaletest.report import failures
from scaletest.report.words import warnings
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.schedule import way
from scaletest.validation.judging.steps import Step
from scaletest.validation.plan import Plan
from scaletest.validation.report import figures, resources, times, words
from scaletest.validation.report.speedup import speedup_bars
from scaletest.validation.report.steps import members, rows_of, sheet, table, whole_table
from scaletest.validation.run_type import ValidationRun

MOST_WARNINGS, MOST_ERRORS, MOST_CAUSES, MOST_SPREAD = 3, 2, 3, 8
# In a page and in a comment.
MOST_CAUSES_SHOWN, MOST_FAILURES = 6, 10
WIDTH = 80
# Titles as a terminal shortens them.
SHORT = {
    "per device": "K",
    "workers": "N",
    "efficiency": "effic.",
    "memory limit": "memory",
}


def validation_report(run: ValidationRun) -> Report:
    """What every format shows of a validation."""
    return Report(
        head=_head(run),
        summary=lambda: summary(run),
        comment=lambda: comment(run),
        sections=lambda: sections(run),
        sheet=lambda: sheet(run.result),
        cases=lambda: list(cases(run)),
        data=lambda: {**run.result.to_dict(), "folder": run.folder},
        picture=lambda: _picture(run),
    )


def _picture(run: ValidationRun) -> list[Chart]:
    """The scaling chart."""
    figure = figures.throughput(run)
    return [figure.wide] if figure else []


def _head(run: ValidationRun) -> Head:
    result, name = run.result, shlex.quote(run.name)
    failed = any(step.failures for step in result.steps)
    following = f"scaletest report {name} -o report.html"
    if result.interrupted and result.verdict.kind is not VerdictKind.RUNNING:
        following = f"scaletest validate --local --resume {name}"
    return Head(
        title=f"validate {result.plan.workload}",
        verdict=result.verdict,
        folder=run.folder,
        name=run.name,
        conditions=("closed load", words.wanted(result)),
        elapsed_s=result.elapsed_s,
        facts=_facts(result),
        warnings=warnings(result.verdict, result.interrupted, result.warnings),
        thresholds=result.thresholds,
        following=following,
        environment=run.environment,
        plan=result.plan.to_dict(),
        usual=contents.usual_settings(Plan),
        alarming=("failed",) if failed else (),
    )


def _facts(result: Evaluation) -> list[tuple[str, str]]:
    """The few numbers that stand beside the verdict."""
    rows = [row for row in rows_of(result) if row.scaled]
    pairs = []
    if rows:
        best = max((row.step for row in rows), key=lambda step: step.throughput.per_s)
        workers = plural(best.workers, "worker")
        pairs.append((f"requests/s at most, with {workers}", words.rate(best)))
        pairs += [(f"{name}/s there", words.rate(best, name)) for name in best.work]
    last = rows[-1].scaled if len(rows) > 1 else None
    if result.sharing and result.sharing.best:
        pairs.append(("workers on each device are best", str(result.sharing.best)))
    elif last:
        workers = plural(last.workers, "worker")
        pairs.append((f"speed-up with {workers}", f"{significant(last.speedup.value)}x"))
        pairs.append(("efficiency there", percent(last.efficiency.value, 0)))
    done = sum(step.run.count for step in result.steps)
    failed = sum(step.failures for step in result.steps)
    pairs += [("requests done", str(done)), ("failed", str(failed))]
    # until the last step only, and pages show how long the run takes by now
    if result.verdict.kind is not VerdictKind.RUNNING:
        pairs.append(("duration", duration(result.elapsed_s)))
    return pairs


def summary(run: ValidationRun) -> list[Block]:
    """The table, its foot, and what is known of the run besides."""
    result = run.result
    left_out = {"fair workers", "fair devices"}
    if result.plan.compares:
        left_out |= {"efficiency", f"wait {words.common_quantile(result.steps)}"}
    errors = [f"error, {line}" for line in failures.lines(result.failures)]
    return [
        table(result, left_out, SHORT),
        Text([_foot(result)], "soft"),
        Text(speedup_bars(result), "chart", optional=True),
        Text([words.law(result)], label="law"),
        Text([words.shares(result)], label="shares"),
        *_spread(result.steps),
        Text(
            warnings(result.verdict, result.interrupted, result.warnings),
            "warning",
            label="warning",
            most=MOST_WARNINGS,
            rest="warning",
        ),
        Text(errors, most=MOST_ERRORS, rest="failure group"),
        Text([resources.line(result)], label="resources", optional=True),
        Text(_limits_in_short(result), optional=True),
    ]


def _spread(measured: Sequence[Step]) -> list[Text]:
    """On which nodes and devices the last step that did anything ran; of one node nothing."""
    steps = [step for step in measured if step.nodes]
    if not steps:
        return []
    counted = {"nodes": steps[-1].nodes, "devices": steps[-1].devices}
    if len(steps[-1].nodes) < 2:
        del counted["nodes"]
    workers = plural(steps[-1].workers, "worker")
    return [
        Text([leading(counts, MOST_SPREAD)], label=f"{kind}, {workers}")
        for kind, counts in counted.items()
        if counts
    ]


def _sentence(text: str, beginning: str = "") -> str:
    """A whole sentence; "" where there is nothing to say."""
    return f"{beginning}{text}." if text else ""


def _foot(result: Evaluation) -> str:
    """What the numbers of the table mean."""
    steps = result.steps
    if not steps:
        return ""
    few = ""
    if words.common_quantile(steps) != "p95":
        few = f"; p95 needs {words.needs('p95')} requests a step"
    shared = ""
    if result.plan.compares:
        shared = "; K: workers on each device; fair: most over least of workers/devices"
    return f"{words.intervals(steps)}{shared}{few}"


def _limits_in_short(result: Evaluation) -> list[str]:
    """What stops the run, the largest cause first; the verdict names the first anyway."""
    causes = result.causes
    if causes is None or not words.grew(causes):
        return []
    title = f"what limits it, from {words.doubling(causes)}:"
    if causes.headline:
        return [f"{title} {causes.headline}"]
    lines = [title, *map(_cause_line, causes.causes[:MOST_CAUSES])]
    if causes.slow and causes.slow.sentence not in result.verdict.reason:
        lines.append(f"  {causes.slow.sentence}")
    return lines


def _cause_line(cause: Cause) -> str:
    """A cause with its object, and whether the first of its evidence confirms it, in a line as wide
    as the table; how that was before is left out.
    """
    named = clean(", ".join(filter(None, (cause.label, cause.object))), 48)
    evidence = words.evidence(cause, 1).partition(" (")[0]
    added = f"+{seconds(cause.grown_s.value)}"
    parts = ", ".join(filter(None, (named, evidence)))
    line = one_line(f"  {words.share(cause.share, 0):<14} {added:<8} {parts}")
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


def comment(run: ValidationRun) -> list[Block]:
    """The table of steps, what limits the run, what the nodes did, and failures."""
    result = run.result
    foot = words.intervals(result.steps) if result.steps else ""
    title = "Resources of the nodes while each step was measured"
    kinds = [
        f"{plural(group.count, 'request')} {group.outcome}{failures.spread(group)}:"
        f" {group.error or NOTHING}"
        for group in result.failures
    ]
    return [
        table(result, ("fair",)),
        Text([_sentence(foot)]),
        *_limits_of_comment(result.causes),
        resources.table(result, title=title, note=resources.note(result)),
        Text([_sentence(words.law(result))], label="Law"),
        Text([_sentence(words.shares(result))], label="Shares"),
        *_spread(result.steps),
        Text(kinds, "list", most=MOST_FAILURES, rest="failure group"),
    ]


def _limits_of_comment(causes: Causes | None) -> list[Block]:
    """What stops the run, ranked; nothing where nothing grew."""
    if causes is None or not words.grew(causes):
        return []
    title = f"What limits it, from {words.doubling(causes)}"
    note = words.note(causes)
    if not causes.causes:
        return [Text([note and f"{title}: {note}"])]
    return [_causes(causes, on_page=False, title=title, note=note)]


def _causes(causes: Causes, *, on_page: bool, title: str = "", note: str = "") -> Table:
    """A row for each cause, the largest first. A page has room for what was before and after."""
    rows: list[dict[str, Cell]] = []
    for cause in causes.causes[:MOST_CAUSES_SHOWN]:
        course = {"per request": f"{seconds(cause.before_s)} -> {seconds(cause.after_s)}"}
        part, text = cause.share, words.share(cause.share, 0)
        rows.append(
            {
                "cause": cause.label,
                "share of the added time": Share(part.value, text, (part.low, part.high)),
                "added": seconds(cause.grown_s.value),
                **(course if on_page else {}),
                "object": cause.object,
                "measured": words.evidence(cause),
                "what to try": cause.remedy,
            }
        )
    texts = {"cause", "object", "measured", "what to try"}
    return Table.of_rows(rows, texts, {"object"}, layout="causes", title=title, note=note)


def sections(run: ValidationRun) -> list[Section]:
    """All sections that have anything to show."""
    result = run.result
    limits = "What limits it"
    leading = limits if words.grew(result.causes) else ""
    return contents.page(
        {
            "How far it scales": _scaling(run),
            limits: _limits(result),
            "Failures": [failures.table(result.failures)],
            "Resources": _resources(result),
            "How many share a device": _sharing(result),
            "Steps": _steps(result),
            "Throughput over time": [
                Charts(figures.panels(result, run.records), note=figures.PANEL_NOTE)
            ],
            "Wait and run times": _times(run),
            "Who did how much": _shares(run),
            "Other queues": [_background(result)],
        },
        leading,
    )


def _scaling(run: ValidationRun) -> list[Block | None]:
    result, throughput = run.result, figures.throughput(run)
    if throughput is None:
        return []
    return [Text([_sentence(words.law(result), "Law: ")], "strong"), throughput]


def _limits(result: Evaluation) -> list[Block | None]:
    """What stops the run, where its requests say it."""
    chart, causes = figures.time_spent(result), result.causes
    if chart is None or causes is None:
        return []
    meaning = (
        f"From {words.doubling(causes)}: what requests spend the time on by which they take"
        " longer, with the 95 % interval; per request: before and after."
    )
    if any(cause.evidence for cause in causes.causes):
        meaning += (
            " Measured: what the resources of the nodes did meanwhile, and whether that"
            " confirms or contradicts the cause."
        )
    return [
        _causes(causes, on_page=True, note=meaning),
        Text([words.note(causes)]),
        chart,
    ]


def _resources(result: Evaluation) -> list[Block | None]:
    """What the nodes did, where samples are there."""
    note = resources.note(result)
    meaning = (
        "Means of the samples while each step was measured. Requests' own: cores that the requests"
        " themselves used. Pressure: the part of the time in which some thread waited for it. Disk,"
        f" device: the part of the time in which it was busy. {note}".rstrip()
    )
    known = resources.table(result, note=meaning)
    disturbed = [
        {
            "from (UTC)": clock_text(spell.begin_s),
            "to (UTC)": clock_text(spell.end_s),
            "node": spell.node,
            "what": spell.text,
        }
        for spell in result.disturbed
    ]
    if not known.rows:
        return []
    return [
        known,
        Table.of_rows(disturbed, {"from (UTC)", "to (UTC)", "node", "what"}, layout="wrapped"),
    ]


def _sharing(result: Evaluation) -> list[Block | None]:
    """How many workers share a device, in a run that compares that."""
    if not result.plan.compares or not result.steps:
        return []
    quantile = words.common_quantile(result.steps)
    shares = words.shares(result)
    meaning = (
        "All devices are full in every step. Percent: 95 % intervals that hold together, against"
        " the number that did most; the least number whose interval reaches 100% is called best."
        " Fair: requests of the busiest over those of the idlest. Memory limit: requests that met"
        " the limit of a device's memory."
    )
    return [
        table(result, ("fair", "efficiency", f"wait {quantile}", f"run {quantile}")),
        Text([_sentence(shares[:1].upper() + shares[1:])]),
        Text([meaning], "soft"),
    ]


def _steps(result: Evaluation) -> list[Block | None]:
    knee = result.growth.knee
    if knee is None or result.plan.compares:
        return [whole_table(result)]
    text = f"Knee, the point farthest above the chord of the curve (Kneedle): {knee} workers."
    return [whole_table(result), Text([text])]


def _times(run: ValidationRun) -> list[Block | None]:
    """How wait and run times spread."""
    result = run.result
    if not any(step.run.count for step in result.steps):
        return []
    cells = []
    for step in result.steps:
        cells += [_percentiles(step, kind) for kind in ("run", "wait")]
    meaning = (
        "Wait: from the client's submission until a worker took the request. Run: the workload"
        " itself. Run times that grow with the workers mean that they share something; long waits"
        " mean that the workers were not ready to take. In brackets the 95 % interval; n/a: the"
        " step has fewer requests than the percentile needs."
    )
    return [
        Table.of_rows(cells, {"time"}, layout="tight", note=meaning),
        times.histograms(result, run.records),
    ]


def _percentiles(step: Step, kind: str) -> dict[str, str]:
    spread = getattr(step, kind)
    cells = {
        "workers": str(step.workers),
        "time": kind,
        "requests": str(spread.count),
        "mean": seconds(spread.mean),
    }
    for name in words.QUANTILES:
        percentile = getattr(spread, name)
        if percentile is None:
            cells[name] = f"{NOTHING} (needs ≥ {words.needs(name)})"
        elif percentile.low is None or percentile.high is None:
            cells[name] = seconds(percentile.value)
        else:
            cells[name] = seconds_between(percentile.value, percentile.low, percentile.high)
    return {**cells, "max": seconds(spread.max)}


def _shares(run: ValidationRun) -> list[Block | None]:
    """Who did how much in the last step that did anything: there it shows best who held it up."""
    steps = [step for step in run.result.steps if step.run.count]
    tables = members(steps[-1], run.records) if steps else []
    if not tables:
        return []
    meaning = (
        f"With {steps[-1].workers} workers. Workers and pods are those of the way up. Even"
        " shares are fair; one that lags points at a slow device, node or pod."
    )
    by_node = times.histograms_of_nodes(steps[-1], run.records)
    return [Text([meaning], "soft"), *tables, by_node]


def _background(result: Evaluation) -> Table:
    rows = [
        {
            "queue": step.name,
            "workers of the step": str(step.workers),
            "measuring": way(step.repeat),
            "requests/s": measured(step.throughput.per_s, step.throughput.half_width),
            "mean wait": seconds(step.wait.mean),
            "mean run": seconds(step.run.mean),
            "failed": str(step.failures),
        }
        for step in result.background
    ]
    meaning = (
        "What the load beside the validation did meanwhile. No verdict rests on it, but a change"
        " tells how much the two share."
    )
    return Table.of_rows(rows, {"queue", "measuring"}, note=meaning)


def cases(run: ValidationRun) -> Iterator[Case]:
    """The doublings; that of the run's causes tells them."""
    result = run.result
    levels: Sequence[int] = () if result.plan.compares else result.plan.steps
    steps = {step.workers: step for step in result.steps}
    causes = result.causes
    for before, after in pairwise(levels):
        case = _doubling(before, after, steps, result.verdict.kind)
        if causes and (causes.before, causes.after) == (before, after):
            evidence = [
                f"{each.label}, {words.evidence(each)}" for each in causes.causes if each.evidence
            ]
            lines = [causes.sentence, causes.remedy, *evidence]
            case = case._replace(message="\n".join([case.message, *filter(None, lines)]))
        if after in steps:
            spread = [f"{text.label}: {' '.join(text.lines)}" for text in _spread([steps[after]])]
            case = case._replace(output="\n".join(spread))
        yield case


def _doubling(fewer: int, more: int, steps: Mapping[int, Step], run: VerdictKind) -> Case:
    name, before, after = f"{fewer} -> {more} workers", steps.get(fewer), steps.get(more)
    time_s = words.measured_s(after) if after else 0.0
    ratio = after.ratio if after else None
    if not (before and after and ratio):
        if run is VerdictKind.RUNNING:
            return Case(name, run, "it is not measured yet", time_s)
        return Case(name, VerdictKind.INVALID, "it was not measured", time_s)
    message = f"ratio {between(ratio.value, ratio.low, ratio.high)}, wanted {ratio.wanted:.2f}"
    if before.sound and after.sound:
        return Case(name, ratio.kind, message, time_s)
    message = f"{message}; one of the two steps may not be judged"
    return Case(name, VerdictKind.INVALID, message, time_s)
