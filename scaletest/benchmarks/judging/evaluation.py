"""Judge a run of benchmarks: summaries by permutation, thresholds, verdict.

Thresholds are judged by the mean over repetitions at each permutation. A threshold is met when the
whole 95 % interval of the mean meets it, missed when none of it does, else undecided. A single
repetition has no interval: its value decides, and the reason says so. Of several permutations the
worst counts.
"""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, Self

from scaletest.benchmarks.documents import Benchmark, BenchmarkResult
from scaletest.benchmarks.kinds import Headline
from scaletest.benchmarks.plan import KIND, BenchmarkPlan, values_as_text
from scaletest.model import Verdict, declared, texts, wire, writing
from scaletest.model.threshold import Threshold
from scaletest.model.verdict import while_running
from scaletest.render.numbers import plural
from scaletest.render.text import clean_text
from scaletest.stats.estimate import exact_estimate
from scaletest.stats.repetitions import Summary, group_by_permutation, summarise_repetitions
from scaletest.stats.thresholds import Measured, ThresholdResult, ground_of, judge_threshold
from scaletest.stats.verdict_order import Ground, Rank, verdict_of_grounds

Pairs = Sequence[tuple[Benchmark, BenchmarkResult]]


@dataclass(frozen=True, slots=True)
class MeasuredPermutation(writing.Written):
    """One permutation, with the summaries of its repetitions."""

    number: Annotated[int, declared.INNER]
    name: Annotated[str, declared.INNER, "its values as text"]
    values: Mapping[str, Any]
    succeeded: Annotated[int, "its benchmarks with a result"]
    failed: Annotated[int, "its benchmarks without a result"]
    summaries: Annotated[Mapping[str, Summary], declared.named_in_documents("headlines")]


@dataclass(frozen=True, slots=True)
class BenchmarkRun:
    """A run with its numbers by permutation and its verdict."""

    plan: BenchmarkPlan
    results: Mapping[str, BenchmarkResult]  # by name, also of warm-ups
    rows: tuple[MeasuredPermutation, ...]
    headlines: tuple[Headline, ...]  # those that were measured, in the order of their kinds
    verdict: Verdict
    notes: tuple[str, ...] = ()
    thresholds: tuple[ThresholdResult, ...] = ()
    # of a stored run
    name: str = ""
    folder: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)

    def while_running(self) -> Self:
        """Return a copy without a verdict, since more is still coming."""
        return replace(self, verdict=while_running(self.verdict))

    @property
    def counted(self) -> Pairs:
        """Benchmarks that ended and are no warm-up, in their order."""
        return _pairs_that_count(self.plan, self.results)

    @property
    def failures(self) -> list[BenchmarkResult]:
        """Those without a result."""
        return [result for _, result in self.counted if not result.ok]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
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
                {**benchmark.to_dict(), "status": result.to_dict()}
                for benchmark, result in self.counted
            ],
            "notes": list(self.notes),
            "environment": dict(self.environment),
        }


def evaluate_benchmarks(
    plan: BenchmarkPlan,
    results: Mapping[str, BenchmarkResult],
    run_result: Mapping[str, Any] = {},
    **stored: Any,
) -> BenchmarkRun:
    """Judge what has ended so far.

    results: by name. run_result: what the run wrote at its end, if it came to that. stored: name,
    folder and environment.
    """
    pairs = _pairs_that_count(plan, results)
    # each permutation with the summaries of its repetitions
    numbers = group_by_permutation(
        [(benchmark.permutation, result.headlines) for benchmark, result in pairs if result.ok]
    )
    outcomes = Counter((benchmark.permutation, result.ok) for benchmark, result in pairs)
    rows = []
    for number, values in enumerate(plan.permutations):
        rows.append(
            MeasuredPermutation(
                number,
                permutation_text(values) or plan.name,
                values,
                succeeded=outcomes[number, True],
                failed=outcomes[number, False],
                summaries={
                    name: summarise_repetitions(repeats)
                    for name, repeats in numbers.get(number, {}).items()
                },
            )
        )
    thresholds = tuple(_judge_threshold(threshold, rows) for threshold in plan.parse_thresholds())
    notes = chain(wire.texts(run_result.get("noticed")), *(result.notes for _, result in pairs))
    # each measured headline once, whichever kinds have it
    measured = set().union(*(row.summaries for row in rows))
    headlines = {
        headline.name: headline
        for benchmark in plan.benchmarks
        for headline in benchmark.kind.headlines
        if headline.name in measured
    }
    return BenchmarkRun(
        plan,
        results,
        tuple(rows),
        tuple(headlines.values()),
        _verdict(plan, pairs, thresholds, shlex.quote(stored.get("name") or "RUN")),
        tuple(dict.fromkeys(notes)),
        thresholds,
        **stored,
    )


def permutation_text(values: Mapping[str, Any]) -> str:
    """Write a permutation in words."""
    return ", ".join(f"{name} {texts.as_yaml(value)}" for name, value in values.items())


def _pairs_that_count(plan: BenchmarkPlan, results: Mapping[str, BenchmarkResult]) -> Pairs:
    return [
        (benchmark, results[benchmark.name])
        for benchmark in plan.benchmarks
        if not benchmark.warm_up and benchmark.name in results
    ]


def _judge_threshold(
    threshold: Threshold, permutations: Sequence[MeasuredPermutation]
) -> ThresholdResult:
    """Judge a threshold by its number at each permutation, or by why there is none."""
    numbers: list[Measured] = []
    for permutation in permutations:
        if not threshold.about(values_as_text(permutation.values)):
            continue
        if summary := permutation.summaries.get(threshold.measure):
            number = _measured_number(summary)
        elif permutation.succeeded:
            number = Measured(
                None,
                f"the tool did not report {threshold.measure}",
                "leave the threshold out, or name the permutations that have the number",
            )
        else:
            number = Measured(None, "not measured", "run it to the end")
        numbers.append(replace(number, place=clean_text(permutation.name, 60)))
    return judge_threshold(threshold, numbers)


def _measured_number(summary: Summary) -> Measured:
    """Return a mean with its interval; that of a single repetition is the value itself."""
    remedy = "measure more <repetitions>"
    if summary.count > 1:
        return Measured(summary.estimate, remedy=remedy)
    return Measured(
        exact_estimate(summary.mean), remedy=remedy, remark=" (one repetition, no interval)"
    )


def _verdict(
    plan: BenchmarkPlan, pairs: Pairs, thresholds: Sequence[ThresholdResult], name: str
) -> Verdict:
    """Return the verdict. name: that of the run, as a shell takes it."""
    resume = f"scaletest bench run --resume {name}"
    failures = [result for _, result in pairs if not result.ok]
    failed = [result for result in failures if not result.failure.unmeasured]
    unmeasured = [result for result in failures if result.failure.unmeasured]
    grounds = [
        _first_failure(failed, Rank.REFUTED, f"of {plan.count} failed"),
        ground_of(thresholds, Rank.REFUTED),
        _first_failure(unmeasured, Rank.OPEN, f"of {plan.count} could not be measured"),
    ]
    if missing := plan.count - len(pairs):
        grounds.append(Ground(Rank.OPEN, f"{missing} of {plan.count} were not measured", resume))
    grounds.append(ground_of(thresholds, Rank.OPEN))
    judged = "; no threshold was set"
    if thresholds:
        judged = f", {plural(len(thresholds), 'threshold')} met"
    met = f"{plural(plan.count, 'benchmark')} of {', '.join(plan.kinds)} ran to the end{judged}"
    return verdict_of_grounds([*grounds, Ground(Rank.MET, met)])


def _first_failure(results: Sequence[BenchmarkResult], rank: Rank, state: str) -> Ground | None:
    """Return the ground that the first of these benchmarks is, None without any."""
    if not results:
        return None
    first = results[0]
    # with the tool's last line that has words: at the end tools say why they end
    worded = [line for line in first.lines if any(map(str.isalpha, line))]
    reason = ": ".join((first.name, first.message, *worded[-1:]))
    return Ground(rank, f"{plural(len(results), 'benchmark')} {state}: {reason}", first.advice)
