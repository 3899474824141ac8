"""The three CSV files of the original load tool, appended as it does: history.csv, timing.csv, scaling.csv.

Columns are the same. RPS counts successes (there it counted what was planned), AITime is the mean latency of successes
in seconds, and a Response is one line of text, so that the file stays readable.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from scaletest.archive.saturation import StoredSaturation
from scaletest.model.errors import UsageError
from scaletest.model.sample import Sample
from scaletest.model.saturation import SaturationStep
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
    """Make the folder, before anything is measured. UsageError when nothing could be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            (folder / name).open("a", encoding="utf-8").close()
    except OSError as error:
        raise UsageError(f"--original-csv {folder} cannot be written: {error.strerror}") from error


def append(stored: StoredSaturation, folder: Path) -> None:
    """Append the run to the files in `folder`, which is made when it is not there. UsageError when it cannot be."""
    steps = stored.steps
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _append(folder / "history.csv", HISTORY, (_history(one, len(steps), stored) for one in steps))
        _append(folder / "timing.csv", TIMING, (row for one in steps for row in _timing(one, stored)))
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
    most, least = _shares(final)
    return [
        step.number + 1,
        total,
        f"{step.level:g}",
        len(final),
        len(final) - len(good),
        f"{sum(good) / len(good):.6f}" if good else "",
        f"{long:.6f}",
        f"{len(good) / long:.3f}" if long else "",
        most,
        least,
    ]


def _shares(final: Sequence[Sample]) -> tuple[int, int]:
    """Most and fewest records that one agent handled; ours have no threads, so one agent handles all."""
    counts: dict[str, int] = {}
    for one in final:
        counts[one.agent] = counts.get(one.agent, 0) + 1
    return max(counts.values(), default=0), min(counts.values(), default=0)


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
        yield [at, one.request, one.size, one.ok, one.attempt, cell(one.outcome), f"{total:.6f}", f"{own:.6f}"]


def _scaling(steps: Sequence[SaturationStep]) -> Iterable[list[Any]]:
    """A line for each change of the level."""
    last = None
    for one in steps:
        if one.level != last:
            yield [one.began, f"{one.level:g}"]
        last = one.level
