"""Load tests: whether a latency limit holds, by the exact binomial test against scipy, and what few
requests can and cannot say.
"""

import random

import pytest

from scaletest.saturation.judging.exceedance import (
    ERROR,
    Exceedance,
    chance_of_at_least,
    chance_of_at_most,
)
from scaletest.saturation.plan import QUANTILES
from tests.unit.oracle import oracle

COUNTS = [1, 2, 5, 20, 58, 59, 298, 299, 1000, 20_000]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", sorted(QUANTILES))
def test_both_tails_are_those_of_the_binomial_distribution(name: str, count: int) -> None:
    binom, share = oracle("scipy.stats").binom, 1.0 - QUANTILES[name]
    expected = round(share * count)
    for over in sorted(
        {0, 1, expected // 2, expected, expected + 1, 2 * expected, count - 1, count}
    ):
        if 0 <= over <= count:
            assert chance_of_at_least(count, over, share) == pytest.approx(
                binom.sf(over - 1, count, share), rel=1e-9, abs=1e-15
            )
            assert chance_of_at_most(count, over, share) == pytest.approx(
                binom.cdf(over, count, share), rel=1e-9, abs=1e-15
            )


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", sorted(QUANTILES))
def test_a_limit_is_refuted_and_shown_where_the_one_sided_bounds_of_clopper_and_pearson_say_so(
    name: str, count: int
) -> None:
    test, share = oracle("scipy.stats").binomtest, 1.0 - QUANTILES[name]
    for over in sorted(
        {0, 1, 2, count // 100, count // 50, count // 20, count // 10, count // 2, count}
    ):
        if over > count:
            continue
        exceedance = Exceedance(name, 0.05, over, count)
        # expect the ends of a two-sided interval of 90 %, which has 5 % beyond each of them
        interval = test(over, count).proportion_ci(1 - 2 * ERROR, method="exact")
        assert exceedance.is_refuted == (interval.low > share)
        assert exceedance.is_shown == (interval.high <= share)


def test_few_requests_can_refute_a_limit_but_not_show_that_it_is_met() -> None:
    assert Exceedance("p99", 0.05, 20, 20).is_refuted
    assert Exceedance("p99", 0.05, 1, 1).is_refuted
    none_over = Exceedance("p99", 0.05, 0, 298)
    assert not none_over.is_refuted and not none_over.is_shown
    assert (none_over + Exceedance("p99", 0.05, 0, 1)).is_shown
    nothing = Exceedance("p99", 0.05, 0, 0)
    assert not nothing.is_refuted and not nothing.is_shown and not nothing.may_be_decided_by(1000)


def test_more_requests_are_worth_while_only_where_they_may_decide() -> None:
    # given 23 requests, none over the limit; 276 more may show it, 69 more cannot
    assert Exceedance("p99", 0.05, 0, 23).may_be_decided_by(276)
    assert not Exceedance("p99", 0.05, 0, 23).may_be_decided_by(69)
    # given 2 of 100, which is too many but may be chance; ten times as many would be no chance
    assert Exceedance("p99", 0.05, 2, 100).may_be_decided_by(900)
    assert not Exceedance("p99", 0.05, 2, 100).may_be_decided_by(1)


@pytest.mark.parametrize(("share", "wrong"), [(0.05, "is_refuted"), (0.0501, "is_shown")])
def test_at_the_limit_itself_a_look_is_wrong_in_one_of_twenty_runs(
    share: float, wrong: str
) -> None:
    # given 2,000 runs of 400 requests of which p95's share takes longer
    chance, mistakes = random.Random(1), 0
    for _ in range(2000):
        over = sum(chance.random() < share for _ in range(400))
        mistakes += getattr(Exceedance("p95", 0.05, over, 400), wrong)
    assert mistakes <= 0.05 * 2000 + 3 * (0.05 * 0.95 * 2000) ** 0.5
