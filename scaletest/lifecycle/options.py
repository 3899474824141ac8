"""The options of the commands of lifecycle, as one value for each group."""

from dataclasses import dataclass
from pathlib import Path

from scaletest.lifecycle.judging.verdict import EXAMPLE, MEASURES
from scaletest.model.threshold import parse_threshold


@dataclass(frozen=True, slots=True)
class LifecycleWorkloadOptions:
    """The workloads to submit, and how fast. Times are in seconds."""

    workload_type: str
    num_workloads: int | None
    num_processes: int
    delay: float
    num_workers: int
    num_gpus: str | None
    pvc: bool
    image: str
    run_seconds: str | None
    template: Path | None
    until: str | None
    namespace: str
    context: str
    tool: str
    event_times: bool
    force: bool
    project: str


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a PASS; InvalidValue for a threshold that cannot be parsed."""

    thresholds: tuple[str, ...] = ()
    tolerate_failures: int = 0

    def __post_init__(self) -> None:
        for text in self.thresholds:
            parse_threshold(text, MEASURES, EXAMPLE)


@dataclass(frozen=True, slots=True)
class WorkloadSelection:
    """The workloads of a run that are shown."""

    skip_errors: bool = True
    head: int | None = None  # keep the first so many
    tail: int | None = None  # then the last so many
