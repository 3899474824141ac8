"""A run of benchmarks: what was measured for each permutation, over its repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scaletest.analysis.repetitions import Summary, gathered, summarise
from scaletest.analysis.thresholds import ThresholdResult, verdict_of
from scaletest.archive.benchmarks import BenchmarkFolder, StoredBenchmarks
from scaletest.kinds.benchmark import Benchmark, BenchmarkResult
from scaletest.kinds.fields import as_yaml
from scaletest.kinds.kind import Headline
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.model import Verdict, VerdictKind, wire
from scaletest.render.numbers import plural
from scaletest.report.benchmark_thresholds import Measured, judged

Pair = tuple[Benchmark, BenchmarkResult]


@dataclass(frozen=True, slots=True)
class PermutationRow:
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
    rows: tuple[PermutationRow, ...]
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


def _rows(plan: BenchmarkPlan, pairs: Sequence[Pair]) -> list[PermutationRow]:
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
        rows.append(
            PermutationRow(
                number, words(values) or plan.name, values, good, len(mine) - good, found
            )
        )
    return rows


def _headlines(plan: BenchmarkPlan, rows: Sequence[PermutationRow]) -> tuple[Headline, ...]:
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
