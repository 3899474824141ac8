"""Samples in a database, for later queries: SQLite by file name, PostgreSQL by URL (psycopg, the extra `postgres`).

The table has the columns of the original tool (Client, Time, AILatency, State, SendError) and those of a sample.
QUERIES are its five result queries, the same for both databases.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from scaletest.model.errors import Unreachable, UsageError
from scaletest.model.sample import Sample
from scaletest.model.saturation import SaturationStep

TABLE = """
CREATE TABLE IF NOT EXISTS scaletest_samples (
    run TEXT NOT NULL, step INTEGER NOT NULL, phase TEXT NOT NULL, load TEXT NOT NULL, level DOUBLE PRECISION NOT NULL,
    client TEXT NOT NULL, time_s DOUBLE PRECISION NOT NULL, latency_s DOUBLE PRECISION NOT NULL, state INTEGER NOT NULL,
    send_error TEXT NOT NULL, request INTEGER NOT NULL, attempt INTEGER NOT NULL, due_s DOUBLE PRECISION NOT NULL,
    sent_s DOUBLE PRECISION NOT NULL, ended_s DOUBLE PRECISION NOT NULL, size INTEGER NOT NULL,
    server_s DOUBLE PRECISION, pod TEXT NOT NULL
)"""
COLUMNS = 18
# time_s: seconds since the epoch; state: 0 failure, 1 success
QUERIES = {
    "messages in all": "SELECT COUNT(*) AS messages FROM scaletest_samples",
    "errors of each client": "SELECT client, send_error, COUNT(*) AS count FROM scaletest_samples WHERE state = 0 "
    "GROUP BY client, send_error ORDER BY client, send_error",
    "latency by second": "SELECT CAST(FLOOR(time_s) AS BIGINT) AS second, COUNT(*) AS messages, "
    "AVG(latency_s) AS mean_latency_s FROM scaletest_samples WHERE state = 1 GROUP BY second ORDER BY second",
    "clients": "SELECT client, MIN(CASE WHEN state = 1 THEN time_s END) AS first_success_s, "
    "MAX(CASE WHEN state = 1 THEN time_s END) AS last_success_s, "
    "MIN(CASE WHEN state = 0 THEN time_s END) AS first_error_s, "
    "MAX(CASE WHEN state = 0 THEN time_s END) AS last_error_s, SUM(state) AS successes, "
    "COUNT(*) - SUM(state) AS errors, AVG(1.0 * state) AS success_share, MAX(time_s) - MIN(time_s) AS duration_s "
    "FROM scaletest_samples GROUP BY client ORDER BY client",
    "messages of each client": "SELECT client, COUNT(*) AS messages FROM scaletest_samples GROUP BY client "
    "ORDER BY client",
}


class SqlSink:
    """Appends the samples of each step in one transaction."""

    def __init__(self, where: str, run: str, client: str) -> None:
        self._run, self._client = run, client
        postgres = where.startswith(("postgres://", "postgresql://"))
        if "://" in where and not postgres:
            raise UsageError(f"--sql knows no {where.partition('://')[0]}", hint="give a file, or postgresql://...")
        mark = "%s" if postgres else "?"
        self._insert = f"INSERT INTO scaletest_samples VALUES ({', '.join([mark] * COLUMNS)})"
        self._connection: Any = _postgres(where) if postgres else _sqlite(where)
        self._execute(_ensure_postgres if postgres else lambda cursor: cursor.execute(TABLE))

    def store(self, step: SaturationStep, samples: Sequence[Sample]) -> None:
        """Write a step's samples, or nothing of it."""
        began_s = datetime.fromisoformat(step.began).timestamp() if step.began else 0.0
        rows = [
            (
                self._run,
                step.number,
                str(step.phase),
                str(step.load),
                step.level,
                f"{self._client}-{one.agent}" if one.agent else self._client,
                began_s + one.ended_s,
                one.latency_s,
                int(one.ok),
                "" if one.ok else one.outcome,
                *(one.request, one.attempt, one.due_s, one.sent_s, one.ended_s, one.size, one.server_s, one.pod),
            )
            for one in samples
        ]
        self._execute(lambda cursor: cursor.executemany(self._insert, rows))

    def ask(self, title: str) -> list[tuple[Any, ...]]:
        """The rows of one of QUERIES."""
        cursor = self._connection.cursor()
        cursor.execute(QUERIES[title])
        return [tuple(row) for row in cursor.fetchall()]

    def close(self) -> None:
        """End it."""
        self._connection.close()

    def _execute(self, act: Any) -> None:
        try:
            act(self._connection.cursor())
            self._connection.commit()
        except Exception as error:
            with contextlib.suppress(Exception):  # a connection that broke has nothing to take back
                self._connection.rollback()
            raise UsageError(f"the database of --sql refuses: {error}", hint="look at its space and rights") from error


def _ensure_postgres(cursor: Any) -> None:
    """Make the table unless it is there: who may only write to it need not be allowed to make one."""
    if cursor.execute("SELECT to_regclass('scaletest_samples')").fetchone()[0] is None:
        # without a word of ours it would sort texts by the rules of a language
        cursor.execute(TABLE.replace("TEXT", 'TEXT COLLATE "C"'))


def _sqlite(path: str) -> Any:
    try:
        return sqlite3.connect(path, timeout=30.0)
    except sqlite3.Error as error:
        raise UsageError(f"--sql {path} cannot be opened: {error}", hint="give the path of a file") from error


def _postgres(url: str) -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise UsageError(
            "PostgreSQL needs psycopg, which is not installed", hint="install it: pip install 'scaletest[postgres]'"
        ) from error
    try:
        return psycopg.connect(url, connect_timeout=10)
    except psycopg.Error as error:
        raise Unreachable(f"the database of --sql cannot be reached: {error}", hint="look at the URL") from error
