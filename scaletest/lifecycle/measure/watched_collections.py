"""Which collections of a cluster belong to a run, and are listed and watched for it."""

from collections.abc import Iterable
from contextlib import suppress

from scaletest.cluster.bulk_objects import Objects
from scaletest.cluster.connection import Missing
from scaletest.cluster.watch import Collection
from scaletest.lifecycle import kinds
from scaletest.lifecycle.plan import LifecyclePlan

PODGROUPS = (
    ("scheduling.run.ai/v1", "PodGroup"),
    ("scheduling.run.ai/v2alpha2", "PodGroup"),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    ("scheduling.volcano.sh/v1beta1", "PodGroup"),
)
# Of these versions the first that the cluster has.
CLAIMS = tuple(
    (f"resource.k8s.io/{each}", "ResourceClaim") for each in ("v1", "v1beta2", "v1beta1")
)


def collections_of(plan: LifecyclePlan, objects: Objects) -> list[Collection]:
    """Return what to watch. Raises Missing when the cluster lacks the kind of workload."""

    def path(api_version: str, name: str) -> str:
        return objects.resource(api_version, name).path(plan.namespace)

    def present(role: str, candidates: Iterable[tuple[str, str]]) -> list[Collection]:
        """Return what the cluster has of these kinds, which carry no labels of ours."""
        watched = []
        for candidate in candidates:
            with suppress(Missing):
                watched.append(Collection(role, path(*candidate)))
        return watched

    kind = kinds.KINDS.get(plan.workload_type)
    # the Run:ai command line takes no labels of ours
    own_label = plan.label if plan.tool != "runai" else ""
    label = own_label if kind is None or kind.labelled else ""
    watched = [Collection("pod", path("v1", "Pod"), label)]
    if plan.object_kind != "Pod":
        watched.append(Collection("workload", path(plan.api_version, plan.object_kind), own_label))
    if kind and kind.child:
        watched += present("job", [kind.child])
    watched += present("podgroup", PODGROUPS)
    if plan.pvc or "volumeClaimTemplate" in plan.template:
        watched.append(Collection("pvc", path("v1", "PersistentVolumeClaim"), label))
    if "resourceClaimTemplateName" in plan.template:
        watched += present("claim", CLAIMS)[:1]
    if plan.event_times:
        watched.append(Collection("event", path("v1", "Event")))
    return watched
