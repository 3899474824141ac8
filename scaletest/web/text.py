"""Statistics as plain text, for terminals and scripts. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from scaletest.load.durations import DurationSummary
from scaletest.load.snapshot import LoadSnapshot
from scaletest.model.checks import cut

BAR = 60
TITLE = "Overall request / reply statistics"
TIMINGS = (("run", 1, "backend run time"), ("wait", 1, "queue wait time"), ("overhead", 3, "communication overhead"))
NO_REPLIES = "No such replies => fails happened in communication, not running workloads"


def stats(snapshot: LoadSnapshot, completed: int, rejected: int) -> str:
    """The overall statistics; `completed` and `rejected` count HTTP queries."""
    lines = [TITLE, "=" * len(TITLE), "", f"Sending {snapshot.parallel} requests in parallel.", ""]
    if snapshot.load != "closed":
        lines[3] = f"Load: {snapshot.load}, at most {snapshot.maximum} requests in parallel."
    lines.append(
        f"{snapshot.in_flight} pending, {snapshot.failed} failed and {snapshot.succeeded} successful requests "
        f"in {snapshot.elapsed_s:.1f} seconds."
    )
    if snapshot.succeeded:
        lines += [f"= {snapshot.per_s:.2f} successfully completed requests / second.", ""]
        lines.append("Max / average / min timings (in seconds, for successful requests):")
        lines += [_timing(snapshot.times[name], digits, what) for name, digits, what in TIMINGS]
        lines += ["", "Percentiles 50 / 90 / 95 / 99 (in seconds, within 1 %; n/a: too few requests):"]
        lines += [_percentiles(snapshot.times[name], what) for name, _, what in TIMINGS]
    lines += ["", f"HTTP queries: {completed} completed, {rejected} rejected in total."]
    return "\n".join(lines) + "\n"


def nodes(snapshot: LoadSnapshot) -> str:
    """Successes and failures by node, and by device of each node."""
    return _spread(snapshot, "Device")


def pods(snapshot: LoadSnapshot) -> str:
    """Successes and failures by node, and by pod of each node."""
    return _spread(snapshot, "Pod")


def by_node(snapshot: LoadSnapshot, *, failed: bool = False) -> dict[str, int]:
    """Counts by node, in the order of their names."""
    return _sums((counted.place.node, counted.failed if failed else counted.succeeded) for counted in snapshot.places)


def _timing(times: DurationSummary, digits: int, what: str) -> str:
    values = (times.high_s or 0.0, times.mean_s or 0.0, times.low_s or 0.0)
    return f"- {' / '.join(f'{value:.{digits}f}' for value in values)} - {what}"


def _percentiles(times: DurationSummary, what: str) -> str:
    values = [times.quantiles_s[name] for name in ("p50", "p90", "p95", "p99")]
    return f"- {' / '.join('n/a' if value is None else f'{value:.3g}' for value in values)} - {what}"


def _spread(snapshot: LoadSnapshot, kind: str) -> str:
    nodes = {node: count for node, count in by_node(snapshot).items() if count}
    blocks = [_bars("Node", "Success replies:", nodes)]
    for node in nodes:
        rows = [row for row in snapshot.places if row.place.node == node and row.succeeded]
        names = ((row.place.pod if kind == "Pod" else device_name(row.place.device), row.succeeded) for row in rows)
        title = f"Node: {_shown(node)}"
        counts = dict(sorted(_sums(names).items(), reverse=True))
        blocks.append(f"{title}\n{'=' * len(title)}\n\n{_bars(kind, 'Completed requests:', counts)}")
    other_succeeded, other_failed = snapshot.other_places
    if other_succeeded or other_failed:
        blocks.append(f"Elsewhere, too long ago to be listed: {other_succeeded} succeeded, {other_failed} failed\n")
    if snapshot.failed:
        blocks += _failures(snapshot)
    return "\n".join(blocks)


def _failures(snapshot: LoadSnapshot) -> list[str]:
    counts = {node: count for node, count in by_node(snapshot, failed=True).items() if count and node}
    blocks = [_bars("Node", "Failure replies:", counts) if counts else f"Failure replies:\n{NO_REPLIES}\n"]
    for node in sorted({row.kind.node for row in snapshot.failures}):
        rows = [row for row in snapshot.failures if row.kind.node == node]
        lines = [f"- {row.seen} / {cut(row.kind.error or row.kind.outcome, 500)}" for row in rows]
        title = f"Node: {_shown(node)}"
        blocks.append("\n".join([title, "=" * len(title), "", "Node errors (count / description):", *lines]) + "\n")
    if snapshot.other_failures:
        blocks.append(f"{snapshot.other_failures} failures of kinds too long ago to be listed\n")
    return blocks


def _bars(left: str, right: str, counts: dict[str, int]) -> str:
    width = max([len(left), *(len(_shown(name)) for name in counts)])
    total = sum(counts.values()) or 1
    lines = [f"{left:>{width}} | {right}", f"{'-' * (width + 1)}+{'-' * (len(right) + 1)}"]
    for name, count in counts.items():
        share = count / total
        lines.append(f"{_shown(name):>{width}} | {'#' * round(BAR * share)} {100 * share:.1f}% ({count})")
    return "\n".join(lines) + "\n"


def device_name(path: str) -> str:
    """The last part of a device's path."""
    return PurePosixPath(path).name or path


def _shown(name: str) -> str:
    return cut(name, 100) or "(none)"


def _sums(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, count in rows:
        sums[name] = sums.get(name, 0) + count
    return dict(sorted(sums.items()))
