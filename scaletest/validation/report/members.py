"""Who did how much in a step: its requests by worker, node, pod and device."""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

from scaletest.causes.steps import Rows
from scaletest.model import Record
from scaletest.render.blocks import Cell, Share, Table
from scaletest.render.numbers import format_percent, format_seconds
from scaletest.validation.judging.steps import Step, has_failed

KINDS = ("worker", "node", "pod", "device")
# Each repeat has others of these, and it may be longer than the next: only those of one repeat
# compare.
RESTARTED = ("worker", "pod")
# More members than this are shown from both ends: the busiest and the idlest.
MOST_MEMBERS = 24


def members_tables(step: Step, records: Rows) -> list[Table]:
    """Who did how much, for the kinds of which a step had more than one; a pod that is its node
    says nothing.

    Of several repeats workers and pods are those of the first, since every repeat starts its own.
    """
    repeats = [records.get(sample.measurement.key, ()) for sample in step.samples]
    tables = []
    earlier: list[set[str]] = []
    for kind in KINDS:
        by_name: dict[str, list[Record]] = defaultdict(list)
        for row in chain.from_iterable(repeats[:1] if kind in RESTARTED else repeats):
            by_name[getattr(row.reply, kind)].append(row)
        by_name.pop("", None)
        if len(by_name) > 1 and set(by_name) not in earlier:
            earlier.append(set(by_name))
            tables.append(_members(kind, by_name))
    return tables


def _members(kind: str, by_name: Mapping[str, Sequence[Record]]) -> Table:
    """The members of a kind, the busiest first, with their shares of the successful requests."""
    times = {
        name: [row.reply.run_s for row in rows if row.ok]  # of the successful requests
        for name, rows in by_name.items()
    }
    names = sorted(times, key=lambda name: (-len(times[name]), name))
    most = len(times[names[0]]) or 1
    total = sum(map(len, times.values())) or 1
    left_out = max(0, len(names) - MOST_MEMBERS)
    if left_out:
        half = MOST_MEMBERS // 2
        names = [*names[:half], *names[-half:]]
    cells: list[dict[str, Cell]] = []
    for name in names:
        done = len(times[name])
        mean = statistics.fmean(times[name]) if done else None
        cells.append(
            {
                kind: name,
                "requests": str(done),
                "share": Share(done / most, format_percent(done / total)),
                "mean run": format_seconds(mean),
                "failed": str(sum(map(has_failed, by_name[name]))),
            }
        )
    return Table.of_rows(
        cells,
        {kind, "share"},
        note=f"{left_out} of the middle are left out." if left_out else "",
    )
