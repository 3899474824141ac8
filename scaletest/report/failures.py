"""Groups of failures as reports show them: a table on pages, a line each in short forms."""

from collections.abc import Sequence

from scaletest.render.blocks import Table
from scaletest.render.numbers import NOTHING, format_instant, group_thousands, leading_names, plural
from scaletest.render.text import clean_text
from scaletest.stats.failures import FailureGroup

LONGEST_ERROR = 4000
MOST_GROUPS = 100
MEANING = (
    "A row has the failures whose errors differ only in numbers, addresses, paths, times and ids;"
    " its error is that of the first of them."
)


def table(groups: Sequence[FailureGroup]) -> Table:
    """Make a table with a row for each group, up to MOST_GROUPS."""
    left_out = len(groups) - MOST_GROUPS
    more = f" {plural(left_out, 'more kind')} of failure: see the JSON." if left_out > 0 else ""
    texts = {"outcome", "error", "nodes", "devices", "first seen", "last seen"}
    rows = [
        {
            "error": clean_text(group.error or NOTHING, LONGEST_ERROR),
            "count": group_thousands(group.count),
            "outcome": outcome_text(group),
            "exit code": NOTHING if group.exit_code is None else str(group.exit_code),
            "nodes": leading_names(group.nodes, others=group.elsewhere),
            "devices": leading_names(group.devices),
            "first seen": format_instant(group.first_s),
            "last seen": format_instant(group.last_s),
        }
        for group in groups[:MOST_GROUPS]
    ]
    return Table.of_rows(rows, texts, {"error"}, layout="failures", note=MEANING + more)


def outcome_text(group: FailureGroup) -> str:
    """Describe how the requests of a group ended, with the reason where there is one."""
    return ": ".join(filter(None, (group.outcome, group.reason))).replace("_", " ")


def nodes_phrase(group: FailureGroup) -> str:
    """Name the nodes of a group, as in ", on a (80) and b (63)"; "" for a single node."""
    nodes = group.nodes
    return f", on {leading_names(nodes, others=group.elsewhere)}" if len(nodes) > 1 else ""


def lines(groups: Sequence[FailureGroup]) -> list[str]:
    """Write a line for each group: how often, where, and the error."""
    texts = []
    for group in groups:
        error = clean_text(group.error or outcome_text(group), limit=300)
        texts.append(f"{plural(group.count, 'time')}{nodes_phrase(group)}: {error}")
    return texts
