"""The best of several rules."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scaletest.capacity.autoscale.best_rule import BestRule, choose_best
from scaletest.capacity.autoscale.simulation import SimulationResult
from tests.unit.capacity.simulations import figures


def chosen(*rules: SimulationResult) -> BestRule:
    return choose_best(rules, mean_run_s=60.0)


def test_the_best_rule_is_found_criterion_by_criterion() -> None:
    rules = [
        figures("unfinished", ended=1, waits_s=(0.0,), pod_s=1.0),
        figures("kills", killed=1, waits_s=(0.0, 0.0)),
        figures("slow", waits_s=(90.0, 90.0)),
        figures("restless", direction_changes=9, waits_s=(1.0, 1.0)),
        figures("dear", pod_s=99.0),
        figures("best"),
    ]
    choice = chosen(*rules)
    assert choice.result.rule.name == "best"
    # expect one rule less after each criterion
    assert list(choice.left_after.values()) == [
        ["kills", "slow", "restless", "dear", "best"],
        ["slow", "restless", "dear", "best"],
        ["restless", "dear", "best"],
        ["dear", "best"],
        ["best"],
    ]


def test_a_rule_that_never_scales_does_not_win_by_its_calm() -> None:
    calm = figures("calm", waits_s=(500.0, 900.0))
    lively = figures("lively", direction_changes=20)
    assert chosen(calm, lively).result.rule.name == "lively"
    # and a wait that differs by less than a tenth of a run time does not decide
    assert chosen(replace_wait(calm, 10.9), lively).result.rule.name == "calm"
    assert chosen(replace_wait(calm, 11.1), lively).result.rule.name == "lively"


def replace_wait(rule: SimulationResult, wait_s: float) -> SimulationResult:
    return replace(rule, waits_s=(wait_s, wait_s))


@given(
    st.lists(
        st.builds(
            figures,
            st.text("abc", min_size=1, max_size=3),
            ended=st.integers(0, 2),
            killed=st.integers(0, 2),
            direction_changes=st.integers(0, 2),
            pod_s=st.floats(0, 100),
            waits_s=st.sampled_from([(), (1.0,), (2.0, 60.0)]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_some_rule_is_always_the_best(rules: Sequence[SimulationResult]) -> None:
    choice = chosen(*rules)
    assert choice.result in rules
    left = [len(names) for names in choice.left_after.values()]
    assert left == sorted(left, reverse=True) and left[-1] >= 1
    # no rule that ends more requests is left out
    assert choice.result.ended == max(rule.ended for rule in rules)
