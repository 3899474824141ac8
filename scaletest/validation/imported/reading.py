"""Read the result files of load tools."""

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any

from scaletest.documents.reader import read
from scaletest.model import wire
from scaletest.model.checks import cut_text, show_value
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.validation.imported.formats import FORMATS, Format, Paths
from scaletest.validation.imported.result import ToolResult

# Requests that are kept one by one make files long; a summary has some kilobytes.
MOST_BYTES = 64_000_000
UNITS_S = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "s": 1.0, "sec": 1.0}
TOOLS = ", ".join(dict.fromkeys(form.tool for form in FORMATS if form.tool != "table"))
LEAVE_OUT = "leave that file out, or measure it again"


def read_results(path: Path, axis: str, count: int = 0) -> list[ToolResult]:
    """Return the runs in a file. InvalidValue or UsageError name what is wrong with it.

    axis: what is counted, as in "replicas". count: how many there were; 0 for what the file or its
    name says. A file with several levels of load gives the one with the highest throughput.
    """
    results = []
    for document in _documents(path):
        form = _format_of(document, path)
        known = count or _count_in(document, form, axis, path) or _count_in_name(path, axis)
        if form.levels:
            rows = _at(document, form.levels)
            rows = rows if isinstance(rows, list) else []
            levels = [_result(row, form, path, known) for row in rows if isinstance(row, Mapping)]
            if not levels:
                raise InvalidValue(f"{path.name} contains no benchmark", hint=LEAVE_OUT)
            most = max(levels, key=lambda level: level.requests_per_s or 0.0)
            results.append(
                replace(most, levels=len(levels), version=_text(document, form, "version"))
            )
        else:
            results.append(_result(document, form, path, known))
    return results


def _documents(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a JSON, JSON lines, YAML or CSV file."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint=LEAVE_OUT) from error
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{path.name} is not text", hint=LEAVE_OUT) from error
    if len(data) > MOST_BYTES:
        raise InvalidValue(
            f"{path.name} is longer than {MOST_BYTES // 1_000_000} MB",
            hint="let the tool write its summary without single requests",
        )
    if path.suffix.lower() == ".csv":
        try:
            table = list(csv.DictReader(io.StringIO(text)))
        except csv.Error as error:
            raise InvalidValue(f"{path.name} is not CSV: {error}", hint=LEAVE_OUT) from error
        if not table:
            raise InvalidValue(f"{path.name} contains no result", hint=LEAVE_OUT)
        yield from table
        return
    lines = text.splitlines()
    try:
        if path.suffix.lower() in (".yaml", ".yml"):
            whole = read(text, path.name)
        elif len(lines) > 1 and all(line.startswith("{") and line.endswith("}") for line in lines):
            whole = [wire.load(line, f"a line of {path.name}") for line in lines]
        elif text.lstrip().startswith("["):
            # the reader takes objects
            whole = wire.load(f'{{"rows":{text}}}', path.name)["rows"]
        else:
            whole = wire.load(text, path.name)
    except InvalidValue as error:
        raise InvalidValue(error.message, hint=LEAVE_OUT) from error
    rows = whole if isinstance(whole, list) else [whole]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise InvalidValue(f"{path.name} contains no result", hint=LEAVE_OUT)
    yield from rows


def _format_of(document: Mapping[str, Any], path: Path) -> Format:
    for form in FORMATS:
        if all(_at(document, mark) is not None for mark in form.marks):
            return form
    raise InvalidValue(
        f"{path.name} has an unknown format",
        hint=f"give a result of {TOOLS}, or CSV or JSON with the columns n and throughput",
    )


def _result(document: Mapping[str, Any], form: Format, path: Path, count: int) -> ToolResult:
    """Return the result that a document of this format holds."""

    def number(places: Paths, least: float = 0.0) -> float | None:
        for place in places:
            value = _at(document, place)
            if value is not None and value != "inf":
                return _number(value, f"{place} of {path.name}", least)
        return None

    paths: Mapping[str, Paths] = defaultdict(tuple, form.paths)
    successes, errors = number(paths["successes"]), number(paths["errors"])
    requests = number(paths["requests"])
    if requests is not None:
        errors = errors if errors is not None else max(0.0, requests - (successes or 0.0))
        successes = successes if successes is not None else max(0.0, requests - errors)
    lengths = {}
    for side in ("input", "output"):
        tokens = number(paths[f"{side}_total"])
        mean = tokens / successes if tokens is not None and successes else None
        lengths[side] = number(paths[f"{side}_tokens"]) if mean is None else mean
    latencies = {}
    for name, place in form.latencies.items():
        latency = number((place,))
        if latency is not None:
            parent = place.rpartition(".")[0]
            unit = _at(document, f"{parent}.unit") or _at(document, f"{parent}.units")
            latencies[name] = latency * UNITS_S.get(str(unit), form.latency_unit_s)
    late = number(paths["late"], least=-math.inf)  # below 0 where the client was early by its clock
    return ToolResult(
        count=count,
        repeat=0,
        tool=form.tool,
        file=path.name,
        requests_per_s=number(paths["requests_per_s"]),
        tokens_per_s=number(paths["tokens_per_s"]),
        successes=successes,
        errors=errors,
        in_flight=number(paths["in_flight"]),
        offered_per_s=number(paths["offered_per_s"]),
        input_tokens=lengths["input"],
        output_tokens=lengths["output"],
        late_s=None if late is None else max(0.0, late) * form.late_unit_s,
        seed=number(paths["seed"]),
        model=_text(document, form, "model"),
        version=_text(document, form, "version"),
        latencies=latencies,
        repeats=max(1, int(number(paths["repeats"]) or 1)),
        deviation=number(paths["deviation"]) or 0.0,
    )


def _text(document: Mapping[str, Any], form: Format, name: str) -> str:
    """Return a text of the document; "" where it has none."""
    found = [_at(document, place) for place in form.paths.get(name, ())]
    return next((str(text) for text in found if text), "")


def _number(value: object, place: str, least: float = 0.0) -> float:
    """Return a number that may be written as text, as CSV and old files do."""
    found = math.nan
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            found = float(value)
        except (ValueError, OverflowError):
            found = math.nan
    if not math.isfinite(found) or found < least:
        raise InvalidValue(f"{place} is {show_value(value)}, not a number from 0", hint=LEAVE_OUT)
    return found


def _at(document: Any, path: str) -> Any:
    """Return what a path leads to; None where it leads nowhere."""
    value = document
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            row = int(part) if part.lstrip("-").isdecimal() else len(value)
            value = value[row] if -len(value) <= row < len(value) else None
        else:
            return None
    return value


def _count_in(document: Mapping[str, Any], form: Format, axis: str, path: Path) -> int:
    """Return how many there were by the file, as vLLM's --metadata or llm-d note it; else 0."""
    for place in (form.counts.get(axis), form.counts.get(""), axis):
        value = _at(document, place) if place else None
        if value is not None:
            number = _number(value, f"{place} of {path.name}")
            if number != int(number) or not 1 <= number <= 1_000_000:
                raise InvalidValue(
                    f"{place} of {path.name} is {show_value(value)}, not a count", hint=LEAVE_OUT
                )
            return int(number)
    return 0


def _count_in_name(path: Path, axis: str) -> int:
    """Return N of a name as in replicas-4.json, 4-replicas.json, n4.json or 4x.json; else 0."""
    word = rf"(?:{re.escape(axis)}|{re.escape(axis.removesuffix('s'))}|n)"
    for pattern in (
        rf"(?<![a-z]){word}[-_=]?(\d{{1,6}})(?!\d)",
        rf"(?<!\d)(\d{{1,6}})[-_]?(?:{word}(?![a-z])|x)",
    ):
        match = re.search(pattern, path.stem, re.IGNORECASE)
        if match:
            return int(match[1])
    return 0


def parse_label(text: str) -> tuple[int, list[Path]]:
    """Read N=FILE[,FILE...] into N and the files; InvalidValue on anything else.

    A file may be a pattern, which no shell replaces behind the equals sign.
    """
    number, equals, files = text.partition("=")
    if not equals or not re.fullmatch(r"0*[1-9][0-9]{0,5}", number):
        raise InvalidValue(
            f"{cut_text(text, 60)!r} is not N=FILE", hint="write e.g. 4=four.json,again.json"
        )
    names = [name for name in files.split(",") if name]
    files_of = [sorted(glob(name)) or [name] for name in names]  # noqa: PTH207 - also absolute ones
    return int(number), [Path(file) for found in files_of for file in found]
