"""Made lifecycles: objects as the API server has them, and workloads with stamps."""

from datetime import UTC, datetime
from typing import Any

from scaletest.cluster.watch import WatchEvent
from scaletest.lifecycle.judging.result import LifecycleResult, judge_run
from scaletest.lifecycle.options import WorkloadSelection
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.records import LifecycleObject, LifecyclePod, Stamp, Submission

BEGAN = 1_790_000_000.0


def iso(at_s: float) -> str:
    """As the API server writes it: whole seconds."""
    return datetime.fromtimestamp(int(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(name: str, workload: str, **times: float) -> dict[str, Any]:
    """A pod that has passed these milestones at these seconds after the beginning."""
    conditions = {"scheduled": "PodScheduled", "ready": "Ready", "evicted": "DisruptionTarget"}
    rows = [
        {"type": kind, "status": "True", "lastTransitionTime": iso(BEGAN + times[key])}
        for key, kind in conditions.items()
        if key in times
    ]
    state: dict[str, Any] = {}
    if "started" in times:
        state = {"running": {"startedAt": iso(BEGAN + times["started"])}}
    if "finished" in times:
        state = {
            "terminated": {
                "startedAt": iso(BEGAN + times.get("started", 0.0)),
                "finishedAt": iso(BEGAN + times["finished"]),
            }
        }
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "namespace": "n",
            "labels": {"scaletest/workload": workload},
            "creationTimestamp": iso(BEGAN + times.get("created", 0.0)),
            "ownerReferences": [{"kind": "Job", "name": workload}],
        },
        "spec": {"nodeName": "node", "containers": [{"name": "main"}]},
        "status": {
            "phase": "Succeeded"
            if "finished" in times
            else "Running"
            if "started" in times
            else "Pending",
            "conditions": rows,
            "containerStatuses": [{"state": state}] if state else [],
        },
    }


def job(
    name: str, *, parallelism: int = 1, done: float | None = None, failed: str = ""
) -> dict[str, Any]:
    """A Job."""
    kind = "Failed" if failed else "Complete"
    when = iso(BEGAN + (done or 0.0))
    row = {
        "type": kind,
        "status": "True",
        "reason": failed,
        "message": "m",
        "lastTransitionTime": when,
    }
    return {
        "kind": "Job",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "namespace": "n",
            "creationTimestamp": iso(BEGAN),
            "labels": {"scaletest/workload": name},
        },
        "spec": {"parallelism": parallelism, "completions": parallelism},
        "status": {"conditions": [row]} if done is not None or failed else {},
    }


def sighting(role: str, kind: str, body: dict[str, Any], at_s: float | None = None) -> WatchEvent:
    """A sighting, seconds after the beginning."""
    return WatchEvent(role, kind, body, BEGAN + at_s if at_s is not None else None)


def workload(
    name: str, pods: int = 1, submitted: float = 0.0, step: float = 1.0, **stamps: float
) -> LifecycleObject:
    """One that was submitted and finished, every milestone `step` after the one before."""
    observed = LifecycleObject(name, "runai-p", "Job", pods, seen=True)
    for milestone, at_s in {"submitted": submitted, "created": submitted + step, **stamps}.items():
        observed.mark(milestone, Stamp(watch_s=BEGAN + at_s))
    for index in range(pods):
        each = LifecyclePod(f"{name}-{index}", f"{name}-{index}", "node")
        for number, milestone in enumerate(
            ("created", "decided", "scheduled", "started", "ready", "finished")
        ):
            each.mark(
                milestone, Stamp(watch_s=BEGAN + submitted + step * (2 + number) + 0.1 * index)
            )
        observed.pods[each.uid] = each
    observed.mark(
        "finished", Stamp(watch_s=BEGAN + submitted + step * 7 + 0.1 * (pods - 1))
    )  # as its status says
    return observed


def submission(name: str, accepted: bool = True, **more: Any) -> Submission:
    """One answer."""
    return Submission(name, "runai-p", "p", accepted, BEGAN if accepted else None, **more)


VIEW = WorkloadSelection()


def of(
    *workloads: LifecycleObject,
    until: str = "finished",
    view: WorkloadSelection = VIEW,
    **more: Any,
) -> LifecycleResult:
    return judge_run(
        workloads, [submission(submitted.name) for submitted in workloads], until, view, **more
    )


def plan(**more: Any) -> LifecyclePlan:
    return LifecyclePlan(
        **{"run": "0a1b2c", "workload_type": "job", "namespace": "n", "count": 10, **more}
    )
