"""Parse the output of tools: JSON in other text, tables of numbers, and known error messages.

All functions accept any text, and raise only BenchmarkFailed, with the relevant lines.
"""

import json
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from scaletest.benchmarks.kinds import BenchmarkFailed, Failure, ToolOutput, fail_if
from scaletest.model.checks import cut_text

MOST_NUMBER = 1e18
# Messages of tools and libraries without a device that they need; from real runs without one.
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
# The lines of `time -p`, in seconds.
TIMES = re.compile(r"^(real|user|sys)\s+(\d{1,9}(?:\.\d{1,9})?)\s*$", re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def check_exit(output: ToolOutput, program: str) -> None:
    """Raise BenchmarkFailed if the tool found no device or program, or ended with an error."""
    if not output.exit_code:
        return
    no_device = lines_with(output.text, NO_DEVICE)
    fail_if(
        no_device,
        f"{program} found no device that it can use",
        no_device,
        failure=Failure.NO_DEVICE,
    )
    # messages of Open MPI's mpirun
    no_program = lines_with(
        output.text,
        (
            "unable to find the specified executable file",
            "unable to launch the specified application as it could not access",
        ),
    )
    fail_if(
        # shells, taskset and env end with 127 when a program is missing
        output.exit_code == 127 or no_program,
        f"{program}, or a program that it starts, is not installed on every node",
        no_program or last_lines(output),
        failure=Failure.NO_BINARY,
    )
    raise BenchmarkFailed(
        Failure.EXIT, f"{program} ended with exit code {output.exit_code}", last_lines(output)
    )


def lines_with(text: str, phrases: Sequence[str]) -> list[str]:
    """Return the lines that contain one of the phrases."""
    return [line for line in text.splitlines() if any(map(line.__contains__, phrases))]


def last_lines(output: ToolOutput, most: int = 4) -> list[str]:
    """Return the last lines of stderr, else of stdout, without the output of `time -p`."""
    errors = [
        line for line in output.stderr.splitlines() if line.strip() and not TIMES.fullmatch(line)
    ]
    return (errors or [line for line in output.stdout.splitlines() if line.strip()])[-most:]


def json_object(text: str, program: str) -> dict[str, Any]:
    """Return the only JSON object in a tool's output, whatever text stands around it.

    A key that occurs twice, as with iperf3, has its last value. Raises BenchmarkFailed.
    """
    # preferably at the beginning of a line, since text before it may contain braces
    first = re.search(r"^\s*\{", text, re.MULTILINE)
    start = first.end() - 1 if first else text.find("{")
    fail_if(start < 0, f"{program} wrote no JSON", text.splitlines())
    try:
        parsed, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        position = getattr(error, "pos", len(text))
        raise BenchmarkFailed(
            Failure.BAD_OUTPUT,
            f"{program} wrote incomplete or invalid JSON: {cut_text(str(error), 120)}",
            text[max(start, position - 80) : position + 80].splitlines(),
        ) from error
    assert isinstance(parsed, dict)
    others = re.findall(r"^\s*\{.*", text[end:], re.MULTILINE)
    fail_if(others, f"{program} wrote more than one JSON object", others[:1])
    return parsed


def part_at(document: Any, *path: str | int) -> Any:
    """Return the part at a path of a JSON document; None if there is none."""
    for key in path:
        # a text has indices too, but no parts
        if isinstance(document, str):
            return None
        try:
            document = document[key]
        except (LookupError, TypeError):
            return None
    return document


def pick_keys(document: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return some keys of a JSON object; None for one that it does not have."""
    return {name: part_at(document, name) for name in names}


def number(document: Any, *path: str | int) -> float:
    """Return the number at a path of a JSON document.

    Raises BenchmarkFailed without one from 0 to 1e18.
    """
    part, name = part_at(document, *path), ".".join(map(str, path))
    is_number = isinstance(part, int | float) and not isinstance(part, bool)
    fail_if(
        not is_number or not 0 <= part <= MOST_NUMBER,
        f"there is no number {name} in the output",
        [f"{name}: {cut_text(repr(part), 120)}"],
    )
    return float(part)


def positive(document: Any, *path: str | int) -> float:
    """Return the number as `number` does; for 0 too raise BenchmarkFailed: nothing was measured."""
    measured, name = number(document, *path), ".".join(map(str, path))
    fail_if(measured <= 0, f"nothing was measured: {name} is 0", [f"{name}: {measured:g}"])
    return measured


def check_agreement(reported: float, computed: float, name: str, rounded: float = 0.02) -> None:
    """Raise BenchmarkFailed if a number contradicts others of the same output.

    computed: the number by the others. rounded: relative difference that is allowed; by default
    that of numbers that were rounded for people.
    """
    fail_if(
        abs(reported - computed) > rounded * max(reported, computed),
        f"the output contradicts itself: {name} is {reported:g}, but by other numbers it is"
        f" {computed:g}",
    )


def check_length(measured_s: float, planned_s: float, program: str) -> None:
    """Raise BenchmarkFailed if a tool measured for less than nine tenths of the planned time."""
    fail_if(
        measured_s < 0.9 * planned_s,
        f"{program} measured for {measured_s:g} s instead of {planned_s:g} s",
    )


def check_sizes(
    rows: Sequence[Sequence[float]], expected_sizes: Sequence[int], program: str
) -> None:
    """Raise BenchmarkFailed unless the first column of a table has these message sizes."""
    sizes = [int(row[0]) for row in rows]
    for size, expected in zip_longest(sizes, expected_sizes):
        row = "no row" if size is None else f"{size} bytes"
        instead = "no row" if expected is None else f"{expected} bytes"
        fail_if(size != expected, f"{program}'s table has {row} instead of {instead}", [str(sizes)])


def rows_after(text: str, header: str, columns: int, program: str) -> list[tuple[float, ...]]:
    """Return the rows of `columns` numbers after the only line that contains `header`.

    Other lines between rows, such as warnings, are skipped; a blank line or a rule after a row
    ends the table. A line that begins like a row must be one: else it was cut off, or is
    something else. Raises BenchmarkFailed.
    """
    # the header
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if header in line]
    fail_if(
        len(starts) != 1,
        f"{program} wrote {len(starts)} tables that begin with {header}, instead of 1",
        lines[-4:],
    )
    start = starts[0]
    # the rows
    rows: list[tuple[float, ...]] = []
    for line in lines[start + 1 :]:
        cells = line.split()
        if rows and (not cells or line.lstrip().startswith(("---", "#"))):
            break
        if not cells or not cells[0].isdigit():
            continue
        fail_if(
            len(cells) != columns
            or not all(_NUMBER.fullmatch(cell) and len(cell) < 40 for cell in cells),
            f"{program} wrote a row without {columns} numbers",
            [line],
        )
        row = tuple(map(float, cells))
        # infinity, which 1e999 becomes, is not a number from 0 to 1e18 either
        fail_if(
            not all(0 <= number <= MOST_NUMBER for number in row),
            f"{program} wrote an impossible number",
            [line],
        )
        rows.append(row)
    # the end
    fail_if(not rows, f"{program} wrote a table without rows", lines[start : start + 4])
    fail_if(
        not text.endswith("\n") and lines[-1].split()[:1] == [f"{rows[-1][0]:.0f}"],
        f"{program}'s output ends in the middle of a row",
        lines[-1:],
    )
    return rows
