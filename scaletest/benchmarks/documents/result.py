"""Hold the result of a benchmark, and write and read the line of a log that carries it.

That line begins with a mark, to find it among other lines.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from scaletest.benchmarks.kinds import ADVICE, Failure
from scaletest.model import errors, wire
from scaletest.model.document import Document

MARK = "SCALETEST-RESULT "
MOST_MESSAGE = 2000  # characters of a message in the status of an object


class BenchmarkPhase(StrEnum):
    """Progress of a benchmark."""

    PENDING = "Pending"
    PREPARING = "Preparing"
    RUNNING = "Running"
    SUMMARISING = "Summarising"
    COMPLETED = "Completed"
    FAILED = "Failed"


FINAL_PHASES = (BenchmarkPhase.COMPLETED, BenchmarkPhase.FAILED)


@dataclass(frozen=True, slots=True)
class BenchmarkResult(Document):
    """The result of a benchmark, as it is stored and sent."""

    document_name = "the benchmark's result"
    name: str
    phase: BenchmarkPhase
    headlines: Mapping[str, float] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    # versions and places that the executor found
    environment: Mapping[str, Any] = field(default_factory=dict)
    # why nothing was measured
    failure: Failure = Failure.NONE
    message: str = ""
    lines: tuple[str, ...] = ()
    # what to do, where that is more specific than the advice of the failure
    remedy: str = ""
    notes: tuple[str, ...] = ()
    # since the epoch
    started_s: float = 0.0
    finished_s: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the benchmark completed."""
        return self.phase is BenchmarkPhase.COMPLETED

    @property
    def length_s(self) -> float:
        """Seconds from its start to its end; 0 where the clock was set back meanwhile."""
        return max(0.0, self.finished_s - self.started_s)

    @property
    def advice(self) -> str:
        """Advice after a failure."""
        return self.remedy or ADVICE[self.failure]


def frame_result(result: BenchmarkResult) -> str:
    """Return the line of a result; without its details if it would be too long."""
    line = _encode(result)
    if len(line) <= 200_000:  # readers of logs take no longer ones
        return line
    note = f"the details were left out: {len(line)} characters are too many"
    return _encode(replace(result, result={}, notes=(*result.notes, note)))


def _encode(result: BenchmarkResult) -> str:
    """Encode as ASCII, so that readers split no Unicode line ends, and printers escape nothing."""
    return MARK + json.dumps(result.to_dict(), separators=(",", ":"), allow_nan=False)


def read_framed_result(log: str) -> BenchmarkResult | None:
    """Return the last complete framed result of a log; None without one."""
    for line in reversed(log.splitlines()):
        if line.startswith(MARK):
            with suppress(errors.InvalidValue):
                return BenchmarkResult.from_dict(
                    wire.load(line.removeprefix(MARK), "the framed result")
                )
    return None
