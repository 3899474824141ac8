"""A run of benchmarks, judged: what was measured for each permutation, over its repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scaletest.analysis.benchmark_thresholds import MeasuredPermutation, judge_thresholds
from scaletest.analysis.repetitions import gathered, summarise
from scaletest.analysis.thresholds import ThresholdResult, ground_of
from scaletest.analysis.verdict_order import Ground, Rank, decide
from scaletest.kinds.benchmark import Benchmark, BenchmarkResult
from scaletest.kinds.fields import as_yaml
from scaletest.kinds.kind import Headline
from scaletest.kinds.plan import KIND, BenchmarkPlan
from scaletest.model import Verdict, wire
from scaletest.render.numbers import plural

Pairs = Sequence[tuple[Benchmark, BenchmarkResult]]


@dataclass(frozen=True, slots=True)
class BenchmarkRun:
    """A run, summarised.

    ended: results by name, also of warm-ups. headlines: those that were measured, in the order of
    their kinds. name, folder, environment: of a stored run.
    """

    plan: BenchmarkPlan
    ended: Mapping[str, BenchmarkResult]
    rows: tuple[MeasuredPermutation, ...]
    headlines: tuple[Headline, ...]
    verdict: Verdict
    notes: tuple[str, ...] = ()
    thresholds: tuple[ThresholdResult, ...] = ()
    name: str = ""
    folder: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counted(self) -> Pairs:
        """Benchmarks that ended and are no warm-up, in their order."""
        return _counted(self.plan, self.ended)

    @property
    def failures(self) -> list[BenchmarkResult]:
        """Those without a result."""
        return [ended for _, ended in self.counted if not ended.ok]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        permutations = []
        for row in self.rows:
            headlines = {name: summary.to_dict() for name, summary in row.summaries.items()}
            counts = {"succeeded": row.good, "failed": row.failed}
            permutations.append({"values": dict(row.values), **counts, "headlines": headlines})
        return {
            "schema_version": 1,
            "kind": KIND,
            "run": self.name,
            "folder": self.folder,
            "name": self.plan.name,
            "verdict": self.verdict.to_dict(),
            "units": {headline.name: headline.unit for headline in self.headlines},
            "permutations": permutations,
            "thresholds": [threshold.to_dict() for threshold in self.thresholds],
            "benchmarks": [
                {**benchmark.document(), "status": ended.to_dict()}
                for benchmark, ended in self.counted
            ],
            "notes": list(self.notes),
            "environment": dict(self.environment),
        }


def evaluate_benchmarks(
    plan: BenchmarkPlan,
    ended: Mapping[str, BenchmarkResult],
    result: Mapping[str, Any] | None = None,
    **stored: Any,
) -> BenchmarkRun:
    """Judge what has ended so far.

    ended: by name. result: what the run wrote at its end, if it came to that. stored: name, folder
    and environment.
    """
    result = result or {}
    pairs = _counted(plan, ended)
    rows = _rows(plan, pairs)
    thresholds = judge_thresholds(plan.judged, rows)
    notes = wire.texts(result.get("noticed"))
    for _, each in pairs:
        notes += each.notes
    return BenchmarkRun(
        plan,
        ended,
        tuple(rows),
        _headlines(plan, rows),
        _verdict(plan, pairs, thresholds, result),
        tuple(dict.fromkeys(notes)),
        thresholds,
        **stored,
    )


def _counted(plan: BenchmarkPlan, ended: Mapping[str, BenchmarkResult]) -> Pairs:
    return [
        (benchmark, ended[benchmark.name])
        for benchmark in plan.benchmarks
        if not benchmark.warm_up and benchmark.name in ended
    ]


def _rows(plan: BenchmarkPlan, pairs: Pairs) -> list[MeasuredPermutation]:
    """Each permutation with the summaries of its repetitions."""
    values_of = gathered([(each.permutation, ended.headlines) for each, ended in pairs if ended.ok])
    # an imported plan may have a permutation without a benchmark
    absent = {each.permutation: each.kind.absent(each.spec) for each in plan.benchmarks}
    rows = []
    for number, values in enumerate(plan.permutations):
        succeeded = [ended.ok for each, ended in pairs if each.permutation == number]
        good = sum(succeeded)
        summaries = {name: summarise(found) for name, found in values_of.get(number, {}).items()}
        rows.append(
            MeasuredPermutation(
                number,
                permutation_text(values) or plan.name,
                values,
                good,
                len(succeeded) - good,
                summaries,
                absent.get(number, {}),
            )
        )
    return rows


def _headlines(plan: BenchmarkPlan, rows: Sequence[MeasuredPermutation]) -> tuple[Headline, ...]:
    """Those that were measured, each name once."""
    measured = set().union(*(row.summaries for row in rows))
    by_name: dict[str, Headline] = {}
    for benchmark in plan.benchmarks:
        by_name |= {each.name: each for each in benchmark.kind.headlines if each.name in measured}
    return tuple(by_name.values())


def permutation_text(values: Mapping[str, Any]) -> str:
    """A permutation in words."""
    return ", ".join(f"{name} {as_yaml(value)}" for name, value in values.items())


def _verdict(
    plan: BenchmarkPlan,
    pairs: Pairs,
    thresholds: Sequence[ThresholdResult],
    result: Mapping[str, Any],
) -> Verdict:
    failed = [ended for _, ended in pairs if not ended.ok and not ended.failure.unmeasured]
    unmeasured = [ended for _, ended in pairs if not ended.ok and ended.failure.unmeasured]
    met = f"{plural(plan.counted, 'benchmark')} measured"
    if thresholds:
        met += f", {plural(len(thresholds), 'threshold')} met"
    return decide(
        [
            _missing(pairs, result),
            _first(failed, Rank.REFUTED, f"of {plan.counted} failed"),
            ground_of(thresholds, Rank.REFUTED),
            _first(unmeasured, Rank.OPEN, f"of {plan.counted} could not be measured"),
            _incomplete(plan, pairs),
            ground_of(thresholds, Rank.OPEN),
            Ground(Rank.MET, met),
        ]
    )


def _missing(pairs: Pairs, result: Mapping[str, Any]) -> Ground | None:
    """Not the subject where fewer benchmarks are on record than had ended when the run did."""
    counts = [result.get(name) for name in ("succeeded", "failed")]
    ended = sum(count for count in counts if isinstance(count, int))
    if ended <= len(pairs):
        return None
    reason = f"{ended - len(pairs)} of {ended} records are missing"
    return Ground(Rank.NOT_THE_SUBJECT, reason, "measure them again: scaletest bench run --resume")


def _first(results: Sequence[BenchmarkResult], rank: Rank, state: str) -> Ground | None:
    """The ground that the first of these benchmarks is, None without any."""
    if not results:
        return None
    reason = f"{plural(len(results), 'benchmark')} {state}: {_why(results[0])}"
    return Ground(rank, reason, results[0].advice)


def _incomplete(plan: BenchmarkPlan, pairs: Pairs) -> Ground | None:
    """Open where benchmarks were not measured yet."""
    left = plan.counted - len(pairs)
    if not left:
        return None
    reason = f"{left} of {plan.counted} were not measured"
    return Ground(Rank.OPEN, reason, "scaletest bench run --resume RUN")


def _why(ended: BenchmarkResult) -> str:
    """The failure of a benchmark with the last of the tool's own words: at the end tools say why
    they end.
    """
    spoken = [line for line in ended.lines if any(map(str.isalpha, line))]
    return ": ".join((ended.name, ended.message, *spoken[-1:]))
