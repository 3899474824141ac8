"""The load tool of the load-testing article: its configuration file, as settings of ours, and its
three CSV files, appended as it does.

    execution.autoScaling              mode: search, else sweep          (always closed load)
    execution.autoScaleIncrement       increment of the ramp             threadStep: of the sweep
    execution.threadCount, maxThreadCount      start, maximum
    execution.testCountPerThreadStep   repeats of a level; of a search: most_steps
    execution.retryCount               attempts, so retries + 1
    execution.clientName               client_name
    logDirectory                       original_csv
    defaultProvider.endpointUrl, fileInput, recordCount       url, payload, count
    recordProvider.local.localFile, recordCount               payload_provider file:, count

Keys (endpointKey, storageKey, connectionString) are secrets and stay out of files: --token-file
replaces the first, and nothing here needs the others.

Columns of history.csv, timing.csv and scaling.csv are the same. A thread of that tool sends its
records one after another: here that is one place among the requests in flight, so MaxRecords and
MinRecords are the most and fewest requests that one place handled. RPS counts successes (there it
counted what was planned), AITime is the mean latency of successes in seconds, and a Response is one
line of text, so that the file stays readable.
"""

from __future__ import annotations

import csv
import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.saturation import UNSENT, Attempt, LoadKind, SaturationStep
from scaletest.render.text import cell

SECTIONS = {
    "execution",
    "logDirectory",
    "recordProviderDiskLocation",
    "recordProvider",
    "defaultProvider",
    "eventHubConfiguration",
}
_EXECUTION = {
    "autoScaling",
    "autoScaleIncrement",
    "threadCount",
    "maxThreadCount",
    "threadStep",
    "testCountPerThreadStep",
    "testCountPerThread",
    "retryCount",
    "clientName",
}
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


def is_settings(data: Mapping[str, Any]) -> bool:
    """Whether it is that tool's configuration file."""
    return "execution" in data or "defaultProvider" in data or "recordProvider" in data


def settings(data: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the names of our options. InvalidValue or UsageError says which key has no
    equivalent.
    """
    strange = set(data) - SECTIONS
    if strange:
        raise InvalidValue(
            f"{min(strange)!r} is no key of the article's tool",
            hint=f"it has {', '.join(sorted(SECTIONS))}",
        )
    values: dict[str, Any] = {"load": "closed", **_execution(_table(data, "execution"))}
    if data.get("logDirectory"):
        values["original_csv"] = str(data["logDirectory"])
    if data.get("recordProviderDiskLocation"):
        raise UsageError(
            "recordProviderDiskLocation names plug-ins of .NET",
            hint=(
                "write a provider in Python, an entry point of the group scaletest.payloads, and"
                " name it"
            ),
        )
    if any(_table(data, "eventHubConfiguration").values()):
        raise UsageError(
            "an event hub is not used here",
            hint="leave it empty: agents merge by themselves, and the run keeps their records",
        )
    return {
        **values,
        **_default(_table(data, "defaultProvider")),
        **_record(_table(data, "recordProvider")),
    }


def _execution(row: dict[str, Any]) -> dict[str, Any]:
    strange = set(row) - _EXECUTION
    if strange:
        raise InvalidValue(f"execution.{min(strange)} is no key of the article's tool")
    auto = row.get("autoScaling", False)
    if not isinstance(auto, bool):
        raise InvalidValue("execution.autoScaling is neither true nor false")
    values: dict[str, Any] = {"mode": "search" if auto else "sweep", **_levels(row, auto)}
    runs = _number(row, "execution", "testCountPerThreadStep", "testCountPerThread")
    if runs:
        values["most_steps" if auto else "repeats"] = max(3, min(runs, 100)) if auto else runs
    attempts = _number(row, "execution", "retryCount")
    if attempts is not None:
        values["retries"] = max(0, attempts - 1)
    if row.get("clientName"):
        values["client_name"] = str(row["clientName"])
    return values


def _levels(row: dict[str, Any], auto: bool) -> dict[str, float]:
    start = _number(row, "execution", "threadCount") or 1
    maximum = max(start, _number(row, "execution", "maxThreadCount") or 0)
    step = _number(row, "execution", "autoScaleIncrement" if auto else "threadStep")
    if step:
        return {"start": float(start), "maximum": float(maximum), "increment": float(step)}
    return {"start": float(start), "maximum": float(maximum if auto else start)}


def _default(row: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if row.get("endpointKey"):
        raise UsageError(
            "a key in a plan file is a secret that others read",
            hint="remove it, and give --token-file FILE",
        )
    if row.get("endpointUrl"):
        values["url"] = str(row["endpointUrl"])
    if row.get("fileInput"):
        values |= {"payload": str(row["fileInput"]), "method": "POST"}
    count = _number(row, "defaultProvider", "recordCount")
    return {**values, **({"count": count} if count else {})}


def _record(row: dict[str, Any]) -> dict[str, Any]:
    if any(_table(row, "storage").values()):
        raise UsageError(
            "recordProvider.storage is of one cloud",
            hint="write a provider of the group scaletest.payloads for it",
        )
    file = _table(row, "local").get("localFile")
    count = _number(row, "recordProvider", "recordCount")
    values: dict[str, Any] = {"payload_provider": f"file:{file}", "method": "POST"} if file else {}
    return {**values, **({"count": count} if count and file else {})}


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    values = data.get(name) or {}
    if not isinstance(values, dict):
        raise InvalidValue(f"{name} is no table of keys and values")
    return values


def _number(row: Mapping[str, Any], where: str, *names: str) -> int | None:
    for name in names:
        value = row.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10_000_000:
            raise InvalidValue(
                f"{where}.{name} is {value!r:.40}", hint="give a whole number from 0"
            )
        return value
    return None


def prepare(folder: Path) -> None:
    """Make the folder, before anything is measured. UsageError when nothing could be written
    there.
    """
    with _writing(folder):
        for name in FILES:
            (folder / name).open("a", encoding="utf-8").close()


def append(
    folder: Path, steps: Sequence[SaturationStep], samples: Mapping[int, Sequence[Attempt]]
) -> None:
    """Append a run to the three files of a folder, which are made when they are not there.

    samples: by the step's number. UsageError when they cannot be written.
    """
    measured = [(step, samples.get(step.number, ())) for step in steps]
    history = [_history(step, len(steps), attempts) for step, attempts in measured]
    timing = itertools.chain.from_iterable(itertools.starmap(_timing, measured))
    tables = ((HISTORY, history), (TIMING, timing), (SCALING, _scaling(steps)))
    with _writing(folder):
        for name, (titles, rows) in zip(FILES, tables, strict=True):
            _append(folder / name, titles, rows)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Make the folder; UsageError when it, or what the block writes there, cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UsageError(f"--original-csv {folder} cannot be written: {error.strerror}") from error


def _append(path: Path, titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    fresh = not path.exists() or path.stat().st_size == 0
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(titles)
        writer.writerows(rows)


def _history(step: SaturationStep, total: int, attempts: Sequence[Attempt]) -> list[Any]:
    final = [attempt for attempt in attempts if attempt.final]
    good = [attempt.latency_s for attempt in final if attempt.ok]
    longest_s = max((attempt.ended_s for attempt in final), default=0.0)
    counts = _handled(step, attempts)
    return [
        step.number + 1,
        total,
        f"{step.level:g}",
        len(final),
        len(final) - len(good),
        f"{sum(good) / len(good):.6f}" if good else "",
        f"{longest_s:.6f}",
        f"{len(good) / longest_s:.3f}" if longest_s else "",
        max(counts, default=0),
        min(counts, default=0),
    ]


def _handled(step: SaturationStep, attempts: Sequence[Attempt]) -> list[int]:
    """How many requests each place in flight handled, those of each agent apart.

    A request takes the place that has been free for longest, as under closed load the next one
    follows the one that ended; when none is free it opens another. What closed load keeps in flight
    is the number of places, used or not.
    """
    sent: dict[str, list[Attempt]] = {attempt.agent: [] for attempt in attempts}
    for attempt in attempts:
        if attempt.outcome != UNSENT:
            sent[attempt.agent].append(attempt)
    counts = list(itertools.chain.from_iterable(_places(sent[agent]) for agent in sorted(sent)))
    unused = round(step.level) - len(counts) if step.load == LoadKind.CLOSED else 0
    return counts + [0] * unused


def _places(attempts: Sequence[Attempt]) -> list[int]:
    """How many requests of one tester each of its places handled. With retries a request lasts
    until the last.
    """
    began: dict[int, float] = {}
    ended: dict[int, float] = {}
    for attempt in attempts:
        number = attempt.request
        began[number] = min(attempt.sent_s, began.get(number, math.inf))
        ended[number] = max(attempt.ended_s, ended.get(number, 0.0))
    counts: list[int] = []
    free: list[tuple[float, int]] = []  # since when, and which place
    for number in sorted(began, key=lambda number: (began[number], number)):
        if free and free[0][0] <= began[number]:
            _, place = heapq.heappop(free)
        else:
            place = len(counts)
            counts.append(0)
        counts[place] += 1
        heapq.heappush(free, (ended[number], place))
    return counts


def _timing(step: SaturationStep, attempts: Sequence[Attempt]) -> Iterable[list[Any]]:
    began = datetime.fromisoformat(step.began).astimezone() if step.began else None
    first_sent_s: dict[int, float] = {}
    for attempt in sorted(attempts, key=lambda attempt: (attempt.request, attempt.attempt)):
        first_sent_s.setdefault(attempt.request, attempt.sent_s)
        if not attempt.final:
            continue
        ended = began + timedelta(seconds=attempt.ended_s) if began else None
        yield [
            ended.strftime("%H:%M:%S:%f")[:-3] if ended else "",
            attempt.request,
            attempt.payload,
            attempt.ok,
            attempt.attempt,
            cell(attempt.outcome),
            f"{attempt.ended_s - first_sent_s[attempt.request]:.6f}",
            f"{attempt.ended_s - attempt.sent_s:.6f}",
        ]


def _scaling(steps: Sequence[SaturationStep]) -> Iterable[list[Any]]:
    """A line for each change of the level."""
    level = None
    for step in steps:
        if step.level != level:
            yield [step.began, f"{step.level:g}"]
        level = step.level
