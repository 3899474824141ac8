"""Removes a run's objects: those with its label, or by name where the tool set no label."""

from __future__ import annotations

from scaletest.cluster.objects import Objects
from scaletest.lifecycle.plan import LifecyclePlan


def delete_all(plan: LifecyclePlan, objects: Objects) -> int:
    """Delete what the run submitted; how many objects there were. Raises Refused, Unreachable."""
    found = objects.resource(plan.api_version, plan.object_kind)
    labelled = plan.tool != "runai"
    names = objects.names(found, plan.namespace, plan.label if labelled else "")
    if not labelled:
        there = set(names)
        names = [name for name in plan.names() if name in there]
    objects.delete(found, plan.namespace, names)
    return len(names)
