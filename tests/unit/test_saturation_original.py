"""Configuration files of the original tool."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model.errors import UsageError
from scaletest.saturation import original

ORIGINAL = {
    "execution": {
        "autoScaling": True,
        "autoScaleIncrement": 2,
        "threadCount": 4,
        "maxThreadCount": 30,
        "threadStep": 5,
        "testCountPerThreadStep": 8,
        "retryCount": 3,
        "clientName": "vm-1",
    },
    "logDirectory": "logs",
    "defaultProvider": {
        "endpointUrl": "http://h/score",
        "fileInput": "one.json",
        "recordCount": 1000,
    },
}


def test_the_original_tools_configuration_is_understood() -> None:
    settings = original.settings(ORIGINAL)
    assert settings == {
        "load": "closed",
        "mode": "search",
        "start": 4.0,
        "maximum": 30.0,
        "increment": 2.0,
        "most_steps": 8,
        "retries": 2,
        "client_name": "vm-1",
        "original_csv": "logs",
        "url": "http://h/score",
        "payload": "one.json",
        "method": "POST",
        "count": 1000,
    }
    sweep = original.settings(
        {**ORIGINAL, "execution": {**ORIGINAL["execution"], "autoScaling": False}}
    )  # type: ignore[dict-item]
    assert (sweep["mode"], sweep["increment"], sweep["repeats"]) == ("sweep", 5.0, 8)


@pytest.mark.parametrize(
    "more",
    [
        {"defaultProvider": {"endpointKey": "secret"}},
        {"eventHubConfiguration": {"hubName": "h", "connectionString": "secret"}},
        {"recordProvider": {"storage": {"storageKey": "secret"}}},
        {"recordProviderDiskLocation": "c:/dlls"},
        {"strange": 1},
        {"execution": {"threadCount": "four"}},
    ],
)
def test_unsupported_settings_of_the_original_tool_are_reported(more: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as raised:
        original.settings({**ORIGINAL, **more})
    assert "secret" not in str(raised.value.message) or "a secret" in str(raised.value.message)


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)


ROWS = st.dictionaries(
    st.sampled_from(["autoScaling", "threadCount", "local", "recordCount", "fileInput"]), LEAVES
)


VALUES = (
    LEAVES
    | st.lists(LEAVES, max_size=2)
    | ROWS
    | st.dictionaries(st.sampled_from(["local", "storage"]), ROWS)
)


@given(st.dictionaries(st.sampled_from(sorted(original.SECTIONS)), VALUES))
def test_any_original_configuration_is_read_or_an_error(data: dict[str, Any]) -> None:
    try:
        original.settings(data)
    except UsageError:
        pass
