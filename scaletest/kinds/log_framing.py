"""One result in a log: a line with a mark, so that whoever reads the log finds it among everything else."""

from __future__ import annotations

import json
from dataclasses import replace

from scaletest.kinds.benchmark import BenchmarkResult
from scaletest.model import wire
from scaletest.model.errors import InvalidValue

MARK = "SCALETEST-RESULT "
MOST_CHARACTERS = 200_000


def frame(ended: BenchmarkResult) -> str:
    """The line, without the details where they would make it longer than a reader of logs keeps."""
    line = _line(ended)
    if len(line) <= MOST_CHARACTERS:
        return line
    note = f"the details were too large: {len(line)} characters"
    return _line(replace(ended, result={}, notes=(*ended.notes, note)))


def _line(ended: BenchmarkResult) -> str:
    """ASCII: neither does a log's reader split it at foreign line ends, nor does a printer escape parts of it."""
    return MARK + json.dumps(ended.to_dict(), separators=(",", ":"), allow_nan=False)


def unframe(log: str) -> BenchmarkResult | None:
    """The last whole framed result of a log; None when there is none."""
    for line in reversed(log.splitlines()):
        if line.startswith(MARK):
            try:
                return BenchmarkResult.from_dict(wire.load(line.removeprefix(MARK), "the framed result"))
            except InvalidValue:
                continue
    return None
