"""The verdict keeps its word: coverage and error rates on records with known truth, with the production stopping rule.

A smaller edition of hack/benchmarks/verdicts.py with fixed seeds; docs/performance.md has the figures of 1,000 runs.
"""

from __future__ import annotations

import pytest

from hack.benchmarks.verdicts import study

RUNS = 100


@pytest.mark.parametrize("kind", ["iid", "autocorrelated", "ramp"])
def test_intervals_cover_and_verdicts_are_seldom_wrong(kind: str) -> None:
    # given true ratios on both sides of the 1.8 wanted, when runs stop by the production rule, expect the intervals of
    # the steps to cover the truth, wrong verdicts to be rare, and clear truths to be found
    found = {truth: study(kind, truth, RUNS) for truth in (1.6, 1.75, 1.85, 1.95)}
    for result in found.values():
        mean = sum(result.coverage) / len(result.coverage)
        assert 0.90 <= mean <= 0.99, result
    assert max(one["PASS"] for one in found[1.75].verdicts) < 0.05
    assert max(one["FAIL"] for one in found[1.85].verdicts) < 0.05
    assert found[1.95].verdicts[1]["PASS"] >= 0.90
    assert min(one["FAIL"] for one in found[1.6].verdicts) >= 0.90


def test_half_of_the_doubling_is_found_where_there_is_none() -> None:
    # given no growth at all, expect FAIL nearly always: the study itself can tell right from wrong
    assert study("iid", 1.0, 20).verdicts[0]["FAIL"] >= 0.95
