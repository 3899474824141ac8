"""The pages of queues: the overview of a Redis, and one queue.

They only read: commands are shown for who wants more.
"""

import shlex
from itertools import chain
from typing import Any

from flask import render_template
from flask.typing import ResponseReturnValue

from scaletest.broker import keys
from scaletest.broker.failures import recent_failure_groups
from scaletest.model import histogram
from scaletest.model.checks import QUEUE_NAME
from scaletest.model.errors import Unreachable
from scaletest.pages.site import READ, page_of, printable_line
from scaletest.ui import rows
from scaletest.ui.activity_chart import draw_activity
from scaletest.ui.reading import Reading, reader

# Of workers and devices in the overview; the page of a queue has all workers.
MOST_ROWS = 50
PAGE_WORKERS = 200
SHARES = {"median": 0.5, "90 %": 0.9, "95 %": 0.95, "99 %": 0.99}
# The queue's accounts, and what its other counters mean.
BOOKS = ("submitted", "succeeded", "failed", "timed_out", "client_gone", "purged")
OTHERS = {
    "rejected": "refused because the queue was full",
    "requeued": "times that a request went back because its worker died",
    "lost": "failed because their workers died at every attempt",
    "poison": "failed because they could not be read",
    "stale": "results dropped because another worker had taken the request again",
    "undelivered": "replies without a receiver",
}


def overview() -> ResponseReturnValue:
    """Show all queues, workers and devices, and what needs attention; 503 while Redis is away."""
    source = reader()
    if source is None:
        return render_template("overview.html", title="Overview", reading=None, error=None)
    try:
        reading = source.read()
    except Unreachable as error:
        return render_template("overview.html", title="Overview", reading=None, error=error), 503
    return render_template("overview.html", title="Overview", **overview_context(reading))


def overview_context(reading: Reading) -> dict[str, Any]:
    """Collect what the overview shows of a reading, the most urgent first."""
    queue_rows = rows.queue_rows(reading)
    workers = rows.urgent_first(chain.from_iterable(row.workers for row in queue_rows))
    samples = chain.from_iterable(reading.samples.values())
    problems = []
    for name, why in reading.snapshot.unreadable:
        text = f"it cannot be read and is left out: {why}"
        command = f"redis-cli hdel {keys.QUEUES} {shlex.quote(name)}"
        if QUEUE_NAME.fullmatch(name):
            command = f"scaletest queue check {name}"
        problems.append(rows.Problem(rows.BAD, "unreadable", name, text, command))
    problems += chain.from_iterable(row.problems for row in queue_rows)
    return {
        "reading": reading,
        "error": None,
        "activity": draw_activity(reading.snapshot.queues, reading.snapshot.at_s),
        "queue_rows": queue_rows,
        "workers": workers,
        "devices": rows.device_rows(reading.snapshot.queues, samples),
        "problems": sorted(problems, key=lambda problem: problem.level != rows.BAD),
        "most": MOST_ROWS,
        "busy": sum(row.worker.busy for row in workers),
    }


def queue(path: str) -> ResponseReturnValue:
    """Show a queue; 503 while Redis is away. path: its name, which may have slashes."""
    source = reader()
    title = f"Queue {printable_line(path)}"
    if source is None:
        return render_template("queue.html", title=title, reading=None, error=None)
    try:
        reading = source.read()
        snapshot = reading.queue(path)
        failed = source.failures(path) if snapshot else []
    except Unreachable as error:
        return render_template("queue.html", title=title, reading=None, error=error), 503
    if snapshot is None:
        reason = dict(reading.snapshot.unreadable).get(path)
        trouble = "is not declared" if reason is None else f"cannot be read: {reason}"
        return render_template(
            "message.html", title="No such queue", text=f"{title} {trouble}."
        ), 404
    samples = reading.samples.get(path, [])
    row = rows.queue_row(snapshot, reading)
    workers = rows.urgent_first(row.workers)
    page, pages = page_of(len(workers), PAGE_WORKERS)
    # times of requests that ended: how many, their mean and percentiles in seconds, and the longest
    # of the last minute
    times = []
    for name, counts, longest_s in (
        ("Wait in the queue", row.queue.ended.wait, row.window.max_wait_s),
        ("Run", row.queue.ended.run, row.window.max_run_s),
    ):
        total = sum(counts.values())
        mean_s = histogram.total_s(counts) / total if total else None
        percentiles_s = [histogram.histogram_quantile(counts, share) for share in SHARES.values()]
        times.append((name, total, [mean_s, *percentiles_s, longest_s]))
    return render_template(
        "queue.html",
        title=f"Queue {path}",
        reading=reading,
        error=None,
        row=row,
        books=[(word, snapshot.counter(word)) for word in BOOKS],
        others=[(word, snapshot.counter(word), text) for word, text in OTHERS.items()],
        times=times,
        shares=SHARES,
        failures=failed,
        groups=recent_failure_groups(failed),
        workers=workers[(page - 1) * PAGE_WORKERS : page * PAGE_WORKERS],
        number_of_workers=len(workers),
        page=page,
        pages=pages,
        devices=rows.device_rows([snapshot], samples),
        nodes=sorted(samples, key=lambda sample: sample.node),
        at_s=snapshot.at_s,
        most=200,
        commands=[
            (f"scaletest queue resume {path}", "workers take requests again")
            if snapshot.paused
            else (
                f"scaletest queue pause {path}",
                "workers take nothing more; running requests finish",
            ),
            (f"scaletest queue purge {path}", "drop every waiting request"),
            (f"scaletest queue check {path}", "check that the books balance"),
            (f"scaletest queue show {path} --format json", "everything for programs"),
        ],
    )


ROUTES = (("/", READ, overview), ("/queues/<path:path>", READ, queue))
