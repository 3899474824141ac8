"""The search for the cheapest rule."""

from dataclasses import replace

from scaletest.capacity.autoscale.rule import RULES, to_values
from scaletest.capacity.autoscale.rule_search import candidate_rules, rank_rules
from scaletest.capacity.autoscale.simulation import SimulationResult
from tests.unit.capacity.simulations import syncs


def test_recommend_prefers_what_keeps_the_target_then_what_costs_least() -> None:
    drawn = {
        "cheap but late": SimulationResult("", 2, 2, 1, 0, 0, 9.0, 10.0, 1, (50.0, 60.0)),
        "kills": SimulationResult("", 2, 2, 1, 0, 3, 9.0, 5.0, 1, (1.0, 2.0)),
        "good": SimulationResult("", 2, 2, 1, 0, 0, 9.0, 20.0, 1, (1.0, 2.0)),
        "dear": SimulationResult("", 2, 2, 1, 0, 0, 9.0, 30.0, 1, (0.0, 0.0)),
        "unfinished": SimulationResult("", 2, 1, 1, 0, 0, None, 1.0, 1, (0.0,)),
    }
    rules = [replace(RULES["demand"], name=name) for name in drawn]
    order = rank_rules(rules, lambda rule: drawn[rule.name], 30.0)
    assert (order[0].rule.name, order[0].met) == ("good", True)
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
