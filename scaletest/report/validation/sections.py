"""What a page shows of a validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scaletest.analysis.estimate import Distribution
from scaletest.analysis.evaluation import BackgroundStep, Evaluation, FailureGroup
from scaletest.analysis.steps import REPEATS_FOR_INTERVAL, Step
from scaletest.model import Plan
from scaletest.render.contents import Block, Cell, Charts, Section, Share, Table, Text
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
from scaletest.render.text import clean
from scaletest.report import limits, usage, words
from scaletest.report.figures import course, growth, spread, time_spent
from scaletest.report.validation.rows import Group, Row, groups, rows, works
from scaletest.validation.run_type import ValidationRun

LONGEST_TEXT = 4000


def sections(run: ValidationRun) -> list[Section]:
    """All sections that have anything to show."""
    parts = {
        "How far it scales": _scaling(run.result),
        "What limits it": _limits(run.result),
        "Resources": _resources(run.result),
        "How many share a device": _sharing(run.result),
        "Steps": _steps(run.result),
        "Throughput over time": _courses(run),
        "Wait and run times": _times(run),
        "Who did how much": _shares(run),
        "Other queues": _background(run.result),
        "Failures": _failures(run.result),
    }
    return [Section(title, blocks) for title, blocks in parts.items() if blocks]


def _scaling(result: Evaluation) -> list[Block]:
    charts = [growth.throughput(result), growth.efficiency(result)]
    law = words.law(result)
    if not charts[0]:
        return []
    strong = [Text([f"Law: {law}."], "strong")] if law else []
    return [*strong, *(chart for chart in charts if chart)]


def _limits(result: Evaluation) -> list[Block]:
    """What stops the run, where its requests say it."""
    chart = time_spent.time_spent(result)
    causes = result.causes
    if chart is None:
        return []
    shown = limits.rows(causes)
    note = limits.note(causes) if causes else ""
    blocks: list[Block] = []
    if causes and shown:
        optional = {
            "object": [row.object for row in shown],
            "measured": [row.evidence for row in shown],
        }
        known = {title: cells for title, cells in optional.items() if any(cells)}
        cells = [
            [row.label, row.share, row.added, row.course]
            + [texts[number] for texts in known.values()]
            + [row.remedy]
            for number, row in enumerate(shown)
        ]
        titles = ["cause", "share of the added time", "added", "per request", *known, "what to try"]
        blocks.append(Table(titles, cells, texts=(0, 4, 5, 6), layout="causes"))
        meaning = (
            f"From {limits.doubling(causes)}: what requests spend the time on by which they take"
            " longer, with the 95 % interval; per request: before and after."
        )
        if "measured" in known:
            meaning += (
                " Measured: what the resources of the nodes did meanwhile, and whether that"
                " confirms or contradicts the cause."
            )
        blocks.append(Text([meaning], "soft"))
    return [*blocks, Text([note] if note else []), chart]


def _resources(result: Evaluation) -> list[Block]:
    """What the nodes did, where samples are there."""
    titles, cells = usage.table(result)
    if not cells:
        return []
    note = usage.note(result)
    meaning = (
        "Means of the samples while each step was measured. Requests' own: cores that the requests"
        " themselves used. Pressure: the part of the time in which some thread waited for it. Disk,"
        " device: the part of the time in which it was busy." + (f" {note}" if note else "")
    )
    blocks: list[Block] = [Table(titles, cells), Text([meaning], "soft")]
    disturbed = [
        (instant(spell.begin_s), instant(spell.end_s), spell.node, spell.text)
        for spell in result.disturbed
    ]
    if disturbed:
        titles = ["from", "to", "node", "what"]
        blocks.append(Table(titles, disturbed, texts=(0, 1, 2, 3), title="What disturbed the run"))
    return blocks


def _sharing(result: Evaluation) -> list[Block]:
    """How many workers share a device, in a run that compares that."""
    steps = rows(result)
    if not result.plan.compares or not steps:
        return []
    figures = works(steps)
    titles = ["per device", "workers", "requests/s", *(f"{name}/s" for name in figures)]
    titles += ["speed-up", "fair workers", "fair devices", "memory limit", "failed"]
    shares = words.shares(result)
    meaning = (
        "All devices are full in every step. Percent: 95 % intervals that hold together, against"
        " the number that did most; the least number whose interval reaches 100% is called best."
        " Fair: requests of the busiest over those of the idlest. Memory limit: requests that met"
        " the limit of a device's memory."
    )
    return [
        Table(titles, [_shared(row, figures) for row in steps]),
        Text([f"{shares[0].upper()}{shares[1:]}."] if shares else []),
        Text([meaning], "soft"),
    ]


def _steps(result: Evaluation) -> list[Block]:
    steps = rows(result)
    if not steps:
        return []
    figures = works(steps)
    titles = ["workers", "requests/s", *(f"{name}/s" for name in figures), "ratio", "speed-up"]
    titles += ["efficiency", "serial fraction", "failed", "tester", "ended", "measured"]
    meaning = (
        f"Throughput ± {words.interval(result.steps)}{_measurings(result.plan)}; ratio: to the step"
        " before, with the 90 % interval on which the verdict rests; other brackets are 95 %"
        " intervals. Serial fraction: that of Karp and Flatt; one that stays is a part that runs"
        " alone, one that rises is overhead that grows. Tester: the share of a request's time that"
        " scaletest itself cost."
    )
    blocks: list[Block] = [
        Table(titles, [_step(row, figures) for row in steps], texts=(8 + len(figures),)),
        Text([meaning], "soft"),
    ]
    many = len(steps) > 2 and not result.plan.compares
    if many and result.growth.serial.sentence:
        blocks.append(Text([f"In this run {result.growth.serial.sentence}."]))
    if many and result.growth.knees:
        knees = [(words.KNEES[knee.method], words.knee(knee)) for knee in result.growth.knees]
        title = "Where more workers begin to pay less"
        blocks.append(Table(["knee", "workers"], knees, texts=(0, 1), title=title))
        blocks.append(Text(["The three disagree by design: each asks another question."], "soft"))
    return blocks


def _courses(run: ValidationRun) -> list[Block]:
    panels = course.panels(run.result, run.records)
    return [Charts(panels), Text([course.CAPTION], "soft")] if panels else []


def _times(run: ValidationRun) -> list[Block]:
    """How wait and run times spread."""
    result = run.result
    boxes = [spread.boxes(result, run.records, kind) for kind in ("run_s", "wait_s")]
    charts = [chart for chart in boxes if chart]
    if not charts:
        return []
    titles = ["workers", "time", "requests", "mean", "p50", "p90", "p95", "p99", "max"]
    cells = [_percentiles(step, kind) for step in result.steps for kind in ("run", "wait")]
    meaning = (
        "Wait: from the client's submission until a worker took the request. Run: the workload"
        " itself. In brackets the 95 % interval; n/a: the step has fewer requests than the"
        " percentile needs."
    )
    blocks: list[Block] = [
        Charts(charts, "two"),
        Text([spread.BOX_CAPTION], "soft"),
        Table(titles, cells, texts=(1,), layout="tight"),
        Text([meaning], "soft"),
    ]
    histograms = spread.histograms(result, run.records, "run_s")
    if histograms:
        blocks.append(Charts(histograms, title="Run times of each step"))
        blocks.append(Text([spread.HISTOGRAM_CAPTION], "soft"))
    return blocks


def _shares(run: ValidationRun) -> list[Block]:
    """Of the last step that did anything: there it shows best who held it up."""
    steps = [step for step in run.result.steps if step.run.count]
    members = groups(steps[-1], run.records) if steps else []
    if not members:
        return []
    measuring = _first_measuring(run.result.plan)
    one_measuring = f"Workers and pods are those of {measuring}. " if measuring else ""
    meaning = (
        f"With {steps[-1].workers} workers. {one_measuring}Even shares are fair; one that lags"
        " points at a slow device, node or pod."
    )
    blocks: list[Block] = [Text([meaning], "soft")]
    for group in members:
        blocks += _group(group)
    fairness = [
        [str(step.workers), kind, significant(fair.ratio), f"{fair.jain:.3f}"]
        for step in run.result.steps
        for kind, fair in step.fairness.items()
    ]
    if fairness:
        blocks.append(Table(["workers", "by", "most / least", "Jain's index"], fairness, (1,)))
        meaning = (
            "Most / least: requests of the busiest over those of the idlest. Jain's index is 1 when"
            " all did the same."
        )
        blocks.append(Text([meaning], "soft"))
    return blocks


def _group(group: Group) -> list[Block]:
    most = group.members[0].share or 1.0
    cells: list[list[Cell]] = [
        [
            member.name,
            str(member.done),
            Share(member.share / most, f"{100 * member.share:.1f}%"),
            seconds(member.run_s),
            str(member.failed),
        ]
        for member in group.members
    ]
    left_out = [f"{group.left_out} of the middle are left out."] if group.left_out else []
    titles = [group.kind, "requests", "share", "mean run", "failed"]
    return [Table(titles, cells, texts=(0, 2)), Text(left_out, "soft")]


def _background(result: Evaluation) -> list[Block]:
    if not result.background:
        return []
    titles = ["queue", "workers of the step", "measuring", "requests/s", "mean wait", "mean run"]
    meaning = (
        "What the load beside the validation did meanwhile. No verdict rests on it, but a change"
        " tells how much the two share."
    )
    cells = [_background_step(result.plan, step) for step in result.background]
    return [Table([*titles, "failed"], cells, texts=(0, 2)), Text([meaning], "soft")]


def _failures(result: Evaluation) -> list[Block]:
    if not result.failures:
        return []
    titles = ["count", "outcome", "exit code", "error", "node", "device", "first seen", "last seen"]
    cells = [_failure(group) for group in result.failures]
    return [Table(titles, cells, texts=(1, 3, 4, 5), foreign=(3,), layout="errors")]


def facts(run: ValidationRun) -> list[tuple[str, str]]:
    """The few numbers that stand beside the verdict."""
    result = run.result
    good = [row for row in rows(result) if row.scaled]
    pairs = []
    if good:
        best = max(good, key=lambda row: row.step.throughput.per_s)
        pairs.append(
            (
                f"requests/s at most, with {plural(best.step.workers, 'worker')}",
                words.rate(best.step),
            )
        )
        pairs += [(f"{name}/s there", words.work(best.step, name)) for name in best.step.work]
    if result.sharing and result.sharing.best:
        pairs.append(("workers on each device are best", str(result.sharing.best)))
    elif len(good) > 1 and good[-1].scaled:
        last = good[-1].scaled
        pairs.append(
            (
                f"speed-up with {plural(last.workers, 'worker')}",
                f"{significant(last.speedup.value)}x",
            )
        )
        pairs.append(("efficiency there", percent(last.efficiency.value, 0)))
    done = sum(step.run.count for step in result.steps)
    pairs.append(("requests done", str(done)))
    pairs.append(("failed", str(sum(step.failures for step in result.steps))))
    pairs.append(("duration", duration(result.elapsed_s)))
    return pairs


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
    ratio = step.ratio
    return [
        str(step.workers),
        words.rate(step),
        *(words.work(step, name) for name in figures),
        between(ratio.value, ratio.low, ratio.high) if ratio else "",
        significant(scaled.speedup.value) if scaled else NOTHING,
        (_share(scaled.efficiency) if serial else "100%") if scaled else NOTHING,
        _share(serial) if serial else "",
        str(step.failures),
        percent(step.overhead_share),
        words.stops(step),
        seconds(words.measured_s(step)),
    ]


def _share(part: Any) -> str:
    return percent_between(part.value, part.low, part.high)


def _percentiles(step: Step, kind: str) -> list[str]:
    values: Distribution = getattr(step, kind)
    cells = [str(step.workers), kind, str(values.count), seconds(values.mean)]
    for name, _ in words.QUANTILES:
        percentile = words.quantile(values, name)
        if percentile is None:
            cells.append(f"{NOTHING} (needs ≥ {words.needs(name)})")
        elif percentile.low is None or percentile.high is None:
            cells.append(seconds(percentile.value))
        else:
            cells.append(seconds_between(percentile.value, percentile.low, percentile.high))
    return [*cells, seconds(values.max)]


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


def _background_step(plan: Plan, row: BackgroundStep) -> list[str]:
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
    outcome = f"{group.outcome}, {group.reason}" if group.reason else group.outcome
    return [
        str(group.count),
        outcome,
        code,
        clean(group.error or NOTHING, LONGEST_TEXT),
        group.node or NOTHING,
        group.device or NOTHING,
        instant(group.first_s),
        instant(group.last_s),
    ]
