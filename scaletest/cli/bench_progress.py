"""Progress of benchmarks on standard error: a live line on terminals, and one for each end."""

from __future__ import annotations

import threading
from types import TracebackType

from rich.console import Console
from rich.text import Text

from scaletest.analysis.benchmark_run import permutation_text
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.render.text import clean
from scaletest.render.units import quantity


class Progress:
    """Says how far a plan is. Called from several threads when benchmarks run side by side."""

    def __init__(self, plan: BenchmarkPlan, ended: int) -> None:
        self._plan = plan
        self._ended = ended
        self._console = Console(stderr=True, highlight=False)
        self._status = self._console.status("starting") if self._console.is_terminal else None
        self._lock = threading.Lock()

    def __enter__(self) -> Progress:
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status:
            self._status.stop()

    def __call__(
        self, benchmark: Benchmark, phase: BenchmarkPhase, ended: BenchmarkResult | None
    ) -> None:
        """A benchmark has a new phase, or has ended."""
        with self._lock:
            if ended is not None:
                self._ended += 1
                self._console.print(Text(self._line(benchmark, ended)), soft_wrap=True)
            elif self._status:
                line = f"{self._ended}/{len(self._plan.benchmarks)}  {benchmark.name}: {phase}"
                self._status.update(Text(clean(line)))

    def _line(self, benchmark: Benchmark, ended: BenchmarkResult) -> str:
        what = permutation_text(self._plan.permutations[benchmark.permutation])
        first = (
            f"{self._ended}/{len(self._plan.benchmarks)} "
            f" {benchmark.name}{f' ({clean(what, 60)})' if what else ''}"
        )
        if not ended.ok:
            return f"{first}: {ended.failure or 'failed'}: {clean(ended.message, 200)}".replace(
                "\n", " "
            )
        numbers = [
            f"{one.name} {quantity(ended.headlines[one.name], one.unit)}"
            for one in benchmark.kind.headlines
            if one.name in ended.headlines
        ]
        return (
            f"{first}: {', '.join(numbers)}{' (warm-up, not counted)' if benchmark.warm_up else ''}"
        )
