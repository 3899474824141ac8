"""What a pod's object says about it, as a few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.model.checks import cut


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod. reason: why it is not ready, "" when nobody says. container: the one that keeps it from being ready."""

    name: str
    node: str
    phase: str
    ready: bool
    going: bool
    reason: str = ""
    container: str = ""
    restarts: int = 0

    def __str__(self) -> str:
        state = "going" if self.going else "ready" if self.ready else self.phase
        why = f": {self.reason}" if self.reason and not self.ready else ""
        again = f", {self.restarts} restarts" if self.restarts else ""
        return f"pod {self.name} on {self.node or 'no node'} is {state}{why}{again}"


def pod_state(row: dict[str, Any]) -> PodState:
    """From its object."""
    status, meta, spec = row.get("status", {}), row["metadata"], row.get("spec", {})
    conditions = {one["type"]: one for one in status.get("conditions", [])}
    container, reason = _waits(status)
    scheduled = conditions.get("PodScheduled", {})
    if not reason and scheduled.get("status") == "False":
        reason = f"{scheduled.get('reason', '')}: {scheduled.get('message', '')}"
    containers = spec.get("containers", [{}])
    return PodState(
        name=meta["name"],
        node=spec.get("nodeName", ""),
        phase=status.get("phase", "Unknown"),
        ready=conditions.get("Ready", {}).get("status") == "True",
        going="deletionTimestamp" in meta,
        reason=cut(reason, 300),
        container=container or containers[0].get("name", ""),
        restarts=sum(one.get("restartCount", 0) for one in _containers(status)),
    )


def first_failing(pods: Sequence[PodState]) -> PodState | None:
    """The pod to look at first: one that restarts, else one that is not ready."""
    waiting = [one for one in pods if not one.ready and not one.going]
    return max(waiting, key=lambda one: (one.restarts > 0, bool(one.reason)), default=None)


def _containers(status: dict[str, Any]) -> list[dict[str, Any]]:
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]


def _waits(status: dict[str, Any]) -> tuple[str, str]:
    """The first container that waits or failed, and why."""
    for one in _containers(status):
        state = one.get("state", {})
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting and waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            return one["name"], f"{waiting['reason']} {waiting.get('message', '')}".strip()
        if ended and ended.get("exitCode"):
            return one["name"], f"exit code {ended['exitCode']} {ended.get('message', '')}".strip()
    return "", ""
