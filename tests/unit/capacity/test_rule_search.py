"""The search for the cheapest rule."""

from scaletest.capacity.autoscale.rule import Rule, to_values
from scaletest.capacity.autoscale.rule_search import candidate_rules, keeps_target, rank_rules
from tests.unit.capacity.simulations import figures, syncs


def candidates(minimum: int = 1) -> list[Rule]:
    return list(candidate_rules(minimum=minimum, maximum=10, grace_s=30.0, wait_s=30.0))


def test_recommend_prefers_what_keeps_the_target_then_what_costs_least() -> None:
    results = {
        result.rule.name: result
        for result in (
            figures("cheap but late", waits_s=(50.0, 60.0)),
            figures("kills", killed=3, pod_s=5.0, waits_s=(1.0, 2.0)),
            figures("good", pod_s=20.0, waits_s=(1.0, 2.0)),
            figures("dear", pod_s=30.0, waits_s=(0.0, 0.0)),
            figures("unfinished", ended=1, pod_s=1.0, waits_s=(0.0,)),
        )
    }
    rules = [result.rule for result in results.values()]
    order = rank_rules(rules, lambda rule: results[rule.name], 30.0)
    assert [result.rule.name for result in order] == [
        "good",
        "dear",
        "kills",
        "cheap but late",
        "unfinished",
    ]
    assert [keeps_target(result, 30.0) for result in order] == [True, True, False, False, False]
    assert len({rule.name for rule in candidates()}) == len(candidates())


def test_no_recommended_rule_follows_a_load_that_swings_at_every_look() -> None:
    for rule in candidates():
        assert syncs(rule.behavior, [8, 2] * 5, 8) == [8] * 10, rule.name


def test_a_recommended_minimum_of_none_is_scaled_by_keda() -> None:
    # minReplicas: 0 in an HPA is refused by Kubernetes before 1.37
    assert {rule.kind for rule in candidates(0)} == {"keda"}
    assert {rule.kind for rule in candidates()} == {"hpa"}
    for rule in candidates(0):
        values = to_values(rule)["autoscaling"]
        # KEDA finds desired workers nowhere but in the exporter
        wanted = "exporter" if rule.metric == "desired_workers" else None
        assert values.get("source") == wanted
