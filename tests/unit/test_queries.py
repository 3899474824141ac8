"""The result queries over a saturation's samples: those of the report, and those of the guide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from hack.guides import ROOT, blocks
from scaletest.archive.queries import answers
from scaletest.model.saturation import OK, Attempt, SaturationPlan
from scaletest.saturation.folder import SaturationFolder
from tests.unit.simulated import Simulated, step, stored


def test_the_five_queries_tell_the_seconds_of_different_steps_apart() -> None:
    # given two steps, the second of which began a minute after the first
    first = [
        Attempt(0, 1, True, 0.0, 0.0, 0.0, 0.5, OK, agent="1"),
        Attempt(1, 1, True, 0.0, 0.0, 0.0, 1.5, OK, agent="2"),
    ]
    second = [
        Attempt(0, 1, True, 0.0, 0.0, 0.0, 0.75, OK, agent="2"),
        Attempt(1, 1, True, 0.0, 0.0, 0.0, 1.9, "503", agent="2"),
    ]
    steps = [
        replace(step(began="1970-01-01T00:01:40.000+00:00"), number=0),
        replace(step(began="1970-01-01T00:02:40.000+00:00"), number=1),
    ]
    total, errors, seconds, clients, messages = answers("me", steps, {0: first, 1: second})
    assert total.rows == [(4,)]
    assert errors.rows == [("me-2", "503", 1)]
    assert seconds.columns == ("second", "messages", "mean_latency_s")
    assert seconds.rows == [(100, 1, 0.5), (101, 1, 1.5), (160, 1, 0.75)]
    assert clients.rows[0] == ("me-1", 100.5, 100.5, None, None, 1, 0, 1.0, 0.0)
    assert clients.rows[1] == (
        "me-2",
        101.5,
        160.75,
        161.9,
        161.9,
        2,
        1,
        pytest.approx(2 / 3),
        pytest.approx(60.4),
    )
    assert messages.rows == [("me-1", 1), ("me-2", 3)]


def test_duckdb_answers_as_the_report_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a run of eleven agents whose service refuses on overload
    plan = SaturationPlan("simulated", step_s=2.0, warm_s=0.5, client_name="vm")
    folder = SaturationFolder.create(tmp_path / "run")
    folder.begin(plan, {})
    steps, samples = stored(plan, Simulated(slots=2, room=8), 1)
    for each in steps:
        of_agents = [
            sample._replace(agent=str(sample.request % 11)) for sample in samples[each.number]
        ]
        folder.store(each, of_agents)
    # when the queries of the guide are asked in its folder
    monkeypatch.chdir(folder.path)
    guide = blocks(ROOT / "docs/how-to/runs.md")
    view, queries = (block.text for block in guide if block.language == "sql")
    run = folder.load()
    expected = answers("vm", run.steps, run.samples)
    assert len(expected[1].rows) == len(expected[3].rows) == 11
    with duckdb.connect() as database:
        database.execute(view)
        found = [database.sql(query) for query in queries.split(";") if query.strip()]
        # expect what the report answers
        assert [tuple(answer.columns) for answer in found] == [row.columns for row in expected]
        for answer, row in zip(found, expected, strict=True):
            assert answer.fetchall() == [pytest.approx(cells) for cells in row.rows], row.title
