"""The five result queries of the original tool (messages, errors, latency by second, clients,
messages of each client) over the samples of a saturation run.

They are asked of an SQLite database that lives as long as the question; `docs/how-to/runs.md` asks
the same of the run's files.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.model.saturation import Attempt, SaturationStep
from scaletest.model.texts import epoch

# Named as the original tool's columns (Client, Time, AILatency, State, SendError).
# time_s: seconds since the epoch; state: 0 failure, 1 success
TABLE = """
CREATE TABLE samples (
    client TEXT, time_s REAL, latency_s REAL, state INTEGER, send_error TEXT
)"""
QUERIES = {
    "messages in all": "SELECT COUNT(*) AS messages FROM samples",
    "errors of each client": (
        "SELECT client, send_error, COUNT(*) AS count FROM samples WHERE state = 0"
        " GROUP BY client, send_error ORDER BY client, send_error"
    ),
    "latency by second": (
        "SELECT CAST(time_s AS INTEGER) AS second, COUNT(*) AS messages,"
        " AVG(latency_s) AS mean_latency_s FROM samples WHERE state = 1"
        " GROUP BY second ORDER BY second"
    ),
    "clients": (
        "SELECT client, MIN(CASE WHEN state = 1 THEN time_s END) AS first_success_s,"
        " MAX(CASE WHEN state = 1 THEN time_s END) AS last_success_s,"
        " MIN(CASE WHEN state = 0 THEN time_s END) AS first_error_s,"
        " MAX(CASE WHEN state = 0 THEN time_s END) AS last_error_s, SUM(state) AS successes,"
        " COUNT(*) - SUM(state) AS errors, AVG(state) AS success_share,"
        " MAX(time_s) - MIN(time_s) AS duration_s FROM samples GROUP BY client ORDER BY client"
    ),
    "messages of each client": (
        "SELECT client, COUNT(*) AS messages FROM samples GROUP BY client ORDER BY client"
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


def answers(
    client: str, steps: Sequence[SaturationStep], samples: Mapping[int, Sequence[Attempt]]
) -> list[Answer]:
    """Ask all five about one run. client: the name for samples of no agent. samples: by the number
    of their step.
    """
    # without a name: in memory, and on disk when that gets too large
    with contextlib.closing(sqlite3.connect("")) as database:
        database.execute(TABLE)
        for step in steps:
            rows = _rows(client, step, samples.get(step.number, ()))
            database.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?)", rows)
        return [_answer(title, database.execute(query)) for title, query in QUERIES.items()]


def _rows(
    client: str, step: SaturationStep, samples: Sequence[Attempt]
) -> Iterator[tuple[Any, ...]]:
    began_s = epoch(step.began) or 0.0
    for sample in samples:
        yield (
            f"{client}-{sample.agent}" if sample.agent else client,
            began_s + sample.ended_s,
            sample.latency_s,
            int(sample.ok),
            "" if sample.ok else sample.outcome,
        )


def _answer(title: str, cursor: sqlite3.Cursor) -> Answer:
    return Answer(title, tuple(column[0] for column in cursor.description), cursor.fetchall())
