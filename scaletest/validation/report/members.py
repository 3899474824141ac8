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
    """Return a table for each kind of which a step had more than one; none for pods that are nodes.

    Of several repeats workers and pods are those of the first, since every repeat starts its own.
    """
    repeats = [records.get(sample.measurement.key, ()) for sample in step.samples]
    tables = []
    seen: list[set[str]] = []
    for kind in KINDS:
        by_name: dict[str, list[Record]] = defaultdict(list)
        for record in chain.from_iterable(repeats[:1] if kind in RESTARTED else repeats):
            by_name[getattr(record.reply, kind)].append(record)
        by_name.pop("", None)
        if len(by_name) > 1 and set(by_name) not in seen:
            seen.append(set(by_name))
            tables.append(_members_table(kind, by_name))
    return tables


def _members_table(kind: str, by_name: Mapping[str, Sequence[Record]]) -> Table:
    """Return the members of a kind with their shares of the successful requests, busiest first."""
    run_times = {
        name: [record.reply.run_s for record in records if record.ok]
        for name, records in by_name.items()
    }
    names = sorted(run_times, key=lambda name: (-len(run_times[name]), name))
    most = len(run_times[names[0]]) or 1
    total = sum(map(len, run_times.values())) or 1
    note = ""
    if len(names) > MOST_MEMBERS:
        note = f"{len(names) - MOST_MEMBERS} of the middle are left out."
        names[MOST_MEMBERS // 2 : -MOST_MEMBERS // 2] = []
    rows: list[dict[str, Cell]] = []
    for name in names:
        done = len(run_times[name])
        rows.append(
            {
                kind: name,
                "requests": str(done),
                "share": Share(done / most, format_percent(done / total)),
                "mean run": format_seconds(statistics.fmean(run_times[name]) if done else None),
                "failed": str(sum(map(has_failed, by_name[name]))),
            }
        )
    return Table.of_rows(rows, {kind, "share"}, note=note)
