"""A run of benchmarks: what was measured for each permutation, over its repetitions, in the forms
of every report.

Everything printed also stands in the JSON; CSV has one row a benchmark, the other forms one a
permutation.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from scaletest.analysis.repetitions import Summary, gathered, summarise
from scaletest.analysis.thresholds import ThresholdResult, verdict_of
from scaletest.archive.benchmarks import BenchmarkFolder, StoredBenchmarks
from scaletest.kinds.benchmark import Benchmark, BenchmarkResult
from scaletest.kinds.fields import as_yaml
from scaletest.kinds.kind import Headline
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.model import Activity, Verdict, VerdictKind, wire
from scaletest.render.numbers import plural
from scaletest.render.text import cell, clean, code
from scaletest.render.units import quantity, quantity_measured
from scaletest.report.activity import sentence
from scaletest.report.benchmark_thresholds import Measured, judged
from scaletest.report.benchmark_thresholds import lines as threshold_lines

# So many parts of benchmarks are told where their time went, where a page would have a table.
MOST_TIMES = 6
Pair = tuple[Benchmark, BenchmarkResult]
SIGNS = {
    VerdictKind.PASS: "✅",
    VerdictKind.FAIL: "❌",
    VerdictKind.INVALID: "⚠️",
    VerdictKind.RUNNING: "⏳",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One permutation. summaries: by headline. failed: benchmarks without a result."""

    number: int
    what: str
    values: Mapping[str, Any]
    good: int
    failed: int
    summaries: Mapping[str, Summary]


@dataclass(frozen=True, slots=True)
class BenchmarkRun:
    """A stored run, summarised. headlines: those that were measured, in the order of their
    kinds.
    """

    name: str
    folder: str
    stored: StoredBenchmarks
    rows: tuple[Row, ...]
    headlines: tuple[Headline, ...]
    verdict: Verdict
    notes: tuple[str, ...] = field(default=())
    thresholds: tuple[ThresholdResult, ...] = ()

    @property
    def counted(self) -> list[tuple[Benchmark, BenchmarkResult]]:
        """Benchmarks that ended and are no warm-up, in their order."""
        ended = self.stored.ended
        return [
            (one, ended[one.name])
            for one in self.stored.plan.benchmarks
            if not one.warm_up and one.name in ended
        ]

    @property
    def failures(self) -> list[BenchmarkResult]:
        """Those without a result."""
        return [ended for _, ended in self.counted if not ended.ok]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "schema_version": 1,
            "kind": "benchmark",
            "run": self.name,
            "folder": self.folder,
            "name": self.stored.plan.name,
            "verdict": self.verdict.to_dict(),
            "units": {one.name: one.unit for one in self.headlines},
            "permutations": [
                {
                    "values": dict(row.values),
                    "succeeded": row.good,
                    "failed": row.failed,
                    "headlines": {name: found.to_dict() for name, found in row.summaries.items()},
                }
                for row in self.rows
            ],
            "thresholds": [one.to_dict() for one in self.thresholds],
            "benchmarks": [
                {**one.document(), "status": ended.to_dict()} for one, ended in self.counted
            ],
            "notes": list(self.notes),
            "environment": self.stored.environment,
        }


def read(folder: BenchmarkFolder) -> BenchmarkRun:
    """The run in a folder; UsageError when it cannot be read."""
    return of(folder.name, str(folder.path), folder.benchmarks())


def of(name: str, folder: str, stored: StoredBenchmarks) -> BenchmarkRun:
    """The summary of what is stored."""
    plan = stored.plan
    pairs = [
        (one, stored.ended[one.name])
        for one in plan.benchmarks
        if not one.warm_up and one.name in stored.ended
    ]
    rows = _rows(plan, pairs)
    # an imported plan may have a permutation without a benchmark
    absent = {one.permutation: one.kind.absent(one.spec) for one in plan.benchmarks}
    measured = [
        Measured(row.what, row.values, row.summaries, row.good, absent.get(row.number, {}))
        for row in rows
    ]
    thresholds = judged(plan.judged, measured)
    verdict = _verdict(stored, pairs, thresholds)
    return BenchmarkRun(
        name,
        folder,
        stored,
        tuple(rows),
        _headlines(plan, rows),
        verdict,
        _notes(stored, pairs),
        thresholds,
    )


def _rows(plan: BenchmarkPlan, pairs: Sequence[Pair]) -> list[Row]:
    """Each permutation with the summaries of its repetitions."""
    by = gathered([(one.permutation, ended.headlines) for one, ended in pairs if ended.ok])
    groups: dict[int, list[BenchmarkResult]] = {}
    for one, ended in pairs:
        groups.setdefault(one.permutation, []).append(ended)
    rows = []
    for number, values in enumerate(plan.permutations):
        mine = groups.get(number, [])
        found = {key: summarise(numbers) for key, numbers in by.get(number, {}).items()}
        good = sum(one.ok for one in mine)
        rows.append(Row(number, words(values) or plan.name, values, good, len(mine) - good, found))
    return rows


def _headlines(plan: BenchmarkPlan, rows: Sequence[Row]) -> tuple[Headline, ...]:
    """Those that were measured, each name once."""
    seen = {key for row in rows for key in row.summaries}
    kinds = {one.kind.name: one.kind for one in plan.benchmarks}
    return tuple(
        {
            one.name: one for kind in kinds.values() for one in kind.headlines if one.name in seen
        }.values()
    )


def _notes(stored: StoredBenchmarks, pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Warnings from before the run, and what the benchmarks say, each once."""
    noticed = wire.texts(stored.result.get("noticed"))
    return tuple(dict.fromkeys([*noticed, *(note for _, ended in pairs for note in ended.notes)]))


def words(values: Mapping[str, Any]) -> str:
    """A permutation as text."""
    return ", ".join(f"{key} {as_yaml(value)}" for key, value in values.items())


def _verdict(
    stored: StoredBenchmarks,
    pairs: Sequence[tuple[Benchmark, BenchmarkResult]],
    thresholds: Sequence[ThresholdResult],
) -> Verdict:
    count = stored.plan.counted
    failed = [ended for _, ended in pairs if not ended.ok and not ended.failure.unmeasured]
    if failed:
        reason = f"{plural(len(failed), 'benchmark')} of {count} failed: {_why(failed[0])}"
        return Verdict(VerdictKind.FAIL, reason, failed[0].advice)
    refuted = verdict_of(thresholds, VerdictKind.FAIL)
    if refuted:
        return refuted
    unmeasured = [ended for _, ended in pairs if not ended.ok]
    if unmeasured:
        reason = (
            f"{plural(len(unmeasured), 'benchmark')} of {count} could not be measured:"
            f" {_why(unmeasured[0])}"
        )
        return Verdict(VerdictKind.INVALID, reason, unmeasured[0].advice)
    if len(pairs) < count:
        return Verdict(
            VerdictKind.INVALID,
            f"{count - len(pairs)} of {count} were not measured",
            "scaletest bench run --resume RUN",
        )
    undecided = verdict_of(thresholds, VerdictKind.INVALID)
    met = f", {plural(len(thresholds), 'threshold')} met" if thresholds else ""
    return undecided or Verdict(VerdictKind.PASS, f"{plural(count, 'benchmark')} measured{met}")


def _why(ended: BenchmarkResult) -> str:
    """The failure of a benchmark with the last of the tool's own words: at the end tools say why
    they end.
    """
    spoken = [line for line in ended.lines if any(map(str.isalpha, line))]
    return ": ".join((ended.name, ended.message, *spoken[-1:]))


def table(run: BenchmarkRun) -> tuple[list[str], list[list[str]]]:
    """Titles and cells, one row a permutation."""
    titles = [
        "permutation",
        "n",
        *(one.name for one in run.headlines),
        *(["failed"] if run.failures else []),
    ]
    lines = []
    for row in run.rows:
        numbers = [
            (
                quantity_measured(found.mean, found.half_width, one.unit)
                if (found := row.summaries.get(one.name))
                else "n/a"
            )
            for one in run.headlines
        ]
        lines.append(
            [
                clean(row.what, 60),
                str(row.good),
                *numbers,
                *([str(row.failed)] if run.failures else []),
            ]
        )
    return titles, lines


def failure_lines(ended: BenchmarkResult) -> list[str]:
    """Why a benchmark failed, with the lines that say so, and what to do where the failure itself
    knows that.
    """
    first = f"{ended.name}: {ended.failure or 'failed'}: {clean(ended.message, 300)}"
    advice = [f"  what to do: {clean(ended.remedy, 300)}"] if ended.remedy else []
    return [first.replace("\n", " "), *(f"  | {clean(line, 200)}" for line in ended.lines), *advice]


def text(run: BenchmarkRun, width: int = 0) -> str:
    """For a terminal of `width` columns; 0 for no limit."""
    found = _aligned(*table(run), width)
    if any(row.good > 1 for row in run.rows):
        found.append("± 95 % over repetitions")
    found += [f"network: {line}" for line in networks(run)]
    found += time_lines(run)
    for ended in run.failures[:5]:
        found += failure_lines(ended)
    found += [f"note: {clean(note)}" for note in run.notes]
    found += threshold_lines(run.thresholds)
    found.append(f"{run.verdict.kind}  {clean(run.verdict.reason, 300)}".replace("\n", " "))
    if run.verdict.remedy:
        found.append(f"  what to do: {clean(run.verdict.remedy, 300)}")
    return "\n".join([*found, f"saved in {run.folder}", ""])


def _aligned(titles: list[str], lines: list[list[str]], width: int) -> list[str]:
    """The table; where it is too wide, its columns in several tables below each other."""
    widths = [max(len(row[index]) for row in (titles, *lines)) for index in range(len(titles))]
    groups, room = [[0]], width - widths[0]
    for index in range(1, len(titles)):
        if width and room < widths[index] + 2 and len(groups[-1]) > 1:
            groups.append([0])
            room = width - widths[0]
        groups[-1].append(index)
        room -= widths[index] + 2
    found = []
    for group in groups:
        for row in (titles, *lines):
            cells = [
                row[0].ljust(widths[0]),
                *(row[index].rjust(widths[index]) for index in group[1:]),
            ]
            found.append("  ".join(cells).rstrip())
    return found


def networks(run: BenchmarkRun) -> list[str]:
    """The networks that were really used."""
    found = [ended.network for _, ended in run.counted if ended.network]
    rows = [
        clean(f"{one.get('interface')}, {one.get('family')}, MTU {one.get('mtu')}") for one in found
    ]
    return list(dict.fromkeys(rows))[:4]


def time_rows(run: BenchmarkRun) -> list[tuple[str, str, str, str]]:
    """Permutation, part, its CPU time over the time that it ran, and where its time went, over all
    repetitions.
    """
    found: dict[tuple[int, str], list[Activity]] = {}
    for one, ended in run.counted:
        for part, row in ended.activities.items():
            found.setdefault((one.permutation, part), []).append(Activity.from_dict(row))
    return [
        (run.rows[number].what, part, f"{_cores(activities):.2g} cores", sentence(activities))
        for (number, part), activities in sorted(found.items())
    ]


def _cores(activities: Sequence[Activity]) -> float:
    whole_s = sum(sum(one.seconds.values()) for one in activities)
    return sum(one.cpu_s for one in activities) / whole_s if whole_s else 0.0


def time_lines(run: BenchmarkRun) -> list[str]:
    """The same as lines, the first ones where there are many."""
    rows = time_rows(run)
    lines = [
        clean(f"time of {part}, {what}: {cores}; {where}")
        for what, part, cores, where in rows[:MOST_TIMES]
    ]
    rest = len(rows) - MOST_TIMES
    return lines + (
        [f"where the time of {rest} more parts went is in the page and the JSON"]
        if rest > 0
        else []
    )


def markdown(run: BenchmarkRun) -> str:
    """For a comment in CI. Foreign text stands in code spans."""
    titles, lines = table(run)
    found = [f"### {SIGNS[run.verdict.kind]} {run.verdict.kind}: {code(run.verdict.reason)}", ""]
    found += [f"| {' | '.join(titles)} |", f"|{'|'.join(['---', *['--:'] * (len(titles) - 1)])}|"]
    found += [f"| {code(row[0])} | {' | '.join(row[1:])} |" for row in lines]
    found += ["", *(f"* {code(line)}" for ended in run.failures for line in failure_lines(ended))]
    found += [f"* {code(line)}" for line in threshold_lines(run.thresholds)]
    found += [f"* {code(line)}" for line in time_lines(run)]
    found += [f"* Note: {code(note)}" for note in run.notes]
    return "\n".join(found).rstrip() + "\n"


def csv_rows(run: BenchmarkRun) -> str:
    """One row a benchmark, base units; new columns come at the end. KEY is permutation.KEY where it
    is taken.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    keys = list(dict.fromkeys(key for row in run.rows for key in row.values))
    fixed = [
        "name",
        "kind",
        "permutation",
        "repetition",
        "phase",
        "failure",
        "started_s",
        "finished_s",
    ]
    net = ["interface", "family", "mtu"]
    numbers = [one.name for one in run.headlines]
    titles = [
        f"permutation.{key}" if key in (*fixed, *net, *numbers) else cell(key) for key in keys
    ]
    writer.writerow([*fixed, *net, *titles, *numbers])
    for one, ended in run.counted:
        values = run.rows[one.permutation].values
        row: list[Any] = [
            one.name,
            one.kind.name,
            one.permutation,
            one.repetition,
            ended.phase,
            ended.failure,
        ]
        row += [
            ended.started_s,
            ended.finished_s,
            *(cell(ended.network.get(name, "")) for name in net),
        ]
        row += [cell(as_yaml(values.get(key, ""))) for key in keys]
        writer.writerow([*row, *(ended.headlines.get(head.name, "") for head in run.headlines)])
    return out.getvalue()


def junit(run: BenchmarkRun) -> str:
    """A test case a benchmark, and one for the run."""
    kinds = [run.verdict.kind, *(one.kind for one in run.thresholds)]
    counts = {
        "tests": str(len(run.counted) + len(kinds)),
        "failures": str(len(run.failures) + kinds.count(VerdictKind.FAIL)),
        "errors": str(kinds.count(VerdictKind.INVALID) + kinds.count(VerdictKind.RUNNING)),
    }
    root = ElementTree.Element("testsuites", {"name": "scaletest", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": run.stored.plan.name, **counts})
    judged_cases = [("verdict", run.verdict.kind, run.verdict.reason)]
    judged_cases += [(one.text, one.kind, one.reason) for one in run.thresholds]
    for name, kind, reason in judged_cases:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": run.stored.plan.name, "name": clean(name)}
        )
        if kind is not VerdictKind.PASS:
            tag = "failure" if kind is VerdictKind.FAIL else "error"
            ElementTree.SubElement(case, tag, {"message": clean(reason, 300).replace("\n", " ")})
    for one, ended in run.counted:
        seconds = f"{max(0.0, ended.finished_s - ended.started_s):.3f}"
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": one.kind.name, "name": one.name, "time": seconds}
        )
        if not ended.ok:
            wrong = ElementTree.SubElement(
                case, "failure", {"message": clean(ended.message, 300), "type": str(ended.failure)}
            )
            wrong.text = "\n".join(failure_lines(ended)[1:])
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def as_json(run: BenchmarkRun) -> str:
    """Everything."""
    return json.dumps(run.to_dict(), indent=2, allow_nan=False) + "\n"


def html(run: BenchmarkRun) -> str:
    """One file without script or address outside itself."""
    from scaletest.report.benchmark_page import page

    return page(run)


FORMATS: Mapping[str, Callable[[BenchmarkRun], str]] = {
    "text": text,
    "html": html,
    "md": markdown,
    "csv": csv_rows,
    "json": as_json,
    "junit": junit,
}

__all__ = ["FORMATS", "BenchmarkRun", "Row", "of", "quantity", "read", "words"]
