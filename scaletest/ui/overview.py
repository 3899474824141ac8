"""The page Overview: what all queues, workers and devices of a Redis do at this moment."""

import shlex
from itertools import chain
from typing import Any

from flask import Response, g, render_template
from flask.typing import ResponseReturnValue

from scaletest.model.checks import QUEUE_NAME
from scaletest.model.errors import Unreachable
from scaletest.pages.site import READ
from scaletest.ui import rows
from scaletest.ui.reading import Reading, reader

# Of workers and devices; the page of a queue has all workers.
MOST_ROWS = 50


def overview() -> ResponseReturnValue:
    """Show the page; 503 while Redis is away."""
    source = reader()
    if source is None:
        return render_template("overview.html", title="Overview", reading=None, error=None)
    try:
        reading = source.read()
    except Unreachable as error:
        return render_template("overview.html", title="Overview", reading=None, error=error), 503

    def make() -> bytes:
        return render_template("overview.html", title="Overview", **context(reading)).encode(
            errors="replace"
        )

    return Response(reading.pages.page(g.root, (), make), mimetype="text/html")


def context(reading: Reading) -> dict[str, Any]:
    """Collect what the template shows."""
    queue_rows = rows.queue_rows(reading)
    workers = rows.urgent_first(chain.from_iterable(row.workers for row in queue_rows))
    samples = chain.from_iterable(reading.samples.values())
    problems = []
    for name, why in reading.snapshot.unreadable:
        # an entry may be no queue at all
        remedy = f"scaletest queue remove -- {shlex.quote(name)}"
        if QUEUE_NAME.fullmatch(name):
            remedy = f"scaletest queue check {name}"
        problems.append(
            rows.Problem(
                rows.BAD, "unreadable", name, f"it cannot be read and is left out: {why}", remedy
            )
        )
    problems += chain.from_iterable(row.problems for row in queue_rows)
    return {
        "reading": reading,
        "error": None,
        "queue_rows": queue_rows,
        "workers": workers,
        "devices": rows.device_rows(reading.snapshot.queues, samples),
        "problems": sorted(problems, key=lambda problem: problem.level != rows.BAD),
        "most": MOST_ROWS,
        "busy": sum(row.worker.busy for row in workers),
    }


ROUTES = (("/", READ, overview),)
