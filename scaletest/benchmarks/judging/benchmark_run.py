"""A run of benchmarks, judged by its thresholds, and compared with another run.

A run meets its thresholds by the mean over repetitions at each permutation: PASS when the
whole 95 % interval of the mean meets one, FAIL when none of it does, else INVALID. A single
repetition has no interval: its value decides, and the reason says so. Of several permutations the
worst counts.

Two runs are compared by permutation and headline. What has no better side is not compared.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

from scaletest.benchmarks.benchmark import Benchmark, BenchmarkResult
from scaletest.benchmarks.benchmark_set import KIND, BenchmarkPlan, place_of
from scaletest.benchmarks.kinds.kind import Headline
from scaletest.model import Verdict, wire
from scaletest.model.declared import INNER, called
from scaletest.model.texts import as_yaml
from scaletest.model.threshold import Threshold
from scaletest.model.verdict import while_running
from scaletest.model.writing import Written
from scaletest.render.numbers import plural
from scaletest.render.text import clean
from scaletest.stats.comparison import Contrast, Difference, differences
from scaletest.stats.estimate import exactly
from scaletest.stats.repetitions import Summary, gathered, summarise
from scaletest.stats.thresholds import Measured, ThresholdResult, ground_of, judge
from scaletest.stats.verdict_order import Ground, Rank, decide


@dataclass(frozen=True, slots=True)
class MeasuredPermutation(Written):
    """One permutation."""

    number: Annotated[int, INNER]
    name: Annotated[str, INNER, "its values as text"]
    values: Mapping[str, Any]
    good: Annotated[int, called("succeeded"), "its benchmarks with a result"]
    failed: Annotated[int, "its benchmarks without a result"]
    summaries: Annotated[Mapping[str, Summary], called("headlines")]
    absent: Annotated[Mapping[str, str], INNER, "headlines that it cannot have, with the reason"]


def judge_thresholds(
    thresholds: Sequence[Threshold], permutations: Sequence[MeasuredPermutation]
) -> tuple[ThresholdResult, ...]:
    """One result a threshold."""
    results = []
    for threshold in thresholds:
        relevant = [each for each in permutations if threshold.about(place_of(each.values))]
        results.append(judge(threshold, [_measured(threshold.measure, each) for each in relevant]))
    return tuple(results)


def _measured(name: str, permutation: MeasuredPermutation) -> Measured:
    """A number of a permutation; a single repetition has no interval, and its value decides."""
    place, summary = clean(permutation.name, 60), permutation.summaries.get(name)
    if summary is None:
        return Measured(None, *_missing(name, permutation), place=place)
    remedy = "measure more <repetitions>"
    if summary.count == 1:
        return Measured(
            exactly(summary.mean),
            remedy=remedy,
            place=place,
            remark=" (one repetition, no interval)",
        )
    return Measured(summary.estimate, remedy=remedy, place=place)


def _missing(name: str, measured: MeasuredPermutation) -> tuple[str, str]:
    """Why there is no such number, and what to do about it."""
    if name in measured.absent:
        remedy = "leave the threshold out, or name the permutations that have the number"
        return measured.absent[name], remedy
    if measured.good:
        remedy = "leave the threshold out, or use another version of the tool"
        return f"the tool did not report {name}", remedy
    return "not measured", "run it to the end"


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

    def while_running(self) -> Self:
        """A copy without a verdict, since more is still coming."""
        return replace(self, verdict=while_running(self.verdict))

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
        return {
            "schema_version": 1,
            "kind": KIND,
            "run": self.name,
            "folder": self.folder,
            "name": self.plan.name,
            "verdict": self.verdict.to_dict(),
            "units": {headline.name: headline.unit for headline in self.headlines},
            "permutations": [row.to_dict() for row in self.rows],
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
        _verdict(plan, pairs, thresholds, result, shlex.quote(stored.get("name") or "RUN")),
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
    name: str,
) -> Verdict:
    """The verdict; its remedies name the run as a shell takes it."""
    failed = [ended for _, ended in pairs if not ended.ok and not ended.failure.unmeasured]
    unmeasured = [ended for _, ended in pairs if not ended.ok and ended.failure.unmeasured]
    met = f"{plural(plan.counted, 'benchmark')} of {', '.join(plan.kinds)} ran to the end"
    if thresholds:
        met += f", {plural(len(thresholds), 'threshold')} met"
    else:
        met += "; no threshold was set, so no number is judged"
    return decide(
        [
            _missing_results(pairs, result, name),
            _first(failed, Rank.REFUTED, f"of {plan.counted} failed"),
            ground_of(thresholds, Rank.REFUTED),
            _first(unmeasured, Rank.OPEN, f"of {plan.counted} could not be measured"),
            _incomplete(plan, pairs, name),
            ground_of(thresholds, Rank.OPEN),
            Ground(Rank.MET, met),
        ]
    )


def _missing_results(pairs: Pairs, result: Mapping[str, Any], name: str) -> Ground | None:
    """Not the subject where fewer benchmarks are on record than had ended when the run did."""
    counts = [result.get(name) for name in ("succeeded", "failed")]
    ended = sum(count for count in counts if isinstance(count, int))
    if ended <= len(pairs):
        return None
    return Ground(
        Rank.NOT_THE_SUBJECT,
        f"{ended - len(pairs)} of {ended} records are missing",
        f"measure them again: scaletest bench run --resume {name}",
    )


def _first(results: Sequence[BenchmarkResult], rank: Rank, state: str) -> Ground | None:
    """The ground that the first of these benchmarks is, None without any."""
    if not results:
        return None
    return Ground(
        rank, f"{plural(len(results), 'benchmark')} {state}: {_why(results[0])}", results[0].advice
    )


def _incomplete(plan: BenchmarkPlan, pairs: Pairs, name: str) -> Ground | None:
    """Open where benchmarks were not measured yet."""
    left = plan.counted - len(pairs)
    if not left:
        return None
    return Ground(
        Rank.OPEN,
        f"{left} of {plan.counted} were not measured",
        f"scaletest bench run --resume {name}",
    )


def _why(ended: BenchmarkResult) -> str:
    """The failure of a benchmark with the last of the tool's own words: at the end tools say why
    they end.
    """
    spoken = [line for line in ended.lines if any(map(str.isalpha, line))]
    return ": ".join((ended.name, ended.message, *spoken[-1:]))


def contrast(base: BenchmarkRun, candidate: BenchmarkRun) -> Contrast:
    """In what the specs of benchmarks of one name differ, and which permutations one run alone
    has measured.
    """
    ours, theirs = _specs(base.plan), _specs(candidate.plan)
    differing: list[Difference] = []
    for name in ours.keys() & theirs.keys():
        specs = differences(ours[name], theirs[name], {*ours[name], *theirs[name]}, set())
        differing += [replace(each, field=f"{each.field} of {name}") for each in specs]
    return Contrast(differing, sorted(_measured_names(base) ^ _measured_names(candidate)))


def _specs(plan: BenchmarkPlan) -> dict[str, dict[str, Any]]:
    return {_name(plan, each): each.document()["spec"] for each in plan.benchmarks}


def _name(plan: BenchmarkPlan, benchmark: Benchmark) -> str:
    """Its kind and its permutation."""
    values = plan.permutations[benchmark.permutation]
    return f"{benchmark.kind.name} {permutation_text(values)}".strip()


def _measured_names(run: BenchmarkRun) -> set[str]:
    return {_name(run.plan, benchmark) for benchmark, ended in run.counted if ended.ok}
