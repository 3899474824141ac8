"""Rules are read, and become values of the chart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.capacity.autoscale.rule import parse_rule, to_values
from scaletest.model.errors import InvalidValue


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "demand:x=1",
        "demand:max=0",
        "demand:max=x",
        "desired:window=99999",
        "demand:target=0",
        "demand:target=nan",
        "jobs:strategy=wild",
        "demand:min=5,max=2",
    ],
)
def test_a_rule_with_impossible_values_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_rule(text)


@given(st.text(max_size=40))
def test_a_rule_of_any_text_is_read_or_refused(text: str) -> None:
    for given_text in (text, "demand:" + text):
        try:
            parse_rule(given_text)
        except InvalidValue:
            pass


def test_options_of_a_rule_become_chart_values() -> None:
    rule = parse_rule("demand:target=2.5,min=2,max=64,down_window=120,down_pods=3")
    values = to_values(rule)["autoscaling"]
    assert (
        values["target"],
        values["minReplicas"],
        values["maxReplicas"],
    ) == (
        "2.5",
        2,
        64,
    )
    assert values["behavior"]["scaleDown"] == {
        "stabilizationWindowSeconds": 120,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 3, "periodSeconds": 60}],
    }
