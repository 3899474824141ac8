"""The best of several rules, why the others do worse, and the search for the cheapest."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.capacity.autoscale.choice import (
    BestRule,
    PlayedRule,
    candidate_rules,
    choose_best,
    find_best,
    find_weaknesses,
)
from scaletest.capacity.autoscale.rule import RULES, to_values
from scaletest.capacity.autoscale.simulation import SimulationResult
from tests.unit.capacity.simulations import figures, played, syncs


def chosen(*rules: PlayedRule) -> BestRule:
    return choose_best(rules, mean_run_s=60.0)


def test_the_best_rule_is_found_criterion_by_criterion() -> None:
    rules = [
        figures("unfinished", ended=1, waits_s=(0.0,), pod_s=1.0),
        figures("kills", killed=1, waits_s=(0.0, 0.0)),
        figures("slow", waits_s=(90.0, 90.0)),
        figures("restless", flips=9, waits_s=(1.0, 1.0)),
        figures("dear", pod_s=99.0),
        figures("best"),
    ]
    choice = chosen(*rules)
    assert choice.played.rule.name == "best"
    # expect one rule less after each criterion
    assert [step.left for step in choice.steps] == [
        ("kills", "slow", "restless", "dear", "best"),
        ("slow", "restless", "dear", "best"),
        ("restless", "dear", "best"),
        ("dear", "best"),
        ("best",),
    ]


def test_a_rule_that_never_scales_does_not_win_by_its_calm() -> None:
    calm = figures("calm", waits_s=(500.0, 900.0))
    lively = figures("lively", flips=20)
    assert chosen(calm, lively).played.rule.name == "lively"
    # and a wait that differs by less than a tenth of a run time does not decide
    assert chosen(replace_wait(calm, 10.9), lively).played.rule.name == "calm"
    assert chosen(replace_wait(calm, 11.1), lively).played.rule.name == "lively"


def replace_wait(rule: PlayedRule, wait_s: float) -> PlayedRule:
    return replace(rule, result=replace(rule.result, waits_s=(wait_s, wait_s)))


@given(
    st.lists(
        st.builds(
            figures,
            st.text("abc", min_size=1, max_size=3),
            ended=st.integers(0, 2),
            killed=st.integers(0, 2),
            flips=st.integers(0, 2),
            pod_s=st.floats(0, 100),
            waits_s=st.sampled_from([(), (1.0,), (2.0, 60.0)]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_some_rule_is_always_the_best(rules: Sequence[PlayedRule]) -> None:
    choice = chosen(*rules)
    assert choice.played in rules
    left = [len(step.left) for step in choice.steps]
    assert left == sorted(left, reverse=True) and left[-1] >= 1
    # no rule that ends more requests is left out
    assert choice.played.result.ended == max(rule.result.ended for rule in rules)


def test_a_window_that_is_shorter_than_a_request_is_named_with_a_longer_one() -> None:
    simulated = played("desired", "desired:window=300", "demand-gentle")
    short, long, gentle = simulated.played
    reason, *_ = find_weaknesses(short, simulated.arrivals)
    assert "over 60 s and a request runs for 244 s" in reason.reason
    assert "desired:window=300" in reason.remedy and "autoscaling.exporter.window" in reason.remedy
    # expect nothing of rules that neither kill nor turn, and nothing about a window elsewhere
    assert (long.result.flips, long.result.killed) == (0, 0)
    assert list(find_weaknesses(long, simulated.arrivals)) == []
    assert not any("window" in each.reason for each in find_weaknesses(gentle, simulated.arrivals))
    assert simulated.choice.played is long


def test_a_request_longer_than_any_window_gets_another_rule() -> None:
    simulated = played("desired", run_s=3000.0)
    assert "demand-gentle" in next(find_weaknesses(simulated.played[0], simulated.arrivals)).remedy


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("waiting-fast", "counts only what waits"),
        ("original-wait", "a run time late"),
        ("original-count", "type Value"),
        ("demand-fast", "whether busy or idle"),
    ],
)
def test_every_way_to_do_worse_has_its_reason(rule: str, reason: str) -> None:
    simulated = played(rule)
    reasons = [each.reason for each in find_weaknesses(simulated.played[0], simulated.arrivals)]
    assert any(reason in each for each in reasons)


def test_recommend_prefers_what_keeps_the_target_then_what_costs_least() -> None:
    drawn = {
        "cheap but late": SimulationResult("", 2, 2, 1, 0, 0, 9.0, 10.0, 1, (50.0, 60.0)),
        "kills": SimulationResult("", 2, 2, 1, 0, 3, 9.0, 5.0, 1, (1.0, 2.0)),
        "good": SimulationResult("", 2, 2, 1, 0, 0, 9.0, 20.0, 1, (1.0, 2.0)),
        "dear": SimulationResult("", 2, 2, 1, 0, 0, 9.0, 30.0, 1, (0.0, 0.0)),
        "unfinished": SimulationResult("", 2, 1, 1, 0, 0, None, 1.0, 1, (0.0,)),
    }
    rules = [replace(RULES["demand"], name=name) for name in drawn]
    best, order = find_best(rules, lambda rule: drawn[rule.name], 30.0)
    assert (best.rule.name, best.met) == ("good", True)
    assert [choice.rule.name for choice in order] == [
        "good",
        "dear",
        "kills",
        "cheap but late",
        "unfinished",
    ]
    assert len({rule.name for rule in candidate_rules(10, 1, 30.0)}) == len(
        list(candidate_rules(10, 1, 30.0))
    )


def test_no_recommended_rule_follows_a_load_that_swings_at_every_look() -> None:
    for rule in candidate_rules(10, 1, 30.0):
        assert syncs(rule.behavior, [8, 2] * 5, 8) == [8] * 10, rule.name


def test_a_recommended_minimum_of_none_is_scaled_by_keda() -> None:
    # minReplicas: 0 in an HPA is refused by Kubernetes before 1.37
    assert {rule.kind for rule in candidate_rules(10, 0, 30.0)} == {"keda"}
    assert {rule.kind for rule in candidate_rules(10, 1, 30.0)} == {"hpa"}
    for rule in candidate_rules(10, 0, 30.0):
        values = to_values(rule)["autoscaling"]
        # KEDA finds desired workers nowhere but in the exporter
        wanted = "exporter" if rule.metric == "desired_workers" else None
        assert values.get("source") == wanted
