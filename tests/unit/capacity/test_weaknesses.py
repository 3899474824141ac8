"""Why rules do worse than the best."""

import pytest

from scaletest.capacity.autoscale.best_rule import find_weaknesses
from tests.unit.capacity.simulations import compared


def test_a_window_that_is_shorter_than_a_request_is_named_with_a_longer_one() -> None:
    simulated = compared("desired", "desired:window=300", "demand-gentle")
    short, long, gentle = simulated.results
    reason, *_ = find_weaknesses(short, simulated.requests)
    assert "over 60 s and a request runs for 244 s" in reason
    assert "desired:window=300" in reason and "autoscaling.exporter.window" in reason
    # expect nothing of rules that neither kill nor turn, and nothing about a window elsewhere
    assert (long.direction_changes, long.killed) == (0, 0)
    assert list(find_weaknesses(long, simulated.requests)) == []
    assert not any("window" in reason for reason in find_weaknesses(gentle, simulated.requests))
    assert simulated.choice.result is long


def test_a_request_longer_than_any_window_gets_another_rule() -> None:
    simulated = compared("desired", run_s=3000.0)
    assert "demand-gentle" in next(find_weaknesses(simulated.results[0], simulated.requests))


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
    simulated = compared(rule)
    weaknesses = find_weaknesses(simulated.results[0], simulated.requests)
    assert any(reason in weakness for weakness in weaknesses)
