"""Check our rights before a run begins, so that it does not fail half-way without one."""

from collections.abc import Iterable
from typing import NamedTuple

from scaletest.cluster import discovery
from scaletest.cluster.api_calls import ApiCalls, Cluster
from scaletest.cluster.resources import DEPLOYMENTS, Resource
from scaletest.model.errors import Unreachable


class Right(NamedTuple):
    """A verb on a resource."""

    verb: str
    group: str
    resource: str
    why: str = ""  # what needs it
    everywhere: bool = False  # in all namespaces

    def __str__(self) -> str:
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        scope = " in all namespaces" if self.everywhere else ""
        return f"{self.verb} {name}{scope}"


# Required for a validation.
NEEDED: tuple[Right, ...] = (
    Right("get", "apps", "deployments", "the pods' template and labels, and their number"),
    Right("patch", "apps", "deployments", "set the number of pods, and note what it was"),
    Right("list", "", "pods", "count the pods that are ready"),
    Right("list", "autoscaling", "horizontalpodautoscalers", "see which autoscalers there are"),
)
CALL_BY_PROXY = Right("create", "", "services/proxy", "load the Service from outside")
PROXY = Right("get", "", "services/proxy", "control the client (<client> svc/NAME)")
HOLD = tuple(
    Right(verb, "autoscaling", "horizontalpodautoscalers", "hold an HPA (<pause_autoscalers>)")
    for verb in ("get", "patch")
)
# Required where KEDA is installed.
KEDA = Right("list", "keda.sh", "scaledobjects", "see which autoscalers there are")
PAUSE = tuple(
    Right(verb, "keda.sh", "scaledobjects", "pause KEDA (<pause_autoscalers>)")
    for verb in ("get", "patch")
)
# Optional: without these a validation continues, but some information is missing.
EXPLAIN = (
    Right("list", "", "events", "explain why a pod is not ready"),
    Right("get", "", "pods/log", "explain why a pod is not ready"),
)
QUOTA = (Right("list", "", "resourcequotas", "how many pods the quota admits"),)
CAPACITY = (
    Right("list", "", "nodes", "how many pods the nodes can take", everywhere=True),
    Right("list", "", "pods", "how many pods the nodes can take", everywhere=True),
)


def service_rights(resource: Resource) -> tuple[Right, ...]:
    """Return what doubling the replicas of a service needs, where these are of this kind."""
    group, plural = resource.api.split("/")[2], resource.plural
    scale = () if resource == DEPLOYMENTS else (Right("get", group, f"{plural}/scale"),)
    return (
        Right("get", group, plural),
        Right("patch", group, plural),
        *scale,
        Right("get", "", "services"),
        Right("list", "discovery.k8s.io", "endpointslices"),
        Right("list", "", "pods"),
        Right("list", "autoscaling", "horizontalpodautoscalers"),
    )


def require(cluster: Cluster, wanted: tuple[Right, ...], *, may_hold: bool) -> None:
    """Raise Unreachable when a right is missing that a run needs.

    may_hold: whether it may hold autoscalers, which needs more.
    """
    if may_hold:
        wanted += HOLD
    if KEDA.group in discovery.api_groups(cluster):
        wanted += (KEDA, *(PAUSE if may_hold else ()))
    lacking = missing_rights(cluster, wanted)
    if lacking:
        raise refusal(lacking, cluster.namespace)


def refusal(lacking: Iterable[object], namespace: str) -> Unreachable:
    """Return the error for missing rights. lacking: rights, or their texts."""
    return Unreachable(
        f"we may not {', '.join(map(str, lacking))} in namespace {namespace}",
        hint=(
            "bind the Role of the chart, or of docs/how-to/kubernetes.md, to this user or service"
            " account"
        ),
    )


def missing_rights(cluster: Cluster, wanted: tuple[Right, ...]) -> list[Right]:
    """Return the rights of `wanted` that the API server does not grant us."""
    api = ApiCalls(cluster)
    lacking = []
    for right in wanted:
        resource, _, subresource = right.resource.partition("/")
        attributes = {
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": "" if right.everywhere else cluster.namespace,
        }
        answer = api.write(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": attributes}},
            "check our rights",
            "create selfsubjectaccessreviews",
        )
        if not answer["status"].get("allowed"):
            lacking.append(right)
    return lacking
