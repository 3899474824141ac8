"""The kinds of workloads: which template, which objects belong to them, when one is done. Only
names and pure rules.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from scaletest.model.checks import cut_text
from scaletest.model.errors import UsageError, suggestion

WORKLOAD_LABEL = "scaletest/workload"
RUNAI_GROUP = "run.ai/"
# The names of the Run:ai scale test tool, as plain Kubernetes has them.
ALIASES = {"training": "job", "distributed": "indexed-job", "interactive": "deployment"}
# By which pods ask for devices, unless another one is named.
DEFAULT_RESOURCE = "nvidia.com/gpu"
# Where Run:ai's workloads go, unless another project is named.
DEFAULT_PROJECT = "project-0"
# What has done its work says so in a condition of one of these types, or in its phase.
DONE = ("Complete", "Completed", "Succeeded")
FAILED = ("Failed",)


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """A kind of workload, and what holds for it unless options say otherwise."""

    name: str  # also of its template
    until: str = "finished"  # the milestone at which a workload of this kind counts as measured
    child: tuple[str, str] | None = None  # API version and kind of objects between it and its pods
    labelled: bool = True  # whether its pods carry the labels that we put into its pod templates
    gpus: str = "0"  # devices of a pod
    seconds: str = "60"  # how long a pod sleeps

    @property
    def runai(self) -> bool:
        """Whether its namespace is that of a Run:ai project."""
        return self.name.startswith("runai-")


def _of_runai(name: str, version: str, child: str) -> WorkloadKind:
    """Return a kind of Run:ai, with the defaults of its scale test tool."""
    return WorkloadKind(name, "scheduled", (version, child), False, "1", "infinity")


KINDS: Mapping[str, WorkloadKind] = {
    kind.name: kind
    for kind in (
        WorkloadKind("job"),
        WorkloadKind("indexed-job"),
        WorkloadKind("deployment", until="ready"),
        WorkloadKind("pod"),
        _of_runai("runai-training", "run.ai/v1", "RunaiJob"),
        _of_runai("runai-distributed", "kubeflow.org/v1", "PyTorchJob"),
        _of_runai("runai-interactive", "run.ai/v1", "RunaiJob"),
    )
}


def find_kind(name: str) -> WorkloadKind:
    """Find the kind of that name; UsageError that lists the names."""
    kind = KINDS.get(ALIASES.get(name, name))
    if kind is None:
        raise UsageError(
            f"there is no workload type {cut_text(name, 80)}",
            hint=f"{suggestion(name, [*ALIASES, *KINDS])}; for another one give <template> FILE",
        )
    return kind


def pods_needed(body: Mapping[str, Any]) -> int | None:
    """Return how many pods an object needs at once; None when it does not say."""
    spec = body.get("spec") or {}
    count = _COUNTED.get(str(body.get("kind")))
    try:
        return count(spec) if count else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _replicas(spec: Mapping[str, Any]) -> int:
    return int(spec.get("replicas", 1))


def _job(spec: Mapping[str, Any]) -> int:
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    return min(parallelism, int(completions)) if completions is not None else parallelism


def _training(spec: Mapping[str, Any]) -> int | None:
    groups = [group.values() for key, group in spec.items() if key.endswith("ReplicaSpecs")]
    return sum(map(_replicas, chain.from_iterable(groups))) or None


# How many pods an object of the kind needs, by its spec.
_COUNTED: Mapping[str, Callable[[Mapping[str, Any]], int | None]] = {
    "Job": _job,
    "JobSet": lambda spec: sum(
        _replicas(jobs) * _job(jobs["template"]["spec"]) for jobs in spec.get("replicatedJobs", [])
    ),
    "DistributedWorkload": lambda spec: int(spec["workers"]["value"]) + 1,
    **dict.fromkeys(("Deployment", "StatefulSet", "ReplicaSet"), _replicas),
    **dict.fromkeys(("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "JAXJob"), _training),
    **dict.fromkeys(("Pod", "TrainingWorkload", "InteractiveWorkload", "RunaiJob"), lambda spec: 1),
}


class Ending(NamedTuple):
    """How an object ended."""

    failed: bool
    at: str  # when its own status says so, "" when it does not
    reason: str  # what it says about its failure


def find_end(body: Mapping[str, Any]) -> Ending | None:
    """Return how an object ended; None while it goes on."""
    status = body.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in (*DONE, *FAILED):
            ended_at = status.get("completionTime") or condition.get("lastTransitionTime") or ""
            reason = cut_text(f"{condition.get('reason', '')}: {condition.get('message', '')}", 200)
            return Ending(condition["type"] in FAILED, ended_at, reason)
    if status.get("phase") in (*DONE, *FAILED):
        reason = cut_text(str(status.get("reason") or status.get("message") or ""), 200)
        return Ending(status["phase"] in FAILED, "", reason)
    return None
