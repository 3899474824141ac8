"""The five result queries of the original tool: messages, errors, latency by second, clients,
messages of each client.

The table has the columns of the original tool (Client, Time, AILatency, State, SendError) and those
of a sample. QUERIES are the meaning of the five, in SQL that SQLite and PostgreSQL understand
alike: whoever keeps samples in a database asks there, and a report asks a database of its own that
lives as long as the question.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from scaletest.model.attempt import Attempt
from scaletest.model.saturation import SaturationStep
from scaletest.model.times import epoch

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
    agents = {attempt.agent for attempt in samples}
    clients = {agent: f"{client}-{agent}" for agent in agents}
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
    with closing(
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
