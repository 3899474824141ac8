"""Samples in databases: the same in SQLite and in a PostgreSQL server of our own, whose five answers agree."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaletest.archive.sql import QUERIES, SqlSink
from scaletest.model.errors import Unreachable, UsageError
from scaletest.model.sample import OK, Sample
from scaletest.model.saturation import SaturationPlan
from tests.conftest import eventually, missing
from tests.unit.simulated import Simulated, stored

# Debian keeps the server's programs out of the way, and has a user for it: it refuses to run as root.
DEBIAN, USER = "/usr/lib/postgresql/*/bin", "postgres"


def found(name: str) -> str:
    """The path of one of PostgreSQL's programs."""
    places = [os.environ["PATH"], *map(str, sorted(Path("/").glob(DEBIAN.lstrip("/")), reverse=True))]
    path = shutil.which(name, path=os.pathsep.join(places))
    if path is None:
        missing("the server of PostgreSQL; apt-get install postgresql")
    return str(path)


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """URL of an own server on a socket, which sorts texts as English people do."""
    root = os.geteuid() == 0
    who: dict[str, Any] = {"user": USER, "group": USER, "extra_groups": []} if root else {}
    with tempfile.TemporaryDirectory(prefix="scaletest-sql-") as name:
        folder = Path(name)
        if root:
            shutil.chown(folder, USER, USER)
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en"]
        line = [found("initdb"), "-D", folder / "data", "-U", "test", "--no-sync", *options]
        done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder, **who)
        assert done.returncode == 0, done.stderr
        line = [found("postgres"), "-D", folder / "data", "-k", folder, "-c", "listen_addresses=", "-F"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(line, stdout=log, stderr=log, cwd=folder, **who)
        try:
            url = f"postgresql://test@/postgres?host={folder}"
            eventually(lambda: answers(url))
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def answers(url: str) -> bool:
    """Whether the server is there."""
    try:
        SqlSink(url, "first", "x").close()
    except Unreachable:
        return False
    return True


def test_both_databases_give_the_same_five_answers(database: str, tmp_path: Path) -> None:
    # given a run of two agents whose service refuses on overload, once more by a client of another name
    plan = SaturationPlan("simulated", step_s=2.0, warm_s=0.5)
    steps, samples = stored(plan, Simulated(slots=2, room=8), 1)
    sinks = [SqlSink(where, "run", client) for client in ("vm", "VM") for where in (database, str(tmp_path / "s.db"))]
    for sink in sinks:
        for step in steps:
            began = replace(step, began=f"2026-11-21T10:{step.number:02}:00.250+00:00")
            sink.store(began, [one._replace(agent=str(one.request % 11)) for one in samples[step.number]])
    # expect the same of both, sorted by the same rule
    for title in QUERIES:
        theirs, ours = sinks[0].ask(title), sinks[1].ask(title)
        assert len(theirs) == len(ours) > 0, title
        for one, other in zip(theirs, ours, strict=True):
            assert all(_same(*pair) for pair in zip(one, other, strict=True)), (title, one, other)
    clients = [row[0] for row in sinks[0].ask("clients")]
    assert clients == sorted(clients) and {"VM-0", "vm-10"} <= set(clients)
    for sink in sinks:
        sink.close()


def _same(one: Any, other: Any) -> bool:
    """Whether two values are; a mean is a decimal number here and a float there."""
    if isinstance(one, str) or one is None:
        return bool(one == other)
    return float(one) == pytest.approx(float(other), rel=1e-9)


def test_a_step_is_written_whole_or_not_at_all(database: str) -> None:
    sink = SqlSink(database, "half", "x")
    before = sink.ask("messages in all")
    good = Sample(0, 1, True, 0.0, 0.0, 0.0, 0.1, OK)
    steps, _ = stored(SaturationPlan("simulated", step_s=2.0), Simulated(), 1)
    with pytest.raises(UsageError, match="--sql refuses"):
        sink.store(steps[0], [good, good._replace(size="much")])  # type: ignore[arg-type]
    assert sink.ask("messages in all") == before
    sink.close()


def test_a_database_that_is_not_there_is_said(database: str) -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        SqlSink(database.replace("host=", "host=/nowhere"), "run", "x")


def test_who_may_only_write_to_the_table_does(database: str) -> None:
    # given a table that an administrator made, and a role that may make none
    import psycopg

    SqlSink(database, "made", "x").close()
    with psycopg.connect(database) as connection:
        connection.execute("CREATE ROLE writer LOGIN")
        connection.execute("GRANT SELECT, INSERT ON scaletest_samples TO writer")
    sink = SqlSink(database.replace("//test@", "//writer@"), "written", "x")
    steps, samples = stored(SaturationPlan("simulated", step_s=2.0), Simulated(), 1)
    before = sink.ask("messages in all")[0][0]
    sink.store(steps[0], samples[steps[0].number])
    assert sink.ask("messages in all")[0][0] == before + len(samples[steps[0].number])
    sink.close()
