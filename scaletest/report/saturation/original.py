"""The three CSV files of the original load tool, appended as it does: history.csv, timing.csv,
scaling.csv.

Columns are the same. A thread of theirs sends its records one after another: here that is one place
among the requests in flight, so MaxRecords and MinRecords are the most and fewest requests that one
place handled. RPS counts successes (there it counted what was planned), AITime is the mean latency
of successes in seconds, and a Response is one line of text, so that the file stays readable.
"""

from __future__ import annotations

import csv
import heapq
import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from scaletest.archive.saturation import StoredSaturation
from scaletest.model.attempt import UNSENT, Attempt
from scaletest.model.errors import UsageError
from scaletest.model.saturation import LoadKind, SaturationStep
from scaletest.render.text import cell

HISTORY = (
    "TestNo",
    "TestCountTotal",
    "ThreadCount",
    "Records",
    "Failures",
    "AITime",
    "TotalTime",
    "RPS",
    "MaxRecords",
    "MinRecords",
)
TIMING = ("Time", "Record", "PayloadSize", "Success", "Attempts", "Response", "TotalTime", "AiTime")
SCALING = ("Time", "Scale")
FILES = ("history.csv", "timing.csv", "scaling.csv")


def prepare(folder: Path) -> None:
    """Make the folder, before anything is measured. UsageError when nothing could be written
    there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            (folder / name).open("a", encoding="utf-8").close()
    except OSError as error:
        raise UsageError(f"--original-csv {folder} cannot be written: {error.strerror}") from error


def append(stored: StoredSaturation, folder: Path) -> None:
    """Append the run to the files in `folder`, which is made when it is not there. UsageError when
    it cannot be.
    """
    steps = stored.steps
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _append(
            folder / "history.csv", HISTORY, (_history(one, len(steps), stored) for one in steps)
        )
        _append(
            folder / "timing.csv", TIMING, (row for one in steps for row in _timing(one, stored))
        )
        _append(folder / "scaling.csv", SCALING, _scaling(steps))
    except OSError as error:
        raise UsageError(f"--original-csv {folder} cannot be written: {error.strerror}") from error


def _append(path: Path, titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    fresh = not path.exists() or path.stat().st_size == 0
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(titles)
        writer.writerows(rows)


def _history(step: SaturationStep, total: int, stored: StoredSaturation) -> list[Any]:
    final = [one for one in stored.samples.get(step.number, ()) if one.final]
    good = [one.latency_s for one in final if one.ok]
    long = max((one.ended_s for one in final), default=0.0)
    counts = _handled(step, stored.samples.get(step.number, ()))
    return [
        step.number + 1,
        total,
        f"{step.level:g}",
        len(final),
        len(final) - len(good),
        f"{sum(good) / len(good):.6f}" if good else "",
        f"{long:.6f}",
        f"{len(good) / long:.3f}" if long else "",
        max(counts, default=0),
        min(counts, default=0),
    ]


def _handled(step: SaturationStep, samples: Sequence[Attempt]) -> list[int]:
    """How many requests each place in flight handled, those of each agent apart.

    A request takes the place that has been free for longest, as under closed load the next one
    follows the one that ended; when none is free it opens another. What closed load keeps in flight
    is the number of places, used or not.
    """
    counts: list[int] = []
    agents = {one.agent for one in samples}
    for agent in sorted(agents):
        counts += _places([one for one in samples if one.agent == agent and one.outcome != UNSENT])
    unused = round(step.level) - len(counts) if step.load == LoadKind.CLOSED else 0
    return counts + [0] * unused


def _places(samples: Sequence[Attempt]) -> list[int]:
    """How many requests of one tester each of its places handled. With retries a request lasts
    until the last.
    """
    began: dict[int, float] = {}
    ended: dict[int, float] = {}
    for one in samples:
        began[one.request] = min(one.sent_s, began.get(one.request, math.inf))
        ended[one.request] = max(one.ended_s, ended.get(one.request, 0.0))
    counts: list[int] = []
    free: list[tuple[float, int]] = []  # since when, and which place
    for request in sorted(began, key=lambda number: (began[number], number)):
        if free and free[0][0] <= began[request]:
            _, place = heapq.heappop(free)
        else:
            place = len(counts)
            counts.append(0)
        counts[place] += 1
        heapq.heappush(free, (ended[request], place))
    return counts


def _timing(step: SaturationStep, stored: StoredSaturation) -> Iterable[list[Any]]:
    began = datetime.fromisoformat(step.began).astimezone() if step.began else None
    rows = stored.samples.get(step.number, ())
    attempts: dict[int, float] = {}
    for one in sorted(rows, key=lambda one: (one.request, one.attempt)):
        attempts.setdefault(one.request, one.sent_s)
        if not one.final:
            continue
        at = (began + timedelta(seconds=one.ended_s)).strftime("%H:%M:%S:%f")[:-3] if began else ""
        total, own = one.ended_s - attempts[one.request], one.ended_s - one.sent_s
        yield [
            at,
            one.request,
            one.payload,
            one.ok,
            one.attempt,
            cell(one.outcome),
            f"{total:.6f}",
            f"{own:.6f}",
        ]


def _scaling(steps: Sequence[SaturationStep]) -> Iterable[list[Any]]:
    """A line for each change of the level."""
    last = None
    for one in steps:
        if one.level != last:
            yield [one.began, f"{one.level:g}"]
        last = one.level
