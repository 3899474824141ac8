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


def test_a_rule_takes_its_limits_from_the_load_unless_it_has_its_own() -> None:
    load = {"minimum": 2, "maximum": 10, "grace_s": 60.0}
    plain, own = parse_rule("demand", **load), parse_rule("demand:max=10,grace=5", **load)
    assert (plain.minimum, plain.maximum, plain.grace_s) == (2, 10, 60.0)
    assert (own.minimum, own.maximum, own.grace_s) == (2, 10, 5.0)
    # what scales to none keeps doing so
    assert parse_rule("keda", **load).minimum == 0
