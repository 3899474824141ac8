"""The algorithm: for 1, 2, 4, ... workers scale, wait ready, load on, cut the warm-up, measure, drain, record; judge.

It persists after every step and can be stopped at any point: what was measured by then is kept, and the verdict says
that the run was interrupted.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.judge import Step, judge, summarise, warnings
from scaletest.analysis.law import Choice, choose
from scaletest.analysis.throughput import throughput
from scaletest.model import Plan, Record, Verdict
from scaletest.model.errors import WaitTimeout
from scaletest.model.wire import SCHEMA_VERSION
from scaletest.system.waiting import Wake
from scaletest.validation.folder import RunFolder
from scaletest.validation.interfaces import Backend, Load, Progress

READY_TIMEOUT_S = 120.0
LOOK_S = 0.1
# A step never measures longer than this, or 30 requests, whatever is still missing.
LONGEST_STEP_S = 60.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a validation found."""

    plan: Plan
    steps: list[Step]
    verdict: Verdict
    elapsed_s: float
    errors: dict[str, int]

    @property
    def law(self) -> Choice | None:
        """The scaling law of the steps with throughput enough to count; None for fewer than four."""
        points = [(float(step.workers), step.throughput.per_s) for step in self.steps if step.throughput.enough]
        return choose(points)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, schema version 1."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "validation",
            "plan": self.plan.to_dict(),
            "steps": [step.to_dict() for step in self.steps],
            "law": self.law.to_dict() if self.law else None,
            "warnings": warnings(self.steps),
            "verdict": self.verdict.to_dict(),
            "elapsed_s": self.elapsed_s,
            "errors": self.errors,
        }


class Runner:
    """Runs one plan. `record` is the load's sink; `stop` ends the run early."""

    def __init__(
        self,
        plan: Plan,
        folder: RunFolder,
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._progress = progress
        self._clock = clock
        self._began = clock()
        self._records: dict[int, list[Record]] = defaultdict(list)
        self._wake = Wake()
        self._stopped_by = ""

    def record(self, record: Record) -> None:
        """Take in a finished request; may be called from any thread."""
        self._records[record.step].append(record)

    def stop(self, reason: str) -> None:
        """End the run as soon as requests in flight are done. Safe in a signal handler."""
        self._stopped_by = self._stopped_by or reason
        self._wake.set()

    def run(self, backend: Backend, load: Load) -> Result:
        """All steps in order, then the verdict."""
        for workers in self._plan.steps:
            self._step(workers, backend, load)
            if self._stopped_by:
                break
            rows = self._records[workers]
            if rows and not any(row.ok for row in rows) and len(rows) > self._plan.tolerate_failures:
                break  # every request failed: more workers would only fail faster
        return self.result()

    def result(self) -> Result:
        """The result so far."""
        steps = summarise(self._plan, self._records)
        verdict = judge(self._plan, steps, self._stopped_by)
        return Result(self._plan, steps, verdict, self._clock() - self._began, self._errors())

    def _step(self, workers: int, backend: Backend, load: Load) -> None:
        self._records[workers] = []
        self._progress.phase(workers, "scaling")
        try:
            backend.scale(workers)
            self._wait_ready(workers, backend)
            if not self._stopped_by:
                load.set_parallel(workers, workers)
                self._measure(workers, backend, load)
            self._progress.phase(workers, "draining")
            load.set_parallel(0)
            self._drain(load)
        finally:
            self._folder.add(self._records[workers])
        if not self._records[workers] and self._stopped_by:
            del self._records[workers]
        result = self.result()
        self._folder.result(result.to_dict())
        if result.steps and result.steps[-1].workers == workers:
            self._progress.step(_line(result.steps[-1]))

    def _wait_ready(self, workers: int, backend: Backend) -> None:
        deadline = self._clock() + READY_TIMEOUT_S
        while backend.ready() < workers and not self._wake.wait(LOOK_S / 5):
            if self._clock() > deadline:
                raise WaitTimeout(
                    f"{backend.ready()} of {workers} workers were ready after {READY_TIMEOUT_S:.0f} s",
                    hint="look at the workers' log",
                )

    def _measure(self, workers: int, backend: Backend, load: Load) -> None:
        """Measure for the plan's time; unless the user set it, longer while there is too little to judge."""
        plan = self._plan
        self._progress.phase(workers, "measuring")
        began = self._clock()
        wanted = plan.measure_s + plan.seconds  # the first request of each worker only warms it up
        longest = wanted if plan.step_s else max(wanted, LONGEST_STEP_S, 30.0 * plan.seconds)
        while not self._wake.wait(LOOK_S):
            elapsed = self._clock() - began
            rows = list(self._records[workers])
            failures = sum(not row.ok for row in rows)
            self._progress.tick(workers, elapsed, wanted, len(rows) - failures, failures)
            backend.ready()
            load.check()
            if elapsed < wanted:
                continue
            hopeless = failures > plan.tolerate_failures
            if elapsed >= longest or hopeless or throughput(rows, workers).enough:
                return

    def _drain(self, load: Load) -> None:
        """Let requests in flight finish, so that each belongs to one step; a hung workload ends the wait, not us."""
        limit_s = self._plan.time_limit_s or 10.0 * self._plan.seconds
        patience_s = max(30.0, 2.0 * limit_s)
        if not load.wait_idle(patience_s):
            self.stop(f"requests still ran {patience_s:.0f} s after the load was taken away")

    def _errors(self) -> dict[str, int]:
        """Error texts of failed requests with their counts, the most frequent first, ten at most."""
        counts: dict[str, int] = defaultdict(int)
        for rows in list(self._records.values()):
            for row in list(rows):
                if not row.ok:
                    counts[row.reply.error or row.reply.outcome.value] += 1
        return dict(sorted(counts.items(), key=lambda item: -item[1])[:10])


def _line(step: Step) -> str:
    ratio = f", ratio {step.ratio.value:.2f}" if step.ratio else ""
    failed = f", {step.failures} failed" if step.failures else ""
    return f"{step.workers} workers: {step.throughput.per_s:.3f} requests/s{ratio}{failed}"
