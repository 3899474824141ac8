"""The verdict keeps its word: coverage and error rates on records with known truth, with the
production stopping rule.

A smaller edition of hack/benchmarks/verdicts.py with fixed seeds; docs/results/error-rates.md has
the figures of 1,000 runs.
"""

import pytest

from hack.benchmarks.machine_time import DISTURBANCES
from hack.benchmarks.verdicts import study
from scaletest.validation.plan import Plan

RUNS = 25


@pytest.mark.parametrize("kind", ["iid", "autocorrelated", "ramp"])
def test_intervals_cover_and_verdicts_are_seldom_wrong(kind: str) -> None:
    # given true ratios on both sides of the 1.8 wanted, when runs stop by the production rule,
    # expect the intervals of the steps to cover the truth, wrong verdicts to be rare, and clear
    # truths to be found
    studies = {truth: study(kind, truth, RUNS) for truth in (1.6, 1.75, 1.85, 1.95)}
    for studied in studies.values():
        mean = sum(studied.coverage) / len(studied.coverage)
        # 0.95 but for three times the standard error of so few runs
        assert mean >= 0.86, studied
    # one in 25; the seeds are fixed, so that no run of this test is unlucky
    assert max(shares["PASS"] for shares in studies[1.75].doublings) < 0.05
    assert max(shares["FAIL"] for shares in studies[1.85].doublings) < 0.05
    assert studies[1.95].doublings[1]["PASS"] >= 0.90
    # a run with a doubling that failed measures none again, so that its other one may stay open
    assert studies[1.6].verdicts["FAIL"] >= 0.90


def test_a_service_that_does_not_scale_fails_nearly_always() -> None:
    # given no growth at all, expect FAIL nearly always: the study itself can tell right from wrong
    assert study("iid", 1.0, 20).doublings[0]["FAIL"] >= 0.95


@pytest.mark.parametrize(("kind", "disturbance"), [("slows down", 0), ("rare", 0), ("iid", 3)])
def test_a_machine_that_changes_and_rare_slow_requests_make_few_wrong_verdicts(
    kind: str, disturbance: int
) -> None:
    # given default options, expect hardly any wrong verdict on either side of the 1.8 wanted
    plan = Plan(limit=4, scale=1.8)
    shares = {
        truth: study(kind, truth, 30, plan, DISTURBANCES[disturbance]).verdicts
        for truth in (1.75, 1.85)
    }
    assert shares[1.75]["PASS"] <= 0.07
    assert shares[1.85]["FAIL"] <= 0.07
