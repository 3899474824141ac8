"""Takes a run's objects away: by its label in one request, or by name where the tool could not label them."""

from __future__ import annotations

from scaletest.cluster.objects import Objects
from scaletest.lifecycle.plan import LifecyclePlan


def delete_all(plan: LifecyclePlan, objects: Objects) -> int:
    """Delete what the run submitted; how many objects there were. Raises Refused, Unreachable."""
    found = objects.resource(plan.api_version, plan.object_kind)
    if plan.tool != "runai":
        count = len(objects.names(found, plan.namespace, plan.label))
        if count:
            objects.delete(found, plan.namespace, plan.label)
        return count
    there = set(objects.names(found, plan.namespace, ""))
    names = [name for name in plan.names() if name in there]
    for name in names:
        objects.delete_one(found, plan.namespace, name)
    return len(names)
