"""A lifecycle's folder as the archive sees it: listed, exported, imported and deleted like every
run.

It lies below `lifecycles`, beside `runs`. Submitting and sampling it are for the lifecycle room,
which writes it.
"""

from __future__ import annotations

from pathlib import Path

from scaletest.archive.folder import ENVIRONMENT, RECORDS, RESULT, AnyPlan, RunFolder
from scaletest.model.lifecycle import LifecycleObject, Submission, read_line
from scaletest.model.lifecycle_plan import KIND, LifecyclePlan

PLAN, SUBMISSIONS, SAMPLING = "lifecycle.json", "submissions.jsonl", "sampling.json"
FILES = (PLAN, ENVIRONMENT, SUBMISSIONS, RECORDS, SAMPLING, RESULT)
# Made of these at any time: not exported, but deleted with them.
MADE = ("submitted.json", "sampled.json", "times.csv", "report.html", "general.png", "detailed.png")


def root(runs: Path) -> Path:
    """Where they are kept, beside those of other kinds."""
    return runs.parent / "lifecycles"


class LifecycleFolder(RunFolder):
    """One lifecycle on disk."""

    plan_file = PLAN
    files = FILES
    locks = (".submitter.lock", ".sampler.lock")

    @property
    def kind(self) -> str:
        """Its plan's `kind` is that of the workloads."""
        return KIND

    def _own(self) -> tuple[str, ...]:
        return (*MADE, *reversed(FILES), *self.locks)

    def _plan(self) -> AnyPlan:
        return LifecyclePlan.from_dict(self._read(PLAN))

    def check(self) -> None:
        """UsageError or InvalidValue unless the run is readable; holds one workload at a time."""
        self.summary()
        workloads: dict[str, LifecycleObject] = {}
        with self._trouble("read"):
            self._read(SAMPLING)
            for line in self._lines(SUBMISSIONS):
                Submission.from_json(line)
            for line in self._lines(RECORDS):
                read_line(line, workloads)
                # a workload's pods follow its own line
                name, workload = workloads.popitem()
                workload.pods.clear()
                workloads = {name: workload}
