"""Comparison of two lifecycles."""

import random
from dataclasses import replace

from scaletest.lifecycle.judging.result import LifecycleResult
from scaletest.lifecycle.records import Stamp
from scaletest.lifecycle.run_type import RUN_TYPE, LifecycleRun
from scaletest.model.verdict import VerdictKind
from scaletest.stats.comparison import Comparison, Side, compare_runs
from tests.unit.lifecycles import of, workload


def compared(base: LifecycleResult, candidate: LifecycleResult) -> Comparison:
    """The comparison of two lifecycles at a tolerance of 10 %."""
    runs = [LifecycleRun("", "", result) for result in (base, candidate)]
    sides = [Side(str(number), "", RUN_TYPE.measures(run)) for number, run in enumerate(runs)]
    return compare_runs("lifecycle", sides[0], [(sides[1], RUN_TYPE.contrast(*runs))], 0.1)


def test_a_slower_step_is_found_and_noise_is_not() -> None:
    chance = random.Random(3)

    def run(slower: float) -> LifecycleResult:
        rows = [workload(f"j-{index:03}", step=1.0 + 0.2 * chance.random()) for index in range(100)]
        for row in rows:
            each = row.pods[f"{row.name}-0"]
            each.stamps["ready"] = Stamp(
                watch_s=(each.stamps["scheduled"].watch_s or 0) + 2 + slower
            )
        return of(*rows)

    base = run(0.0)
    assert compared(base, run(0.0)).verdict.kind is VerdictKind.PASS
    comparison = compared(base, run(1.0))
    assert comparison.verdict.kind is VerdictKind.FAIL
    (candidate,) = comparison.candidates
    slower = {row.base.name for row in candidate.changes if row.change == "regression"}
    assert {name.removesuffix(".p50") for name in slower if name.endswith(".p50")} == {
        "ready",
        "pod_ready",
        "total_ready",
    }
    assert [row.base.name for row in candidate.deciding if row.base.name in slower] == [
        "total_ready.p50"
    ]


def test_a_lifecycle_that_lost_workloads_does_not_pass() -> None:
    whole = of(*(workload(f"j-{index:03}") for index in range(20)))
    books = replace(whole.books, measured=12, lost=8)
    comparison = compared(whole, replace(whole, books=books))
    assert comparison.verdict.kind is VerdictKind.INVALID
    assert comparison.verdict.reason == "not measured in both runs: 20 workloads"
