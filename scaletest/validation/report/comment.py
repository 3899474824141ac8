"""A validation as a comment in CI."""

from scaletest.causes.causes import Causes
from scaletest.render.blocks import Block, Text
from scaletest.render.numbers import (
    NOTHING,
    plural,
)
from scaletest.report import failures
from scaletest.validation.report import resources
from scaletest.validation.report.causes import (
    causes_note,
    causes_table,
    doubling_text,
    limits_known,
)
from scaletest.validation.report.parts import ReportParts, as_sentence

MOST_FAILURES = 10


def comment(parts: ReportParts) -> list[Block]:
    """Return the table of steps, what limits the run, what the nodes did, and failures."""
    result = parts.result
    title = "Resources of the nodes while each step was measured"
    kinds = [
        f"{plural(group.count, 'request')} {group.outcome}{failures.spread(group)}:"
        f" {group.error or NOTHING}"
        for group in result.failures
    ]
    return [
        parts.table(("fair",)),
        Text([as_sentence(parts.intervals)]),
        *_limits(result.causes),
        resources.table(result, title=title, note=resources.note(result)),
        Text([as_sentence(parts.law)], label="Law"),
        Text([as_sentence(parts.best_share)], label="Shares"),
        *parts.spread,
        Text(kinds, "list", most=MOST_FAILURES, rest="failure group"),
    ]


def _limits(causes: Causes | None) -> list[Block]:
    """Return what stops the run, ranked; nothing where nothing grew."""
    if causes is None or not limits_known(causes):
        return []
    title = f"What limits it, from {doubling_text(causes)}"
    note = causes_note(causes)
    if not causes.causes:
        return [Text([note and f"{title}: {note}"])]
    return [causes_table(causes, on_page=False, title=title, note=note)]
