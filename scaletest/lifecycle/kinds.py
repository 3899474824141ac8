"""The kinds of workloads: their defaults, how many pods one needs, and when one has ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from scaletest.model.checks import cut_text

WORKLOAD_LABEL = "scaletest/workload"
RUNAI_GROUP = "run.ai/"
# The names of the Run:ai scale test tool, as plain Kubernetes has them.
ALIASES = {"training": "job", "distributed": "indexed-job", "interactive": "deployment"}
# The devices that pods ask for, unless others are named.
DEFAULT_RESOURCE = "nvidia.com/gpu"
# The project of Run:ai's workloads, unless another one is named.
DEFAULT_PROJECT = "project-0"
# An object that has ended says so in a condition of one of these types, or in its phase.
DONE = ("Complete", "Completed", "Succeeded")
FAILED = ("Failed",)


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """A kind of workload, and what holds for it unless options say otherwise."""

    name: str  # its template has this name too
    until: str = "finished"  # the milestone at which a workload of this kind counts as measured
    child: tuple[str, str] | None = None  # API version and kind of objects between it and its pods
    gpus: str = "0"  # devices of a pod
    seconds: str = "60"  # how long a pod sleeps

    @property
    def runai(self) -> bool:
        """Whether it is of Run:ai: its namespace is a project's, and its pods lack our labels."""
        return self.name.startswith("runai-")


def _of_runai(name: str, version: str, child: str) -> WorkloadKind:
    """Return a kind of Run:ai, with the defaults of its scale test tool."""
    return WorkloadKind(
        name,
        until="scheduled",
        child=(version, child),
        gpus="1",
        seconds="infinity",
    )


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
    """Return the kind of that name or alias."""
    return KINDS[ALIASES.get(name, name)]


def pods_needed(body: Mapping[str, Any]) -> int | None:
    """Return how many pods an object needs at once; None when it does not say."""
    count = _POD_COUNTS.get(str(body.get("kind")))
    try:
        return count(body.get("spec") or {}) if count else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None  # a template may leave out what the API server fills in


def _replicas(spec: Mapping[str, Any]) -> int:
    return int(spec.get("replicas", 1))


def _job_pods(spec: Mapping[str, Any]) -> int:
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    return parallelism if completions is None else min(parallelism, int(completions))


def _training_pods(spec: Mapping[str, Any]) -> int | None:
    """Return the pods of all roles of a Kubeflow job, as in pytorchReplicaSpecs."""
    roles = [role.values() for key, role in spec.items() if key.endswith("ReplicaSpecs")]
    return sum(map(_replicas, chain.from_iterable(roles))) or None


# How many pods an object of the kind needs, by its spec.
_POD_COUNTS: Mapping[str, Callable[[Mapping[str, Any]], int | None]] = {
    "Job": _job_pods,
    "JobSet": lambda spec: sum(
        _replicas(jobs) * _job_pods(jobs["template"]["spec"])
        for jobs in spec.get("replicatedJobs", [])
    ),
    "DistributedWorkload": lambda spec: int(spec["workers"]["value"]) + 1,
    **dict.fromkeys(("Deployment", "StatefulSet", "ReplicaSet"), _replicas),
    **dict.fromkeys(("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "JAXJob"), _training_pods),
    **dict.fromkeys(("Pod", "TrainingWorkload", "InteractiveWorkload", "RunaiJob"), lambda spec: 1),
}


class Ending(NamedTuple):
    """The end of an object."""

    failed: bool
    at: str  # when its own status says so, "" when it does not
    reason: str  # what it says about its failure


def find_end(body: Mapping[str, Any]) -> Ending | None:
    """Return the end that an object shows; None while it still runs."""
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
