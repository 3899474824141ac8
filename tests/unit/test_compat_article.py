"""The configuration and the CSV files of the load-testing article's tool."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.compat import article
from scaletest.model.errors import UsageError
from scaletest.model.saturation import Attempt, SaturationStep

CONFIGURATION: dict[str, Any] = {
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


def test_the_configuration_is_understood() -> None:
    found = article.settings(CONFIGURATION)
    assert found == {
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
    sweep = article.settings(
        {**CONFIGURATION, "execution": {**CONFIGURATION["execution"], "autoScaling": False}}
    )
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
def test_what_its_tool_has_and_we_do_not_is_named(more: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as raised:
        article.settings({**CONFIGURATION, **more})
    assert "secret" not in str(raised.value.message) or "a secret" in str(raised.value.message)


def files_of(
    tmp_path: Path, step: SaturationStep, samples: list[Attempt]
) -> dict[str, list[dict[str, str]]]:
    """The rows of its files about a run of one step."""
    article.append(tmp_path, [step], {step.number: samples})
    texts = {name: (tmp_path / f"{name}.csv").read_text() for name in ("history", "timing")}
    return {name: list(csv.DictReader(io.StringIO(text))) for name, text in texts.items()}


def test_its_files_count_what_each_thread_handled(tmp_path: Path) -> None:
    # given three in flight: one place serves a request of 3 s, another two in turn, the last three,
    # one with a retry
    times = [(0, 0.0, 3.0), (1, 0.0, 1.5), (2, 0.0, 1.0), (3, 1.0, 2.0), (4, 1.5, 3.0)]
    samples = [
        Attempt(n, 1, True, at, at, at, end, "ok", size=7, payload=40 + n) for n, at, end in times
    ]
    samples.append(Attempt(5, 1, False, 2.0, 2.0, 2.0, 2.1, "503", size=7, payload=45))
    samples.append(Attempt(5, 2, True, 2.0, 2.0, 2.11, 3.0, "ok", size=7, payload=45))
    step = SaturationStep(0, "ramp", "closed", 3.0, 3.0, 6, began="2026-01-01T00:00:00+00:00")
    files = files_of(tmp_path, step, samples)
    (history,) = files["history"]
    assert (history["Records"], history["MaxRecords"], history["MinRecords"]) == ("6", "3", "1")
    # and the size is that of what was sent
    assert [row["PayloadSize"] for row in files["timing"]] == ["40", "41", "42", "43", "44", "45"]


def test_its_files_know_threads_that_had_nothing_to_do_and_agents_apart(
    tmp_path: Path,
) -> None:
    # given two agents, one with two requests at a time and one with a single one, and a fourth
    # place without any
    times = [("1", 0, 0.0, 1.0), ("1", 2, 0.0, 1.0), ("2", 1, 0.0, 0.5), ("2", 3, 0.5, 1.0)]
    samples = [
        Attempt(number, 1, True, at, at, at, end, "ok", agent=agent)
        for agent, number, at, end in times
    ]
    step = SaturationStep(0, "ramp", "closed", 4.0, 1.0, 4, began="2026-01-01T00:00:00+00:00")
    (history,) = files_of(tmp_path, step, samples)["history"]
    assert (history["MaxRecords"], history["MinRecords"]) == ("2", "0")


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


@given(st.dictionaries(st.sampled_from(sorted(article.SECTIONS)), VALUES))
def test_any_configuration_is_read_or_an_error(data: dict[str, Any]) -> None:
    try:
        article.settings(data)
    except UsageError:
        pass
