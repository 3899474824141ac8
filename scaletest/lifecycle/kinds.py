"""The kinds of workloads: which template, which objects belong to them, when one is done. Only
names and pure rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.model.checks import cut
from scaletest.model.errors import UsageError
from scaletest.model.nearest import suggestion

WORKLOAD_LABEL = "scaletest/workload"
RUNAI_GROUP = "run.ai/"


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """until: the milestone at which a workload of this kind counts as measured. child: objects
    between it and its pods.

    labelled: whether its pods carry the labels that we put into its pod templates.
    """

    template: str
    until: str = "finished"
    child: tuple[str, str] | None = None
    labelled: bool = True

    @property
    def runai(self) -> bool:
        """Whether its namespace is that of a Run:ai project."""
        return self.template.startswith("runai-")


KINDS: Mapping[str, WorkloadKind] = {
    "job": WorkloadKind("job"),
    "indexed-job": WorkloadKind("indexed-job"),
    "jobset": WorkloadKind("jobset", child=("batch/v1", "Job")),
    "deployment": WorkloadKind("deployment", until="ready"),
    "statefulset": WorkloadKind("statefulset", until="ready"),
    "pod": WorkloadKind("pod"),
    "scaledjob": WorkloadKind("scaledjob", until="ready", child=("batch/v1", "Job")),
    "pytorchjob": WorkloadKind("pytorchjob"),
    "runai-training": WorkloadKind("runai-training", "scheduled", ("run.ai/v1", "RunaiJob"), False),
    "runai-interactive": WorkloadKind(
        "runai-interactive", "scheduled", ("run.ai/v1", "RunaiJob"), False
    ),
    "runai-distributed": WorkloadKind(
        "runai-distributed", "scheduled", ("kubeflow.org/v1", "PyTorchJob"), False
    ),
}
# The names of the Run:ai scale test tool, as plain Kubernetes has them.
ALIASES = {"training": "job", "distributed": "indexed-job", "interactive": "deployment"}
# What has done its work says so in a condition of one of these types, or in its phase.
DONE = ("Complete", "Completed", "Succeeded")
FAILED = ("Failed",)


def find(name: str) -> WorkloadKind:
    """The kind of that name; UsageError that lists the names."""
    found = KINDS.get(ALIASES.get(name, name))
    if found is None:
        raise UsageError(
            f"there is no workload type {cut(name, 80)}",
            hint=f"{suggestion(name, [*ALIASES, *KINDS])}; for another one give --template FILE",
        )
    return found


def expected(body: Mapping[str, Any]) -> int | None:
    """How many pods an object needs at once; None when it does not say."""
    spec = body.get("spec") or {}
    try:
        match body.get("kind"):
            case "Pod":
                return 1
            case "Job":
                return _job(spec)
            case "Deployment" | "StatefulSet" | "ReplicaSet":
                return int(spec.get("replicas", 1))
            case "JobSet":
                rows = spec.get("replicatedJobs", [])
                return sum(
                    int(row.get("replicas", 1)) * _job(row["template"]["spec"]) for row in rows
                )
            case "PyTorchJob" | "TFJob" | "MPIJob" | "XGBoostJob" | "JAXJob":
                groups = [value for key, value in spec.items() if key.endswith("ReplicaSpecs")]
                return (
                    sum(int(row.get("replicas", 1)) for group in groups for row in group.values())
                    or None
                )
            case "DistributedWorkload":
                return int(spec["workers"]["value"]) + 1
            case "TrainingWorkload" | "InteractiveWorkload" | "RunaiJob":
                return 1
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return None


def _job(spec: Mapping[str, Any]) -> int:
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    return min(parallelism, int(completions)) if completions is not None else parallelism


def ended(body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Of an object that has ended: "finished" or "failed", and when its own status says so, or ""
    when it does not.

    None while it goes on.
    """
    status = body.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in (*DONE, *FAILED):
            word = "failed" if condition["type"] in FAILED else "finished"
            return word, status.get("completionTime") or condition.get("lastTransitionTime") or ""
    if status.get("phase") in (*DONE, *FAILED):
        return ("failed" if status["phase"] in FAILED else "finished"), ""
    return None


def why_failed(body: Mapping[str, Any]) -> str:
    """What the object says about its failure."""
    status = body.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") in FAILED and condition.get("status") == "True":
            return cut(f"{condition.get('reason', '')}: {condition.get('message', '')}", 200)
    return cut(str(status.get("reason") or status.get("message") or ""), 200)
