"""Read the result files of load tools."""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any

from scaletest.documents.reader import read, text_of
from scaletest.model import wire
from scaletest.model.checks import cut_text, show_value
from scaletest.model.errors import InvalidValue
from scaletest.validation.imported.formats import FORMATS, Format
from scaletest.validation.imported.result import ToolResult

# Requests that are kept one by one make files long; a summary has some kilobytes.
MOST_BYTES = 64_000_000
UNITS_S = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "s": 1.0, "sec": 1.0}
TOOLS = ", ".join(dict.fromkeys(form.tool for form in FORMATS if form.tool != "table"))
LEAVE_OUT = "leave that file out, or measure it again"


def read_results(path: Path, axis: str, count: int = 0) -> list[ToolResult]:
    """Return the runs in a file. UsageError where it cannot be read, InvalidValue for its content.

    axis: what is counted, as in "replicas". count: how many there were; 0 for what the file or its
    name says. A file with several levels of load gives the one with the highest throughput.
    """
    results = []
    for document in _documents(path):
        form = _format_of(document, path)
        known = count or _count_in(document, form, axis, path) or _count_in_name(path, axis)
        if form.levels:
            rows = _value_at(document, form.levels)
            rows = rows if isinstance(rows, list) else []
            levels = [_result(row, form, path, known) for row in rows if isinstance(row, Mapping)]
            if not levels:
                raise InvalidValue(f"{path.name} contains no benchmark", hint=LEAVE_OUT)
            fastest = max(levels, key=lambda level: level.requests_per_s or 0.0)
            version = _text(document, form, "version")
            results.append(replace(fastest, levels=len(levels), version=version))
        else:
            results.append(_result(document, form, path, known))
    return results


def _documents(path: Path) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a JSON, JSON lines, YAML or CSV file, one at least."""
    text = text_of(path, path.name, LEAVE_OUT, MOST_BYTES)
    suffix = path.suffix.lower()
    lines = text.splitlines()
    try:
        if suffix == ".csv":
            documents = list(csv.DictReader(io.StringIO(text)))
        elif suffix in (".yaml", ".yml"):
            documents = [read(text, path.name)]
        elif len(lines) > 1 and all(line.startswith("{") and line.endswith("}") for line in lines):
            documents = [wire.load(line, f"a line of {path.name}") for line in lines]
        elif text.lstrip().startswith("["):
            # the reader takes objects
            documents = wire.load(f'{{"rows":{text}}}', path.name)["rows"]
        else:
            documents = [wire.load(text, path.name)]
    except csv.Error as error:
        raise InvalidValue(f"{path.name} is not CSV: {error}", hint=LEAVE_OUT) from error
    except InvalidValue as error:
        raise InvalidValue(error.message, hint=LEAVE_OUT) from error
    if not documents or not all(isinstance(document, dict) for document in documents):
        raise InvalidValue(f"{path.name} contains no result", hint=LEAVE_OUT)
    return documents


def _format_of(document: Mapping[str, Any], path: Path) -> Format:
    for form in FORMATS:
        if all(_value_at(document, mark) is not None for mark in form.marks):
            return form
    raise InvalidValue(
        f"{path.name} has an unknown format",
        hint=f"give a result of {TOOLS}, or CSV or JSON with the columns n and throughput",
    )


def _result(document: Mapping[str, Any], form: Format, path: Path, count: int) -> ToolResult:
    """Return the result that a document of this format holds."""

    def number_at(place: str, least: float = 0.0) -> float | None:
        value = _value_at(document, place)
        if value is None or value == "inf":  # an unlimited rate is closed load
            return None
        return _number(value, f"{place} of {path.name}", least)

    def number(name: str, least: float = 0.0) -> float | None:
        numbers = (number_at(place, least) for place in form.paths.get(name, ()))
        return next((found for found in numbers if found is not None), None)

    # what succeeded and what failed, of which some files have one, and all requests
    successes, errors, requests = number("successes"), number("errors"), number("requests")
    if requests is not None:
        errors = errors if errors is not None else max(0.0, requests - (successes or 0.0))
        successes = successes if successes is not None else max(0.0, requests - errors)

    # lengths of prompts and answers: means, or totals of all successful requests
    lengths = {}
    for side in ("input", "output"):
        tokens = number(f"{side}_total")
        lengths[side] = number(f"{side}_tokens")
        if tokens is not None and successes:
            lengths[side] = tokens / successes

    latencies = {}
    for name, place in form.latencies.items():
        latency = number_at(place)
        if latency is not None:
            parent = place.rpartition(".")[0]
            unit = _value_at(document, f"{parent}.unit") or _value_at(document, f"{parent}.units")
            latencies[name] = latency * UNITS_S.get(str(unit), form.latency_unit_s)

    # below 0 where the client was early by its clock
    late = number("late", least=-math.inf)
    return ToolResult(
        count=count,
        repeat=0,
        tool=form.tool,
        file=path.name,
        requests_per_s=number("requests_per_s"),
        tokens_per_s=number("tokens_per_s"),
        successes=successes,
        errors=errors,
        in_flight=number("in_flight"),
        offered_per_s=number("offered_per_s"),
        input_tokens=lengths["input"],
        output_tokens=lengths["output"],
        late_s=None if late is None else max(0.0, late) * form.late_unit_s,
        seed=number("seed"),
        model=_text(document, form, "model"),
        version=_text(document, form, "version"),
        latencies=latencies,
        repeats=max(1, int(number("repeats") or 1)),
        deviation=number("deviation") or 0.0,
    )


def _text(document: Mapping[str, Any], form: Format, name: str) -> str:
    """Return a text of the document; "" where it has none."""
    found = [_value_at(document, place) for place in form.paths.get(name, ())]
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


def _value_at(document: Any, path: str) -> Any:
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
        value = _value_at(document, place) if place else None
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
