"""Comparison of two lifecycles."""

from __future__ import annotations

import random

from scaletest.analysis.lifecycle.compare import compare
from scaletest.analysis.lifecycle.result import LifecycleResult
from scaletest.model.lifecycle import Stamp
from scaletest.model.verdict import VerdictKind
from tests.unit.lifecycles import of, workload


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
    assert compare(base, run(0.0), 0.1).verdict.kind is VerdictKind.PASS
    comparison = compare(base, run(1.0), 0.1)
    assert comparison.verdict.kind is VerdictKind.FAIL
    assert {step.name for step in comparison.steps if step.change == "slower"} == {
        "ready",
        "pod_ready",
        "total_ready",
    }
