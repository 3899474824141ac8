"""Samples in a database: SQLite by file name, PostgreSQL by URL (psycopg, the extra `postgres`).

The table has the columns of the original tool (Client, Time, AILatency, State, SendError) and those
of a sample. A step is there whole or not at all, so what a database lacks can be written later from
the run's folder.

QUERIES are the meaning of the original tool's five result queries (messages, errors, latency by
second, clients, messages of each client), in SQL that SQLite and PostgreSQL understand alike:
whoever keeps samples in a database asks there, and a report asks a database of its own that lives
as long as the question.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from scaletest.model.checks import cut
from scaletest.model.errors import Unreachable, UsageError
from scaletest.model.saturation import Attempt, SaturationStep
from scaletest.model.texts import epoch

TABLE = """
CREATE TABLE IF NOT EXISTS scaletest_samples (
    run TEXT NOT NULL, step INTEGER NOT NULL, phase TEXT NOT NULL, load TEXT NOT NULL,
    level DOUBLE PRECISION NOT NULL, client TEXT NOT NULL, time_s DOUBLE PRECISION NOT NULL,
    latency_s DOUBLE PRECISION NOT NULL, state INTEGER NOT NULL, send_error TEXT NOT NULL,
    request INTEGER NOT NULL, attempt INTEGER NOT NULL, due_s DOUBLE PRECISION NOT NULL,
    sent_s DOUBLE PRECISION NOT NULL, ended_s DOUBLE PRECISION NOT NULL, size INTEGER NOT NULL,
    server_s DOUBLE PRECISION, pod TEXT NOT NULL
)"""
COLUMNS = 18
# time_s: seconds since the epoch; state: 0 failure, 1 success
QUERIES = {
    "messages in all": "SELECT COUNT(*) AS messages FROM scaletest_samples",
    "errors of each client": (
        "SELECT client, send_error, COUNT(*) AS count FROM scaletest_samples WHERE state = 0 "
        "GROUP BY client, send_error ORDER BY client, send_error"
    ),
    "latency by second": (
        "SELECT CAST(FLOOR(time_s) AS BIGINT) AS second, COUNT(*) AS messages, AVG(latency_s) AS"
        " mean_latency_s FROM scaletest_samples WHERE state = 1 GROUP BY second ORDER BY second"
    ),
    "clients": (
        "SELECT client, MIN(CASE WHEN state = 1 THEN time_s END) AS first_success_s, MAX(CASE WHEN"
        " state = 1 THEN time_s END) AS last_success_s, MIN(CASE WHEN state = 0 THEN time_s END) AS"
        " first_error_s, MAX(CASE WHEN state = 0 THEN time_s END) AS last_error_s, SUM(state) AS"
        " successes, COUNT(*) - SUM(state) AS errors, AVG(1.0 * state) AS success_share,"
        " MAX(time_s) - MIN(time_s) AS duration_s FROM scaletest_samples GROUP BY client ORDER BY"
        " client"
    ),
    "messages of each client": (
        "SELECT client, COUNT(*) AS messages FROM scaletest_samples GROUP BY client ORDER BY client"
    ),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's title, its columns, and its rows."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
        }


def rows(
    run: str, client: str, step: SaturationStep, samples: Sequence[Attempt]
) -> list[tuple[Any, ...]]:
    """The table's rows of a step. client: the name for samples of no agent."""
    clients = {attempt.agent: f"{client}-{attempt.agent}" for attempt in samples}
    clients[""] = client
    return [_row(run, clients[attempt.agent], step, attempt) for attempt in samples]


def _row(run: str, client: str, step: SaturationStep, attempt: Attempt) -> tuple[Any, ...]:
    began_s = epoch(step.began) or 0.0
    return (
        run,
        step.number,
        str(step.phase),
        str(step.load),
        step.level,
        client,
        began_s + attempt.ended_s,
        attempt.latency_s,
        int(attempt.ok),
        "" if attempt.ok else attempt.outcome,
        attempt.request,
        attempt.attempt,
        attempt.due_s,
        attempt.sent_s,
        attempt.ended_s,
        attempt.size,
        attempt.server_s,
        attempt.pod,
    )


def answers(
    client: str, steps: Sequence[SaturationStep], samples: Mapping[int, Sequence[Attempt]]
) -> list[Answer]:
    """All five about one run. samples: by the number of their step."""
    with contextlib.closing(
        sqlite3.connect("")
    ) as database:  # without a name: in memory, and on disk when that gets too large
        database.create_function(
            "FLOOR", 1, math.floor, deterministic=True
        )  # not every SQLite is built with it
        database.execute(TABLE)
        insert = f"INSERT INTO scaletest_samples VALUES ({', '.join('?' * COLUMNS)})"
        for step in steps:
            database.executemany(insert, rows("", client, step, samples.get(step.number, ())))
        return [_answer(title, database.execute(query)) for title, query in QUERIES.items()]


def _answer(title: str, cursor: sqlite3.Cursor) -> Answer:
    return Answer(title, tuple(column[0] for column in cursor.description), cursor.fetchall())


# A database that says nothing for so long is taken for lost: the steps wait for it.
PATIENCE_S = 60.0
# Rows of a step that is there already lie within its own times; these are microseconds.
SAME_S = 1e-4


class SqlSink:
    """Appends each step's samples in one transaction; a broken connection is renewed once."""

    def __init__(self, where: str, run: str, client: str) -> None:
        self._run, self._client, self._where, self._patience_s = run, client, where, PATIENCE_S
        self._postgres = where.startswith(("postgres://", "postgresql://"))
        if "://" in where and not self._postgres:
            raise UsageError(
                f"--sql knows no {where.partition('://')[0]}",
                hint="give a file, or postgresql://...",
            )
        mark = "%s" if self._postgres else "?"
        self._insert = f"INSERT INTO scaletest_samples VALUES ({', '.join([mark] * COLUMNS)})"
        self._count = (
            f"SELECT COUNT(*) FROM scaletest_samples WHERE run = {mark} AND step = {mark} "
            f"AND client = {mark} AND time_s BETWEEN {mark} AND {mark}"
        )
        self._connection: Any = self._connected()

    def store(self, step: SaturationStep, samples: Sequence[Attempt]) -> None:
        """Write a step's samples or nothing. Unreachable, or UsageError when it refuses."""
        written = rows(self._run, self._client, step, samples)
        try:
            self._write(written)
        except Unreachable:
            self.close()
            self._connection = self._connected()
            # it may have been written, and only the answer was lost
            self._fill(written)

    def fill(
        self, steps: Sequence[SaturationStep], samples: Mapping[int, Sequence[Attempt]]
    ) -> int:
        """Write the steps that are not there yet; how many these were."""
        return sum(
            self._fill(rows(self._run, self._client, step, samples.get(step.number, ())))
            for step in steps
        )

    def _fill(self, rows: list[tuple[Any, ...]]) -> bool:
        if not rows or self._holds(rows):
            return False
        self._write(rows)
        return True

    def _holds(self, rows: list[tuple[Any, ...]]) -> bool:
        times = [row[6] for row in rows]
        asked = (self._run, rows[0][1], rows[0][5], min(times) - SAME_S, max(times) + SAME_S)
        found: list[int] = []
        self._execute(lambda cursor: found.append(cursor.execute(self._count, asked).fetchone()[0]))
        return found[0] > 0

    def _write(self, rows: list[tuple[Any, ...]]) -> None:
        self._execute(lambda cursor: cursor.executemany(self._insert, rows))

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(Exception):  # one that broke has nothing to end
            self._connection.close()

    def _connected(self) -> Any:
        self._connection = _postgres(self._where) if self._postgres else _sqlite(self._where)
        try:
            self._execute(
                _ensure_postgres if self._postgres else lambda cursor: cursor.execute(TABLE)
            )
        except BaseException:
            self.close()
            raise
        return self._connection

    def _execute(self, act: Callable[[Any], Any]) -> None:
        try:
            with self._bounded():
                act(self._connection.cursor())
                self._connection.commit()
        except Exception as error:
            if getattr(self._connection, "broken", False):
                raise Unreachable(
                    f"the database of --sql went away: {cut(str(error), 300)}",
                    hint="look whether it runs",
                ) from error
            with contextlib.suppress(Exception):
                self._connection.rollback()
            raise UsageError(
                f"the database of --sql refuses: {cut(str(error), 300)}",
                hint="look at its space and rights",
            ) from error

    @contextlib.contextmanager
    def _bounded(self) -> Iterator[None]:
        """Cut the connection of a server that hangs; no option of its protocol does that."""
        if not self._postgres:
            yield  # a file: its lock has a time limit of its own
            return
        line = socket.socket(fileno=os.dup(self._connection.fileno()))
        timer = threading.Timer(self._patience_s, _cut, (line,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            line.close()


def _cut(line: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other end was quicker
        line.shutdown(socket.SHUT_RDWR)


def _ensure_postgres(cursor: Any) -> None:
    """Create the table unless it exists, since some roles may write to it but create none."""
    if cursor.execute("SELECT to_regclass('scaletest_samples')").fetchone()[0] is None:
        # without a word of ours it would sort texts by the rules of a language
        cursor.execute(TABLE.replace("TEXT", 'TEXT COLLATE "C"'))


def _sqlite(path: str) -> Any:
    if not path.strip() or path == ":memory:":
        raise UsageError(
            "a database without a name is lost at once", hint="give the path of a file"
        )
    try:
        return sqlite3.connect(path, timeout=30.0)
    except sqlite3.Error as error:
        raise UsageError(
            f"--sql {path} cannot be opened: {error}", hint="give the path of a file"
        ) from error


def _postgres(url: str) -> Any:
    if (
        urlsplit(url).netloc.count("@") > 1
    ):  # the half of the password would be taken for a host, and shown
        raise UsageError(
            "the URL of --sql has more than one @", hint="write an @ of the password as %40"
        )
    try:
        import psycopg
    except ImportError as error:
        raise UsageError(
            "PostgreSQL needs psycopg, which is not installed",
            hint="install it: pip install 'scaletest[postgres]'",
        ) from error
    try:
        return psycopg.connect(url, connect_timeout=10)
    except psycopg.Error as error:
        raise Unreachable(
            f"the database of --sql cannot be reached: {error}", hint="look at the URL"
        ) from error
