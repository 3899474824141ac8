"""Samples in databases: the same in SQLite and in a PostgreSQL server of our own, whose five
answers agree.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from scaletest.archive.sql import QUERIES, SqlSink
from scaletest.model.errors import Unreachable, UsageError
from scaletest.model.saturation import OK, Attempt, SaturationPlan
from scaletest.model.verdict import VerdictKind
from tests.conftest import asked, call, eventually, missing
from tests.unit.simulated import Simulated, stored

# Debian keeps the server's programs out of the way, and has a user for it: it refuses to run as
# root.
EXITS = {kind.value: kind.exit_code for kind in VerdictKind}
DEBIAN, USER = "/usr/lib/postgresql/*/bin", "postgres"


def program_path(name: str) -> str:
    """The path of one of PostgreSQL's programs."""
    places = [
        os.environ["PATH"],
        *map(str, sorted(Path("/").glob(DEBIAN.lstrip("/")), reverse=True)),
    ]
    path = shutil.which(name, path=os.pathsep.join(places))
    if path is None:
        missing("initdb (of PostgreSQL)")
    return str(path)


class Postgres:
    """An own server on a socket, which sorts texts as English people do; it can be ended and
    started again.
    """

    def __init__(self, folder: Path) -> None:
        initdb = program_path("initdb")
        self._folder = folder
        root = os.geteuid() == 0
        self._who: dict[str, Any] = (
            {"user": USER, "group": USER, "extra_groups": []} if root else {}
        )
        if root:
            shutil.chown(folder, USER, USER)
        options = [
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--locale-provider=icu",
            "--icu-locale=en",
        ]
        line = [initdb, "-D", folder / "data", "-U", "test", "--no-sync", *options]
        done = subprocess.run(
            line, capture_output=True, text=True, check=False, cwd=folder, **self._who
        )
        assert done.returncode == 0, done.stderr
        self.url = f"postgresql://test@/postgres?host={folder}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """And wait until it answers."""
        line = [
            program_path("postgres"),
            "-D",
            self._folder / "data",
            "-k",
            self._folder,
            "-c",
            "listen_addresses=",
            "-F",
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                line, stdout=log, stderr=log, cwd=self._folder, **self._who
            )
        eventually(lambda: answers(self.url))

    def stop(self) -> None:
        """At once, whoever is connected; nothing when it does not run."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(60)
            self._process = None


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """The server, which runs."""
    with tempfile.TemporaryDirectory(prefix="scaletest-sql-") as name:
        server = Postgres(Path(name))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def database(postgres: Postgres) -> str:
    """Its URL."""
    return postgres.url


def answers(url: str) -> bool:
    """Whether the server is there."""
    try:
        SqlSink(url, "first", "x").close()
    except Unreachable:
        return False
    return True


def test_both_databases_give_the_same_five_answers(database: str, tmp_path: Path) -> None:
    # given a run of two agents whose service refuses on overload, once more by a client of another
    # name
    plan = SaturationPlan("simulated", step_s=2.0, warm_s=0.5)
    steps, samples = stored(plan, Simulated(slots=2, room=8), 1)
    sinks = [
        SqlSink(where, "run", client)
        for client in ("vm", "VM")
        for where in (database, str(tmp_path / "s.db"))
    ]
    for sink in sinks:
        for step in steps:
            began = replace(step, began=f"2026-11-21T10:{step.number:02}:00.250+00:00")
            sink.store(
                began,
                [
                    sample._replace(agent=str(sample.request % 11))
                    for sample in samples[step.number]
                ],
            )
    # expect the same of both, sorted by the same rule
    for title in QUERIES:
        theirs, ours = asked(sinks[0], title), asked(sinks[1], title)
        assert len(theirs) == len(ours) > 0, title
        for row, row_other in zip(theirs, ours, strict=True):
            assert all(_same(*pair) for pair in zip(row, row_other, strict=True)), (
                title,
                row,
                row_other,
            )
    clients = [row[0] for row in asked(sinks[0], "clients")]
    assert clients == sorted(clients) and {"VM-0", "vm-10"} <= set(clients)
    for sink in sinks:
        sink.close()


def _same(value: Any, other: Any) -> bool:
    """Whether two values are; a mean is a decimal number here and a float there."""
    if isinstance(value, str) or value is None:
        return bool(value == other)
    return float(value) == pytest.approx(float(other), rel=1e-9)


def test_a_step_is_written_whole_or_not_at_all(database: str) -> None:
    sink = SqlSink(database, "half", "x")
    before = asked(sink, "messages in all")
    good = Attempt(0, 1, True, 0.0, 0.0, 0.0, 0.1, OK)
    steps, _ = stored(SaturationPlan("simulated", step_s=2.0), Simulated(), 1)
    with pytest.raises(UsageError, match="--sql refuses"):
        sink.store(steps[0], [good, good._replace(size="much")])  # type: ignore[arg-type]
    assert asked(sink, "messages in all") == before
    sink.close()


def test_a_password_with_an_at_sign_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError, match="more than one @") as caught:
        SqlSink("postgresql://user:pass@word@host/db", "run", "x")
    assert "word" not in caught.value.message.replace("password", "")


@pytest.mark.parametrize("where", ["", " ", ":memory:", "mysql://h/d", "/nowhere/s.db"])
def test_a_database_url_with_an_unknown_scheme_is_refused(where: str) -> None:
    with pytest.raises(UsageError):
        SqlSink(where, "run", "x")


def test_an_unreachable_database_is_named_in_the_error(database: str) -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        SqlSink(database.replace("host=", "host=/nowhere"), "run", "x")


def test_a_role_that_may_only_insert_stores_samples(database: str) -> None:
    # given a table that an administrator made, and a role that may make none
    import psycopg

    SqlSink(database, "made", "x").close()
    with psycopg.connect(database) as connection:
        connection.execute("CREATE ROLE writer LOGIN")
        connection.execute("GRANT SELECT, INSERT ON scaletest_samples TO writer")
    sink = SqlSink(database.replace("//test@", "//writer@"), "written", "x")
    steps, samples = stored(SaturationPlan("simulated", step_s=2.0), Simulated(), 1)
    before = asked(sink, "messages in all")[0][0]
    sink.store(steps[0], samples[steps[0].number])
    assert asked(sink, "messages in all")[0][0] == before + len(samples[steps[0].number])
    sink.close()


def step_of(number: int) -> tuple[Any, list[Attempt]]:
    """A step of a run, and its samples."""
    steps, samples = stored(SaturationPlan("simulated", step_s=2.0), Simulated(), 1)
    began = f"2026-11-21T10:{number:02}:00.250+00:00"
    return replace(steps[0], number=number, began=began), samples[steps[0].number]


def rows_of(url: str, run: str) -> dict[int, int]:
    """How many rows of each step there are."""
    import psycopg

    with psycopg.connect(url) as connection:
        asked = "SELECT step, COUNT(*) FROM scaletest_samples WHERE run = %s GROUP BY step"
        return dict(connection.execute(asked, [run]).fetchall())


def test_all_steps_are_stored_after_a_restart_of_the_database(postgres: Postgres) -> None:
    # given a step that was written, and a server that ends and comes back
    sink = SqlSink(postgres.url, "restarted", "x")
    first, samples = step_of(0)
    sink.store(first, samples)
    postgres.stop()
    postgres.start()
    second, _ = step_of(1)
    sink.store(second, samples)
    assert rows_of(postgres.url, "restarted") == {0: len(samples), 1: len(samples)}
    # and who fills it later writes each step once
    third, _ = step_of(2)
    every = dict.fromkeys(range(3), samples)
    assert [sink.fill([first, second, third], every) for _ in range(2)] == [1, 0]
    assert rows_of(postgres.url, "restarted") == dict.fromkeys(range(3), len(samples))
    # when it is away, that is said
    postgres.stop()
    try:
        with pytest.raises(Unreachable, match="cannot be reached"):
            sink.store(*step_of(3))
    finally:
        postgres.start()


def test_a_server_that_does_not_answer_does_not_stop_a_run(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a server process that stands still in the midst of a step
    sink = SqlSink(database, "frozen", "x")
    sink._patience_s = 0.2
    first, samples = step_of(0)
    pid = sink._connection.info.backend_pid
    connected = sink._connected

    def patiently() -> Any:
        sink._patience_s = 60.0
        return connected()

    monkeypatch.setattr(sink, "_connected", patiently)
    os.kill(pid, signal.SIGSTOP)
    try:
        sink.store(first, samples)
    finally:
        os.kill(pid, signal.SIGCONT)
    # then another one took it, once
    assert rows_of(database, "frozen") == {0: len(samples)}
    sink.close()


class Door(ThreadingHTTPServer):
    """A service whose answers wait for what `act` does at each call."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act
        super().__init__(("127.0.0.1", 0), Knock)


class Knock(BaseHTTPRequestHandler):
    """One request of a load, on a connection that is kept."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        assert isinstance(self.server, Door)
        self.server.act()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


def saturated(act: Callable[[], None], sql: str, run: Path) -> subprocess.CompletedProcess[str]:
    """A sweep of two short steps."""
    with Door(act) as door:
        threading.Thread(target=door.serve_forever, daemon=True).start()
        try:
            return call(
                *(
                    "saturate",
                    "--url",
                    f"http://127.0.0.1:{door.server_port}/",
                    "--load",
                    "closed",
                    "--mode",
                    "sweep",
                ),
                *(
                    "--start",
                    "1",
                    "--maximum",
                    "2",
                    "--increment",
                    "1",
                    "--count",
                    "20",
                    "--warm",
                    "0",
                ),
                *("--sql", sql, "--run-dir", str(run), "--format", "json"),
            )
        finally:
            door.shutdown()


def test_a_run_outlives_its_database_which_is_filled_later(
    postgres: Postgres, tmp_path: Path
) -> None:
    # given a server that ends with the first call, after it was seen to be there
    try:
        done = saturated(postgres.stop, postgres.url, tmp_path / "lost")
    finally:
        postgres.start()
    # then everything was measured and kept, and it is said once what happened and what to do
    result = json.loads(done.stdout)
    rows = {step["number"]: step["requests"] for step in result["steps"]}
    assert done.returncode == 7 and len(rows) >= 2 and set(rows.values()) == {20}, done.stderr
    assert json.loads((tmp_path / "lost/result.json").read_text())["verdict"] == result["verdict"]
    assert done.stderr.count("the run goes on") == done.stderr.count("scaletest runs sql") == 1
    assert rows_of(postgres.url, "lost") == {}
    # when that is done, nothing is lacking
    line = shlex.split(done.stderr[done.stderr.index("runs sql") :].splitlines()[0])
    assert [call(*line).stdout for _ in range(2)] == [
        f"lost: {count} steps written to {postgres.url}\n" for count in (len(rows), 0)
    ]
    assert rows_of(postgres.url, "lost") == rows


def test_a_database_that_comes_back_before_the_end_gets_what_it_lacks(
    postgres: Postgres, tmp_path: Path
) -> None:
    # given a server that is away while the first step is stored, and back in the second
    steps, down = tmp_path / "back/steps.jsonl", [0]

    def act() -> None:
        with lock:
            if not down[0]:
                down[0] = 1
                postgres.stop()
            elif down[0] == 1 and steps.exists():
                down[0] = 2
                postgres.start()

    lock = threading.Lock()
    done = saturated(act, postgres.url, tmp_path / "back")
    result = json.loads(done.stdout)
    assert done.returncode == EXITS[result["verdict"]["kind"]], done.stderr
    # a step in which the tester was late is measured again, so there may be more than two
    assert (
        "the run goes on" in done.stderr and f"and got {len(result['steps'])} steps" in done.stderr
    )
    assert rows_of(postgres.url, "back") == {step["number"]: 20 for step in result["steps"]}


def test_an_unreachable_database_is_refused_before_the_load_begins(
    database: str, tmp_path: Path
) -> None:
    calls = list[int]()
    done = saturated(
        lambda: calls.append(1), database.replace("host=", "host=/nowhere"), tmp_path / "run"
    )
    assert done.returncode == 7 and "cannot be reached" in done.stderr
    assert calls == [] and not (tmp_path / "run").exists()
