"""Statistics as plain text, for terminals and scripts. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from scaletest.load.bounded_counts import DurationSummary
from scaletest.load.statistics import LoadSnapshot
from scaletest.model.checks import cut
from scaletest.render.text import device_name

BAR = 60
TITLE = "Overall request / reply statistics"
TIMINGS = (
    ("run", 1, "backend run time"),
    ("wait", 1, "queue wait time"),
    ("overhead", 3, "communication overhead"),
)
# Scripts read these texts, so they stay as the original client wrote them.
NO_REPLIES = "No such replies => fails happened in communication, not running workloads"


def stats(snapshot: LoadSnapshot, completed: int, rejected: int) -> str:
    """The overall statistics; `completed` and `rejected` count HTTP queries."""
    lines = [TITLE, "=" * len(TITLE), "", f"Sending {snapshot.parallel} requests in parallel.", ""]
    if snapshot.load != "closed":
        lines[3] = f"Load: {snapshot.load}, at most {snapshot.maximum} requests in parallel."
    lines.append(
        f"{snapshot.in_flight} pending, {snapshot.failed} failed and {snapshot.succeeded}"
        f" successful requests in {snapshot.elapsed_s:.1f} seconds."
    )
    if snapshot.succeeded:
        lines += [f"= {snapshot.per_s:.2f} successfully completed requests / second.", ""]
        lines.append("Max / average / min timings (in seconds, for successful requests):")
        lines += [_timing(snapshot.times[name], digits, title) for name, digits, title in TIMINGS]
        lines += [
            "",
            "Percentiles 50 / 90 / 95 / 99 (in seconds, within 1 %; n/a: too few requests):",
        ]
        lines += [_percentiles(snapshot.times[name], title) for name, _, title in TIMINGS]
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
    if failed:
        return _sums((counts.place.node, counts.failed) for counts in snapshot.places)
    return _sums((counts.place.node, counts.succeeded) for counts in snapshot.places)


def _timing(times: DurationSummary, digits: int, title: str) -> str:
    seconds = (times.high_s or 0.0, times.mean_s or 0.0, times.low_s or 0.0)
    return f"- {' / '.join(f'{time_s:.{digits}f}' for time_s in seconds)} - {title}"


def _percentiles(times: DurationSummary, title: str) -> str:
    texts = (_seconds_text(times.quantiles_s[name]) for name in ("p50", "p90", "p95", "p99"))
    return f"- {' / '.join(texts)} - {title}"


def _seconds_text(seconds: float | None) -> str:
    return "n/a" if seconds is None else f"{seconds:.3g}"


def _spread(snapshot: LoadSnapshot, kind: str) -> str:
    nodes = {node: count for node, count in by_node(snapshot).items() if count}
    blocks = [_bars("Node", "Success replies:", nodes)]
    for node in nodes:
        places = [
            counts for counts in snapshot.places if counts.place.node == node and counts.succeeded
        ]
        if kind == "Pod":
            sums = _sums((counts.place.pod, counts.succeeded) for counts in places)
        else:
            sums = _sums((device_name(counts.place.device), counts.succeeded) for counts in places)
        title = f"Node: {_shown(node)}"
        counts = dict(sorted(sums.items(), reverse=True))
        blocks.append(
            f"{title}\n{'=' * len(title)}\n\n{_bars(kind, 'Completed requests:', counts)}"
        )
    other_succeeded, other_failed = snapshot.other_places
    if other_succeeded or other_failed:
        blocks.append(
            f"Elsewhere, too long ago to be listed: {other_succeeded} succeeded, {other_failed}"
            " failed\n"
        )
    if snapshot.failed:
        blocks += _failures(snapshot)
    return "\n".join(blocks)


def _failures(snapshot: LoadSnapshot) -> list[str]:
    counts = {
        node: count for node, count in by_node(snapshot, failed=True).items() if count and node
    }
    blocks = [
        _bars("Node", "Failure replies:", counts) if counts else f"Failure replies:\n{NO_REPLIES}\n"
    ]
    counted = [(failure, failure.nodes) for failure in snapshot.failures]
    for node in sorted(set(chain.from_iterable(nodes for _, nodes in counted))):
        lines = [
            f"- {nodes[node]} / {cut(failure.error or failure.outcome, 500)}"
            for failure, nodes in counted
            if node in nodes
        ]
        title = f"Node: {_shown(node)}"
        blocks.append(
            "\n".join([title, "=" * len(title), "", "Node errors (count / description):", *lines])
            + "\n"
        )
    if snapshot.other_failures:
        blocks.append(f"{snapshot.other_failures} failures of kinds too long ago to be listed\n")
    return blocks


def _bars(left: str, right: str, counts: dict[str, int]) -> str:
    width = max([len(left), *(len(_shown(name)) for name in counts)])
    total = sum(counts.values()) or 1
    lines = [f"{left:>{width}} | {right}", f"{'-' * (width + 1)}+{'-' * (len(right) + 1)}"]
    for name, count in counts.items():
        share = count / total
        lines.append(
            f"{_shown(name):>{width}} | {'#' * round(BAR * share)} {100 * share:.1f}% ({count})"
        )
    return "\n".join(lines) + "\n"


def _shown(name: str) -> str:
    return cut(name, 100) or "(none)"


def _sums(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sums by name, sorted."""
    sums: dict[str, int] = {}
    for name, count in counts:
        sums[name] = sums.get(name, 0) + count
    return dict(sorted(sums.items()))
