"""Statistics as plain text, for terminals and scripts. Pure."""

from collections.abc import Iterable
from itertools import chain

from scaletest.load.snapshot import LoadSnapshot
from scaletest.model.checks import cut_text
from scaletest.render.text import device_name

# Characters of the longest bar.
BAR_CHARACTERS = 60
TITLE = "Overall request / reply statistics"
NODES = "Backend / worker node statistics"
PODS = "Per-node backend / worker pod statistics"
TIMINGS = (
    ("run", 1, "backend run time"),
    ("wait", 1, "queue wait time"),
    ("overhead", 3, "communication overhead"),
)
# Scripts read these texts, so they stay as the original client wrote them.
NO_STATISTICS = "No statistics for nodes"
NO_REPLIES = "No such replies => fails happened in communication, not running workloads"


def overall_text(snapshot: LoadSnapshot, completed: int, rejected: int) -> str:
    """Write the overall statistics; `completed` and `rejected` count HTTP queries."""
    # what the load is, and how its requests ended
    lines = [TITLE, "=" * len(TITLE), "", f"Sending {snapshot.parallel} requests in parallel.", ""]
    if snapshot.load != "closed":
        lines[3] = f"Load: {snapshot.load}, at most {snapshot.maximum} requests in parallel."
    lines.append(
        f"{snapshot.in_flight} pending, {snapshot.failed} failed and {snapshot.succeeded}"
        f" successful requests in {snapshot.elapsed_s:.1f} seconds."
    )
    # times, where there are any
    if snapshot.succeeded:
        lines += [f"= {snapshot.per_s:.2f} successfully completed requests / second.", ""]
        lines.append("Max / average / min timings (in seconds, for successful requests):")
        percentile_lines = []
        for name, digits, title in TIMINGS:
            times = snapshot.times[name]
            texts = [f"{s or 0.0:.{digits}f}" for s in (times.high_s, times.mean_s, times.low_s)]
            lines.append(f"- {' / '.join(texts)} - {title}")
            quantiles = (times.quantiles_s[key] for key in ("p50", "p90", "p95", "p99"))
            texts = ["n/a" if time_s is None else f"{time_s:.3g}" for time_s in quantiles]
            percentile_lines.append(f"- {' / '.join(texts)} - {title}")
        lines += [
            "",
            "Percentiles 50 / 90 / 95 / 99 (in seconds, within 1 %; n/a: too few requests):",
            *percentile_lines,
        ]
    lines += ["", f"HTTP queries: {completed} completed, {rejected} rejected in total."]
    return "\n".join(lines) + "\n"


def nodes_text(snapshot: LoadSnapshot) -> str:
    """Write successes and failures by node, then by device of each node, with the errors there."""
    names = _node_names(snapshot)
    if not names:
        return _with_title(NODES, f"{NO_STATISTICS}\n{_unlisted_counts(snapshot)}")
    blocks = [_draw_bars("Node", "Success replies:", _by_node(snapshot, "succeeded"))]
    if snapshot.failed:
        failures = _by_node(snapshot, "failed")
        bars = _draw_bars("Node", "Failure replies:", failures)
        blocks.append(bars if any(failures.values()) else f"{bars}{NO_REPLIES}\n")
    for node in names:
        content = [_success_bars(snapshot, node, "Device")]
        errors = [
            f"- {failure.nodes[node]}: {cut_text(failure.error or failure.outcome, 500)}\n"
            for failure in snapshot.failures
            if node in failure.nodes
        ]
        if errors:
            content.append("".join(["Node errors (count / description):\n", *errors]))
        blocks.append(_with_title(f"Node: {_name_text(node)}", "\n".join(filter(None, content))))
    return _with_title(NODES, "\n".join(filter(None, [*blocks, _unlisted_counts(snapshot)])))


def pods_text(snapshot: LoadSnapshot) -> str:
    """Write successes by pod of each node."""
    blocks = [
        _with_title(f"Node: {_name_text(node)}", _success_bars(snapshot, node, "Pod"))
        for node in _node_names(snapshot)
    ]
    parts = [*(blocks or [f"{NO_STATISTICS}\n"]), _unlisted_counts(snapshot)]
    return _with_title(PODS, "\n".join(filter(None, parts)))


def _node_names(snapshot: LoadSnapshot) -> list[str]:
    """Return the names of the nodes that replied, sorted."""
    failing = chain.from_iterable(failure.nodes for failure in snapshot.failures)
    return sorted({*_by_node(snapshot, "succeeded"), *failing} - {""})


def _by_node(snapshot: LoadSnapshot, outcome: str) -> dict[str, int]:
    """Return counts of succeeded or failed requests by node, in the order of their names."""
    return _sum_by_name(
        (counts.place.node, getattr(counts, outcome))
        for counts in snapshot.places
        if counts.place.node
    )


def _success_bars(snapshot: LoadSnapshot, node: str, kind: str) -> str:
    """Draw successes by device or pod of a node; "" without any. A nameless device is a dot."""
    successes = []
    for counts in snapshot.places:
        if counts.place.node == node and counts.succeeded:
            name = counts.place.pod if kind == "Pod" else device_name(counts.place.device) or "."
            successes.append((name, counts.succeeded))
    sums = dict(sorted(_sum_by_name(successes).items(), reverse=True))
    return _draw_bars(kind, "Completed requests:", sums) if sums else ""


def _unlisted_counts(snapshot: LoadSnapshot) -> str:
    """Write the counts of places and failures that are too old to be listed; "" without any."""
    lines = []
    other_succeeded, other_failed = snapshot.other_places
    if other_succeeded or other_failed:
        lines.append(
            f"Elsewhere, too long ago to be listed: {other_succeeded} succeeded, {other_failed}"
            " failed\n"
        )
    if snapshot.other_failures:
        lines.append(f"{snapshot.other_failures} failures of kinds too long ago to be listed\n")
    return "".join(lines)


def _with_title(title: str, content: str) -> str:
    return f"{title}\n{'=' * len(title)}\n\n{content}"


def _draw_bars(left: str, right: str, counts: dict[str, int]) -> str:
    """Draw a bar for each name by its share of all counts, below these two titles."""
    width = max([len(left), *(len(_name_text(name)) for name in counts)])
    total = sum(counts.values()) or 1
    lines = [f"{left:>{width}} | {right}", f"{'-' * (width + 1)}+{'-' * (len(right) + 1)}"]
    for name, count in counts.items():
        share = count / total
        lines.append(
            f"{_name_text(name):>{width}} | {'#' * round(BAR_CHARACTERS * share)}"
            f" {100 * share:.1f}% ({count})"
        )
    return "\n".join(lines) + "\n"


def _name_text(name: str) -> str:
    return cut_text(name, 100) or "(none)"


def _sum_by_name(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sum the counts by name, sorted."""
    sums: dict[str, int] = {}
    for name, count in counts:
        sums[name] = sums.get(name, 0) + count
    return dict(sorted(sums.items()))
