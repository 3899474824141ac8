"""Reading what tools write: JSON among other text, tables of numbers, and words that name a reason.

Everything here takes any text and raises nothing but Failed, with the lines that offend.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from scaletest.kinds.kind import BenchmarkFailed, Failure, ToolOutput
from scaletest.model.checks import cut

MOST_NUMBER = 1e18
# A measurement that is shorter than this part of what was asked for ended early.
LEAST_PART = 0.9
# By so much of themselves numbers of an output differ that were rounded for people.
ROUNDED = 0.02
# What tools and libraries say when there is no device of the kind that they need; from real runs without one.
NO_DEVICE = (
    "Unable to find the Infiniband/RoCE device",
    "Did not detect devices",
    "No IB devices found",
    "PML ucx cannot be selected",
    "transport 'rc_x' is not available",
    "No CUDA GPUs are available",
    "Found no NVIDIA driver",
    "Torch not compiled with CUDA enabled",
    "CUDA is not available",
)
# Exit code of shells, taskset and env, and words of Open MPI's mpirun, for a program that is not there.
NOT_FOUND = 127
NO_PROGRAM = (
    "unable to find the specified executable file",
    "unable to launch the specified application as it could not access",
)
_TIME = re.compile(r"(real|user|sys)\s+[\d.]+\s*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def ended_well(output: ToolOutput, program: str) -> None:
    """Raises Failed when the tool found no device or no program, or ended with an error."""
    missing = [line for line in output.text.splitlines() if any(words in line for words in NO_DEVICE)]
    if missing and output.exit_code:
        raise BenchmarkFailed(Failure.NO_DEVICE, f"{program} finds no device that it can use", missing)
    absent = [line for line in output.text.splitlines() if any(text in line for text in NO_PROGRAM)]
    if output.exit_code == NOT_FOUND or (absent and output.exit_code):
        message = f"{program}, or a program that it starts, is not installed wherever it runs"
        raise BenchmarkFailed(Failure.NO_BINARY, message, absent or last_lines(output))
    if output.exit_code:
        raise BenchmarkFailed(Failure.EXIT, f"{program} returned {output.exit_code}", last_lines(output))


def last_lines(output: ToolOutput, most: int = 4) -> list[str]:
    """The end of what a tool complained about, else of what it wrote; not what `time -p` says after it."""
    lines = [line for line in output.stderr.splitlines() if line.strip() and not _TIME.fullmatch(line)]
    lines = lines or [line for line in output.stdout.splitlines() if line.strip()]
    return lines[-most:]


def bad(message: str, lines: Sequence[str] = ()) -> BenchmarkFailed:
    """Output that cannot be read."""
    return BenchmarkFailed(Failure.BAD_OUTPUT, message, lines)


def json_object(text: str, program: str) -> dict[str, Any]:
    """The only JSON object in a tool's output, whatever text stands around it. Raises Failed.

    A key that is given twice, as iperf3 does, has its last value.
    """
    # at the beginning of a line where there is one: what stands before may hold braces
    first = re.search(r"^\s*\{", text, re.MULTILINE)
    start = first.end() - 1 if first else text.find("{")
    if start < 0:
        raise bad(f"{program} wrote no JSON", text.splitlines())
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        where = getattr(error, "pos", len(text))
        near = text[max(start, where - 80) : where + 80].splitlines()
        raise bad(f"{program} wrote JSON that ends early or is broken: {cut(str(error), 120)}", near) from error
    assert isinstance(value, dict)
    second = re.search(r"^\s*\{.*", text[end:], re.MULTILINE)
    if second:
        raise bad(f"{program} wrote more than one JSON object", [second[0]])
    return value


def at(data: Any, *path: str | int) -> Any:
    """What lies at a path of a JSON value; None when there is nothing."""
    for step in path:
        if isinstance(data, dict) and isinstance(step, str):
            data = data.get(step)
        elif isinstance(data, list) and isinstance(step, int) and -len(data) <= step < len(data):
            data = data[step]
        else:
            return None
    return data


def number(data: Any, *path: str | int) -> float:
    """The number at a path of a JSON value. Raises Failed when there is none, or none that a tool can count or time."""
    value = at(data, *path)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or not 0 <= value <= MOST_NUMBER
    ):
        name = ".".join(map(str, path))
        raise bad(f"there is no number {name} in the output", [f"{name}: {cut(repr(value), 120)}"])
    return float(value)


def positive(data: Any, *path: str | int) -> float:
    """A number of what was measured, which nothing that happened has at 0. Raises Failed."""
    value = number(data, *path)
    if value <= 0:
        name = ".".join(map(str, path))
        raise bad(f"nothing was measured: {name} is 0", [f"{name}: {value:g}"])
    return value


def check_agreement(reported: float, computed: float, name: str, rounded: float = ROUNDED) -> None:
    """Raises Failed when a number is not what others of the same output say. rounded: by what part it may differ."""
    if abs(reported - computed) > rounded * max(reported, computed):
        raise bad(f"the output contradicts itself: {name} is {reported:g}, and the other numbers say {computed:g}")


def check_length(measured_s: float, wanted_s: float, program: str) -> None:
    """Raises Failed when a tool measured for less time than it should have."""
    if measured_s < LEAST_PART * wanted_s:
        raise bad(f"{program} measured for {measured_s:g} s instead of {wanted_s:g} s")


def check_sizes(rows: Sequence[Sequence[float]], wanted: Sequence[int], program: str) -> None:
    """Raises Failed unless the first column of a table is these message sizes."""
    sizes = [int(row[0]) for row in rows]
    if sizes != list(wanted):
        odd = next(pair for pair in zip_longest(sizes, wanted) if pair[0] != pair[1])
        shown = ["nothing" if size is None else f"{size} bytes" for size in odd]
        raise bad(f"{program}'s table has {shown[0]} where it should have {shown[1]}", [str(sizes)])


def rows_after(text: str, header: str, columns: int, program: str) -> list[tuple[float, ...]]:
    """The rows of `columns` numbers that follow the only line with the words of `header`. Raises Failed.

    Other lines between rows, such as warnings, are passed over; a blank line or a rule after a row ends the table. A
    line that begins as a row and is none is an error: it was cut off, or is not what we think it is.
    """
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if header in line]
    if len(starts) != 1:
        raise bad(f"{program} wrote {len(starts)} tables that begin with {header}, instead of 1", lines[-4:])
    start = starts[0]
    found: list[tuple[float, ...]] = []
    for line in lines[start + 1 :]:
        words = line.split()
        if found and (not words or line.lstrip().startswith(("---", "#"))):
            break
        if not words or not words[0].isdigit():
            continue
        if len(words) != columns or not all(_NUMBER.fullmatch(word) and len(word) < 40 for word in words):
            raise bad(f"{program} wrote a row without {columns} numbers", [line])
        row = tuple(map(float, words))
        if not all(math.isfinite(value) and 0 <= value <= MOST_NUMBER for value in row):
            raise bad(f"{program} wrote a number that cannot be right", [line])
        found.append(row)
    if found and not text.endswith("\n") and lines[-1].split()[:1] == [f"{found[-1][0]:.0f}"]:
        raise bad(f"{program}'s output ends within a row", lines[-1:])
    if not found:
        raise bad(f"{program} wrote a table without rows", lines[start : start + 4])
    return found
