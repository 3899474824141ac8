"""All run types decide their verdict in one order, whatever comes together in a run."""

import itertools
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec import structs

from scaletest.benchmarks.documents.result import BenchmarkPhase, BenchmarkResult
from scaletest.benchmarks.documents.sweep import plan_of
from scaletest.benchmarks.judging.evaluation import evaluate_benchmarks
from scaletest.benchmarks.kinds.failure import Failure
from scaletest.lifecycle.judging import verdict as lifecycle
from scaletest.lifecycle.judging.books import Books
from scaletest.model import Measurement, Outcome, Record, Verdict, VerdictKind
from scaletest.model.attempt import Attempt
from scaletest.saturation.judging.evaluation import evaluate as evaluate_saturation
from scaletest.stats.verdict_order import Ground, Rank, verdict_of_grounds
from scaletest.validation.judging.evaluation import evaluate as evaluate_validation
from scaletest.validation.plan import Plan
from tests.unit.simulated import PLAN, Simulated, stored
from tests.unit.validation.test_judge import slow_tester, step_of

# What may come together in a run, in the order in which it decides, with the verdict.
DEFECTS = {
    "missing": "INVALID",
    "tester": "INVALID",
    "refuted": "FAIL",
    "interrupted": "INVALID",
    "undecided": "INVALID",
}


def validation(defects: set[str]) -> Verdict:
    """Two steps of 60 requests of each worker; those of two workers take twice as long."""
    seconds = 2.0 if "refuted" in defects else 1.0
    rows: dict[tuple[int, int], list[Record]] = {
        (workers, repeat): step_of(workers, run_s, 60)
        for workers, run_s in ((1, 1.0), (2, seconds))
        for repeat in (0, 1)
    }
    if "tester" in defects:
        rows = {key: slow_tester(records, 1.0) for key, records in rows.items()}
    measurements = [Measurement(*key, requests=60 * key[0]) for key in rows]
    if "missing" in defects:
        rows[1, 0] = rows[1, 0][:-1]
    thresholds = ("run.p99<=9s",) if "undecided" in defects else ()
    return evaluate_validation(
        Plan(limit=2, scale=1.8, thresholds=thresholds),
        measurements,
        rows,
        random.Random(1),
        interrupted="Ctrl-C" if "interrupted" in defects else "",
    ).verdict


class LateTester(Simulated):
    """A service whose requests the tester notices seconds after they were due."""

    def open(self, due: list[float]) -> list[Attempt]:
        return [
            structs.replace(sample, noticed_s=sample.due_s + 5.0) for sample in super().open(due)
        ]


def saturation(defects: set[str]) -> Verdict:
    """A search on a service of 800 requests a second."""
    rates = {"maximum": 400.0, "wanted": 300.0}
    if "undecided" in defects:
        rates = {"wanted": 800.0}
    if "refuted" in defects:
        rates = {"wanted": 1200.0}
    plan = replace(PLAN, warm_s=0.0, start=100.0, **rates)
    service = LateTester(8) if "tester" in defects else Simulated(8)
    steps, samples = stored(plan, service, 1)
    interrupted = "Ctrl-C" if "interrupted" in defects else ""
    return evaluate_saturation(plan, steps, samples, interrupted=interrupted).verdict


def lifecycle_run(defects: set[str]) -> Verdict:
    """Twenty workloads; none has a duration."""
    books = Books(20, 0, 20, 20, 0, 0, 0, {}, {})
    texts = [
        text
        for defect, text in (("refuted", "throughput>=50/s"), ("undecided", "ready.p99<30s"))
        if defect in defects
    ]
    thresholds = lifecycle.judge_thresholds([*texts, "failed<=0"], (), books, 1.0)
    interrupted = "Ctrl-C" if "interrupted" in defects else ""
    return lifecycle.decide_verdict(books, thresholds, 0, "finished", interrupted)


def benchmark(defects: set[str]) -> Verdict:
    """Two permutations with two repetitions each; the last one was not measured when the run was
    interrupted, and one has no such number.
    """
    bound = "bandwidth>=5Gbit/s" if "refuted" in defects else "bandwidth>=1Gbit/s"
    undecided = ["retransmits<1"] if "undecided" in defects else []
    spec = {
        "template": {"kind": "IPerf", "spec": {"duration": 1}},
        "permutations": {"product": {"streams": [1, 8]}},
        "repetitions": 2,
        "thresholds": [bound, *undecided],
    }
    plan, _ = plan_of({"kind": "BenchmarkSet", "metadata": {"name": "n"}, "spec": spec}, list)
    ended = {}
    for number, each in enumerate(plan.benchmarks):
        ended[each.name] = BenchmarkResult(
            each.name, BenchmarkPhase.COMPLETED, {"bandwidth": 3e9 + number}
        )
    last = plan.benchmarks[-1].name
    if "interrupted" in defects:
        ended[last] = BenchmarkResult(
            last, BenchmarkPhase.FAILED, failure=Failure.INTERRUPTED, message="interrupted"
        )
    result = {"succeeded": len(ended), "failed": 0}
    return evaluate_benchmarks(plan, ended, result).verdict


# By run type: its judge, what it cannot have, and words of its reasons.
Judge = Callable[[set[str]], Verdict]
TYPES: dict[str, tuple[Judge, set[str], dict[str, str]]] = {
    "validation": (
        validation,
        set(),
        {
            "missing": "are there, but 60 were written",
            "tester": "scaletest itself cost",
            "refuted": "is below the 1.80 wanted",
            "interrupted": "interrupted: Ctrl-C",
            "undecided": "1 of 1 thresholds undecided",
        },
    ),
    "saturation": (
        saturation,
        {"missing"},
        {
            "tester": "late",
            "refuted": "less than 1200/s wanted",
            "interrupted": "interrupted by Ctrl-C",
            "undecided": "800/s wanted: undecided",
        },
    ),
    "lifecycle": (
        lifecycle_run,
        {"missing", "tester"},
        {
            "refuted": "throughput>=50/s",
            "interrupted": "interrupted: Ctrl-C",
            "undecided": "ready.p99<30s",
        },
    ),
    "benchmark": (
        benchmark,
        {"missing", "tester"},
        {
            "refuted": "bandwidth>=5Gbit/s",
            "interrupted": "could not be measured",
            "undecided": "did not report retransmits",
        },
    ),
}


@pytest.mark.parametrize("run_type", TYPES)
def test_every_run_type_decides_in_one_order_whatever_comes_together(run_type: str) -> None:
    judge, impossible, words = TYPES[run_type]
    for present in itertools.product((False, True), repeat=len(DEFECTS)):
        defects = {name for name, is_in in zip(DEFECTS, present, strict=True) if is_in}
        # a rate that a service surely misses is not undecided as well
        both = run_type == "saturation" and {"refuted", "undecided"} <= defects
        if defects & impossible or both:
            continue
        verdict = judge(defects)
        first = next((name for name in DEFECTS if name in defects), "")
        assert verdict.kind == DEFECTS.get(first, "PASS"), (defects, verdict)
        assert words.get(first, "") in verdict.reason, (defects, verdict)
        assert bool(verdict.remedy) == bool(first), (defects, verdict)


def test_within_a_rank_the_first_ground_decides() -> None:
    grounds = [
        Ground(Rank.MET, "met"),
        None,
        Ground(Rank.OPEN, "interrupted", "go on"),
        Ground(Rank.OPEN, "undecided", "measure longer"),
    ]
    assert verdict_of_grounds(grounds) == Verdict(VerdictKind.INVALID, "interrupted", "go on")
    assert verdict_of_grounds(grounds[:1]).reason == "met"


def test_too_many_failed_requests_refute_a_run_although_a_worker_seems_to_have_stopped() -> None:
    # given a worker whose requests fail from the middle on
    records = step_of(2, 1.0, 60)
    failed = [
        replace(row, reply=replace(row.reply, outcome=Outcome.FAILED)) for row in records[90:]
    ]
    plan = Plan(limit=2)
    rows = {(1, 0): step_of(1, 1.0, 60), (2, 0): [*records[:90], *failed]}
    measurements = [Measurement(1), Measurement(2)]
    verdict = evaluate_validation(plan, measurements, rows, random.Random(1)).verdict
    assert (verdict.kind, "30 requests failed" in verdict.reason) == ("FAIL", True), verdict
    # and where they are tolerated its silence decides
    tolerant = replace(plan, tolerate_failures=30)
    verdict = evaluate_validation(tolerant, measurements, rows, random.Random(1)).verdict
    assert (verdict.kind, "finished nothing" in verdict.reason) == ("INVALID", True), verdict


def one_way(thresholds: tuple[str, ...], stop: str = "precise") -> Verdict:
    """A run that was interrupted after its way up, whose second step is not faster."""
    rows = {(1, 0): step_of(1, 1.0, 60), (2, 0): step_of(2, 2.0, 60)}
    measurements = [Measurement(1, requests=60), Measurement(2, requests=120, stop=stop)]
    plan = Plan(limit=2, scale=1.8, thresholds=thresholds)
    return evaluate_validation(
        plan, measurements, rows, random.Random(1), interrupted="SIGTERM"
    ).verdict


@pytest.mark.parametrize("threshold", ["ratio(2)>=1.8", "efficiency(2)>=0.9"])
def test_the_way_up_alone_refutes_no_threshold_that_compares_steps(threshold: str) -> None:
    assert one_way((threshold,)).kind is VerdictKind.INVALID


def test_a_measurement_that_was_cut_short_refutes_no_threshold() -> None:
    assert one_way(("run.p50(2)<=1s",)).kind is VerdictKind.FAIL
    assert one_way(("run.p50(2)<=1s",), stop="ended early").kind is VerdictKind.INVALID
