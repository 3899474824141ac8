"""Benchmarks as requests: the one argument is a document, which a child process runs on this node.

Whoever may submit to the queue decides what a worker measures, but not what runs on its node: a
document that names a command, arguments of a tool, a directory or objects of the cluster is refused
unless --allow-commands trusts it. The child's framed result is the figure `result`; its headlines
are figures of their own.
"""

from __future__ import annotations

from dataclasses import replace

from scaletest.benchmarks.documents.benchmark import read_benchmark
from scaletest.benchmarks.documents.result import (
    BenchmarkPhase,
    BenchmarkResult,
    frame_result,
    read_framed_result,
)
from scaletest.benchmarks.kinds.failure import Failure
from scaletest.model import Outcome, Reason, wire
from scaletest.model.errors import InvalidValue
from scaletest.model.wording import as_options
from scaletest.processes.children import python_module
from scaletest_workers.devices import ChosenDevice
from scaletest_workers.workloads.base import Result, failed_result
from scaletest_workers.workloads.program import ProgramWorkload

_REASONS = {Failure.NO_DEVICE: Reason.NO_DEVICE, Failure.NO_BINARY: Reason.NO_BINARY}
_TRUST = (
    "start the worker with <allow_commands> if everybody who may submit to its queue may run"
    " anything on its node"
)


class BenchWorkload(ProgramWorkload):
    """Runs `scaletest bench execute DOCUMENT`."""

    def run(
        self, arguments: tuple[str, ...], limit_s: float, device: ChosenDevice | None
    ) -> Result:
        """Run one benchmark to its end. Raises Interrupted."""
        words = (*self._setup.options, *arguments)
        if len(words) != 1:
            return Result(
                Outcome.FAILED,
                Reason.EXIT,
                error="a benchmark has one argument: its document as JSON",
            )
        try:
            benchmark = read_benchmark(wire.load(words[0], "the document"))
        except InvalidValue as error:
            return failed_result(error)
        if benchmark.trusted and not self._setup.allow_commands:
            refusal = BenchmarkResult(
                benchmark.name,
                BenchmarkPhase.FAILED,
                failure=Failure.REFUSED,
                message=f"{benchmark.name}: this worker takes no {', '.join(benchmark.trusted)} of"
                " a benchmark, which decides what runs on its node",
                remedy=_TRUST,
            )
            refused = _framed_result(refusal, None)
            return replace(refused, error=as_options(f"{refused.error} ({_TRUST})"))
        # serialized again: the child must not read fields that were not checked here
        line = python_module("scaletest", "bench", "execute", wire.dump(benchmark.document()))
        ended = self._program.run(line, limit_s, {}, capture=True, quiet=True)
        measured = read_framed_result(ended.output)
        if measured is None:
            return ended.result
        return _framed_result(measured, ended.result.exit_code)


def _framed_result(ended: BenchmarkResult, exit_code: int | None) -> Result:
    """Return how a run ended that measured `ended`, which becomes one of its figures."""
    numbers = {name: value for name, value in ended.headlines.items() if name != "result"}
    figures: dict[str, float | int | str] = {**numbers, "result": frame_result(ended)}
    if ended.ok:
        return Result(Outcome.SUCCEEDED, exit_code=0, figures=figures)
    return Result(
        Outcome.FAILED,
        _REASONS.get(ended.failure, Reason.EXIT),
        exit_code,
        ended.message,
        figures=figures,
    )
