"""Combinations of settings, and how they change a Deployment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.cluster.tuning import container_changes, with_argument
from scaletest.model.errors import InvalidValue
from scaletest.saturation.judging import tuning


def test_settings_are_all_combinations_and_ranked_by_what_they_cost() -> None:
    combinations = tuning.parse_settings(["cpu=250m,1", "replicas=1,2"])
    assert combinations == [
        {"cpu": "250m", "replicas": "1"},
        {"cpu": "250m", "replicas": "2"},
        {"cpu": "1", "replicas": "1"},
        {"cpu": "1", "replicas": "2"},
    ]
    slow = tuning.TriedSetting(combinations[0], 20.0, 0.1, 1, 0.25, 0.0, used_cpu=0.25)
    dear = tuning.TriedSetting(combinations[2], 40.0, 0.1, 1, 1.0, 0.0, used_cpu=0.1)
    failed = tuning.TriedSetting(combinations[3], None, None, 2, 1.0, 0.0, trouble="no room")
    assert tuning.rank_settings([failed, dear, slow]) == [slow, dear, failed]
    assert slow.marks == ["CPU pegged at 100%"] and dear.marks == ["CPU idle at 10%"]
    assert slow.per_s_per_core == 80.0


def test_variables_and_arguments_of_the_program_are_tuned_by_their_names() -> None:
    assert tuning.parse_settings(["WORKERS=1,2", "--threads=4"]) == [
        {"WORKERS": "1", "--threads": "4"},
        {"WORKERS": "2", "--threads": "4"},
    ]
    for wrong in ("workers=1", "cpu", "replicas=x"):
        with pytest.raises(InvalidValue):
            tuning.parse_settings([wrong])


@given(
    st.lists(
        st.text(max_size=20) | st.sampled_from(["cpu=1,2", "cpu=3", "replicas=0", "memory=1Gi"]),
        max_size=4,
    )
)
def test_any_settings_are_read_or_an_error(texts: list[str]) -> None:
    try:
        combinations = tuning.parse_settings(texts)
    except InvalidValue:
        return
    assert len(combinations) <= tuning.MOST_SETTINGS


def test_a_container_is_changed_in_its_variables_and_arguments() -> None:
    container = {
        "name": "m",
        "args": ["--workers=1", "x"],
        "env": [{"name": "W", "value": "1"}, {"name": "B"}],
    }
    assert container_changes(container, {"W": "4", "--workers": "2", "replicas": "3"}) == {
        "env": [{"name": "W", "value": "4", "valueFrom": None}],
        "args": ["--workers=2", "x"],
    }
    assert container_changes({}, {"--workers": "4"}) == {"args": ["--workers=4"]}
    amounts = {"cpu": "2"}
    assert container_changes(container, amounts) == {
        "resources": {"requests": amounts, "limits": amounts}
    }
    assert with_argument(["--workers", "1"], "--workers", "4") == ["--workers", "4"]
    # the original is as it was
    assert container["args"] == ["--workers=1", "x"]
