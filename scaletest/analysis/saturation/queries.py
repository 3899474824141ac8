"""The five result queries of the original tool: messages, errors, latency by second, clients, messages a client.

There they ran in a database behind an event hub. Here the samples are at hand; archive/sql.py has the same as SQL.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.model.sample import Sample


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's title, its columns, and its rows."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"title": self.title, "columns": list(self.columns), "rows": [list(row) for row in self.rows]}


def answers(samples: Sequence[Sample], client: str) -> list[Answer]:
    """All five. client: the name for samples of no agent."""
    names = [f"{client}-{one.agent}" if one.agent else client for one in samples]
    errors = Counter((name, one.outcome) for name, one in zip(names, samples, strict=True) if not one.ok)
    return [
        Answer("messages in all", ("messages",), [(len(samples),)]),
        Answer(
            "errors of each client",
            ("client", "error", "count"),
            [(*key, count) for key, count in sorted(errors.items())],
        ),
        Answer("latency by second", ("second", "messages", "mean_latency_s"), _by_second(samples)),
        Answer(
            "clients",
            (
                "client",
                "first_success_s",
                "last_success_s",
                "first_error_s",
                "last_error_s",
                "successes",
                "errors",
                "success_share",
                "duration_s",
            ),
            _clients(names, samples),
        ),
        Answer("messages of each client", ("client", "messages"), sorted(Counter(names).items())),
    ]


def _by_second(samples: Sequence[Sample]) -> list[tuple[Any, ...]]:
    """By the second of the step in which it ended."""
    times: dict[int, list[float]] = defaultdict(list)
    for one in samples:
        if one.ok:
            times[int(one.ended_s)].append(one.latency_s)
    return [(second, len(values), sum(values) / len(values)) for second, values in sorted(times.items())]


def _clients(names: Sequence[str], samples: Sequence[Sample]) -> list[tuple[Any, ...]]:
    rows: dict[str, list[Sample]] = defaultdict(list)
    for name, one in zip(names, samples, strict=True):
        rows[name].append(one)
    found = []
    for name, own in sorted(rows.items()):
        good, bad = ([one.ended_s for one in own if one.ok is ok] for ok in (True, False))
        ends = [*good, *bad]
        found.append(
            (
                name,
                min(good, default=None),
                max(good, default=None),
                min(bad, default=None),
                max(bad, default=None),
                len(good),
                len(bad),
                len(good) / len(own),
                max(ends) - min(ends),
            )
        )
    return found
