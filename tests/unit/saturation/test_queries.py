"""The queries that the guide asks of a saturation's files."""

from pathlib import Path

import duckdb
import pytest
from msgspec import structs

from hack.guides import ROOT, blocks
from scaletest.saturation.folder import SaturationFolder
from scaletest.saturation.plan import SaturationPlan
from tests.unit.simulated import Simulated, stored


def test_duckdb_answers_the_queries_of_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a run of eleven agents whose service refuses on overload
    plan = SaturationPlan("simulated", step_s=2.0, warm_s=0.5)
    folder = SaturationFolder.create(tmp_path / "run")
    folder.begin(plan, {})
    steps, samples = stored(plan, Simulated(slots=2, room=8), 1)
    for step in steps:
        of_agents = [
            structs.replace(sample, agent=str(sample.request % 11))
            for sample in samples[step.number]
        ]
        folder.store(step, of_agents)
    # when the queries of the guide are asked in its folder
    monkeypatch.chdir(folder.path)
    guide = blocks(ROOT / "docs/how-to/runs.md")
    view, queries = (block.text for block in guide if block.language == "sql")
    with duckdb.connect() as database:
        database.execute(view)
        found = [database.sql(query) for query in queries.split(";") if query.strip()]
        total, errors, seconds, clients, messages = [answer.fetchall() for answer in found]
    rows = [sample for each in samples.values() for sample in each]
    assert total == [(len(rows),)]
    assert sum(row[-1] for row in errors) == sum(not row.ok for row in rows)
    assert sum(row[1] for row in seconds) == sum(row.ok for row in rows)
    assert len(clients) == len(messages) == 11
