"""Benchmarks as requests: the request's one argument is a document; a child process runs it on this node.

The child's framed result is the figure `result`; its headlines are figures of their own.
"""

from __future__ import annotations

import sys

from scaletest.kinds.frame import frame, unframe
from scaletest.kinds.kind import Failure
from scaletest.model import Outcome, Reason
from workers.devices import Chosen
from workers.workloads.base import Result
from workers.workloads.program import Program

_REASONS = {Failure.NO_DEVICE: Reason.NO_DEVICE, Failure.NO_BINARY: Reason.NO_BINARY}


class BenchWorkload:
    """Runs `scaletest bench execute DOCUMENT`."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def run(self, arguments: tuple[str, ...], limit_s: float, device: Chosen | None) -> Result:
        """Run one benchmark to its end. Raises Interrupted."""
        if len(arguments) != 1:
            return Result(Outcome.FAILED, Reason.EXIT, error="a benchmark has one argument: its document as JSON")
        line = [sys.executable, "-m", "scaletest", "bench", "execute", arguments[0]]
        ended = self._program.run(line, limit_s, {}, capture=True, quiet=True)
        found = unframe(ended.output)
        if found is None:
            return ended.result
        numbers = {name: value for name, value in found.headlines.items() if name != "result"}
        figures: dict[str, float | int | str] = {**numbers, "result": frame(found)}
        if found.ok:
            return Result(Outcome.SUCCEEDED, exit_code=0, figures=figures)
        reason = _REASONS.get(found.failure, Reason.EXIT)
        return Result(Outcome.FAILED, reason, ended.result.exit_code, found.message, figures=figures)

    def close(self) -> None:
        """End the guard."""
        self._program.close()
