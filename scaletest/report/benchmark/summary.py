"""What a terminal shows of a run of benchmarks, and what a comment in CI shows."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.analysis.benchmark_run import BenchmarkRun
from scaletest.kinds.benchmark import BenchmarkResult
from scaletest.model import Activity
from scaletest.render.contents import Block, Table, Text
from scaletest.render.numbers import NOTHING, plural, quantity_measured
from scaletest.render.text import clean
from scaletest.report.activity import sentence

# So many parts of benchmarks are told where their time went, where a page would have a table.
MOST_TIMES = 6
MOST_FAILURES = 5


def summary(run: BenchmarkRun) -> list[Block]:
    """The table of permutations, how they ran, failures, notes and thresholds."""
    failures = [line for ended in run.failures[:MOST_FAILURES] for line in failure_lines(ended)]
    left_out = len(run.failures) - MOST_FAILURES
    if left_out > 0:
        failures.append(f"{plural(left_out, 'more failed benchmark')} in the report")
    thresholds = [
        f"threshold {clean(threshold.text, 80)}: {threshold.kind}  {threshold.reason}"
        for threshold in run.thresholds
    ]
    return [
        table(run),
        Text(["± 95 % over repetitions"] if repeated(run) else [], "soft"),
        Text(networks(run), label="network"),
        Text(time_lines(run), most=MOST_TIMES, rest="part's time"),
        Text(failures),
        Text(run.notes, label="note"),
        Text(thresholds),
    ]


def comment(run: BenchmarkRun) -> list[Block]:
    """The same for a comment in CI, which shows the thresholds itself."""
    failures = [line.strip() for ended in run.failures for line in failure_lines(ended)]
    return [
        table(run),
        Text(failures, "list"),
        Text(time_lines(run), "list", most=MOST_TIMES, rest="part's time"),
        Text(run.notes, "list", label="Note"),
    ]


def repeated(run: BenchmarkRun) -> bool:
    """Whether any number is a mean over repetitions."""
    return any(row.good > 1 for row in run.rows)


def table(run: BenchmarkRun) -> Table:
    """A row for each permutation."""
    failed = ["failed"] if run.failures else []
    titles = ["permutation", "n", *(headline.name for headline in run.headlines), *failed]
    rows = []
    for row in run.rows:
        cells = [clean(row.name, 60), str(row.good)]
        for headline in run.headlines:
            number = row.summaries.get(headline.name)
            cells.append(
                quantity_measured(number.mean, number.half_width, headline.unit)
                if number
                else NOTHING
            )
        rows.append([*cells, *([str(row.failed)] if failed else [])])
    return Table(titles, rows, texts=(0,), foreign=(0,), layout="names")


def failure_lines(ended: BenchmarkResult) -> list[str]:
    """Why a benchmark failed, with the lines that say so, and what to do where the failure itself
    knows that.
    """
    first = f"{ended.name}: {ended.failure or 'failed'}: {clean(ended.message, 300)}"
    advice = [f"  what to do: {clean(ended.remedy, 300)}"] if ended.remedy else []
    return [first.replace("\n", " "), *(f"  | {clean(line, 200)}" for line in ended.lines), *advice]


def networks(run: BenchmarkRun) -> list[str]:
    """The networks that were really used."""
    used = [ended.network for _, ended in run.counted if ended.network]
    rows = [
        clean(f"{network.get('interface')}, {network.get('family')}, MTU {network.get('mtu')}")
        for network in used
    ]
    return list(dict.fromkeys(rows))[:4]


def time_rows(run: BenchmarkRun) -> list[tuple[str, str, str, str]]:
    """Permutation, part, its CPU time over the time that it ran, and where its time went, over all
    repetitions.
    """
    activities_by_part: dict[tuple[int, str], list[Activity]] = {}
    for benchmark, ended in run.counted:
        for part, activity in ended.activities.items():
            activities_by_part.setdefault((benchmark.permutation, part), []).append(activity)
    return [
        (run.rows[number].name, part, f"{_cores(activities):.2g} cores", sentence(activities))
        for (number, part), activities in sorted(activities_by_part.items())
    ]


def _cores(activities: Sequence[Activity]) -> float:
    whole_s = sum(sum(activity.seconds.values()) for activity in activities)
    return sum(activity.cpu_s for activity in activities) / whole_s if whole_s else 0.0


def time_lines(run: BenchmarkRun) -> list[str]:
    """The same as lines."""
    return [
        clean(f"time of {part}, {name}: {cores}; {where}")
        for name, part, cores, where in time_rows(run)
    ]
