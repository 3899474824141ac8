"""Parse the states of pods, and warnings about them, from objects of the API server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.model.checks import cut_text


@dataclass(frozen=True, slots=True)
class PodState:
    """The state of a pod."""

    name: str
    node: str  # "" before it is scheduled
    phase: str
    ready: bool
    going: bool  # it is being deleted
    reason: str = ""  # why it is not ready, "" when unknown
    container: str = ""  # the one that is not ready
    restarts: int = 0
    since: str = ""  # when it became ready or not ready, as the API server writes it

    def __str__(self) -> str:
        state = "ready" if self.ready else self.phase
        if self.going:
            state = "terminating"
        reason = f": {self.reason}" if self.reason and not self.ready else ""
        restarts = f", {self.restarts} restarts" if self.restarts else ""
        return f"pod {self.name} on {self.node or 'no node'} is {state}{reason}{restarts}"


def pod_state(pod: dict[str, Any]) -> PodState:
    """Parse a Pod object."""
    status, meta, spec = pod.get("status", {}), pod["metadata"], pod.get("spec", {})
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    containers = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    failing, reason = _first_failure(containers)
    scheduled, ready = conditions.get("PodScheduled", {}), conditions.get("Ready", {})
    if not reason and scheduled.get("status") == "False":
        reason = f"{scheduled.get('reason', '')}: {scheduled.get('message', '')}"
    return PodState(
        name=meta["name"],
        node=spec.get("nodeName", ""),
        phase=status.get("phase", "Unknown"),
        ready=ready.get("status") == "True",
        going="deletionTimestamp" in meta,
        reason=cut_text(reason, 300),
        container=failing or spec.get("containers", [{}])[0].get("name", ""),
        restarts=sum(container.get("restartCount", 0) for container in containers),
        since=str(ready.get("lastTransitionTime") or ""),
    )


@dataclass(frozen=True, slots=True)
class PodWarning:
    """An event of type Warning about a pod."""

    uid: str
    pod: str
    text: str  # reason and message
    count: int  # how often so far


def pod_warning(event: dict[str, Any]) -> PodWarning:
    """Parse an Event object."""
    series = event.get("series") or {}  # where newer ones have their count
    return PodWarning(
        uid=event["metadata"].get("uid", ""),
        pod=event.get("involvedObject", {}).get("name", ""),
        text=cut_text(f"{event.get('reason')}: {event.get('message', '')}", 200),
        count=event.get("count") or series.get("count") or 1,
    )


def first_failing(pods: Sequence[PodState]) -> PodState | None:
    """Return the pod to explain first: one that restarts, else one that is not ready."""
    unready = [pod for pod in pods if not pod.ready and not pod.going]
    return max(unready, key=lambda pod: (pod.restarts > 0, bool(pod.reason)), default=None)


def _first_failure(containers: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """Return the name of the first container that waits or failed, and why."""
    for container in containers:
        state = container.get("state", {})
        waiting, ended = state.get("waiting"), state.get("terminated")
        reason = ""
        if waiting and waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            reason = f"{waiting['reason']} {waiting.get('message', '')}"
        elif ended and ended.get("exitCode"):
            reason = f"exit code {ended['exitCode']} {ended.get('message', '')}"
        if reason:
            return container["name"], reason.strip()
    return "", ""
