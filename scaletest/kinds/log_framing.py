"""Framing of a result in a log: one line that begins with a mark, to find it among other lines."""

from __future__ import annotations

import json
from dataclasses import replace

from scaletest.kinds.benchmark import BenchmarkResult
from scaletest.model import wire
from scaletest.model.errors import InvalidValue

MARK = "SCALETEST-RESULT "
MOST_CHARACTERS = 200_000


def frame(result: BenchmarkResult) -> str:
    """The line of a result; without its details if it would be too long for readers of logs."""
    line = _line(result)
    if len(line) <= MOST_CHARACTERS:
        return line
    note = f"the details were left out: {len(line)} characters are too many"
    return _line(replace(result, result={}, notes=(*result.notes, note)))


def _line(result: BenchmarkResult) -> str:
    """Encode as ASCII, so that readers split no Unicode line ends, and printers escape nothing."""
    return MARK + json.dumps(result.to_dict(), separators=(",", ":"), allow_nan=False)


def unframe(log: str) -> BenchmarkResult | None:
    """The last complete framed result of a log; None without one."""
    for line in reversed(log.splitlines()):
        if line.startswith(MARK):
            try:
                return BenchmarkResult.from_dict(
                    wire.load(line.removeprefix(MARK), "the framed result")
                )
            except InvalidValue:
                continue
    return None
