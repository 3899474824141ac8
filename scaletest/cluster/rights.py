"""What we may do, asked before anything is done: a run that fails half-way for want of a right helps nobody."""

from __future__ import annotations

from typing import Any, NamedTuple

from scaletest.cluster.connection import TIMEOUT_S, Cluster, explained


class Right(NamedTuple):
    """A verb on a resource. everywhere: in all namespaces."""

    verb: str
    group: str
    resource: str
    everywhere: bool = False

    def __str__(self) -> str:
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {name}{' in all namespaces' if self.everywhere else ''}"


NEEDED: tuple[Right, ...] = (
    Right("get", "apps", "deployments"),
    Right("get", "apps", "deployments/scale"),
    Right("patch", "apps", "deployments/scale"),
    Right("list", "", "pods"),
    Right("list", "autoscaling", "horizontalpodautoscalers"),
)
PROXY = Right("get", "", "services/proxy")
PAUSE = Right("patch", "keda.sh", "scaledobjects")
EXPLAIN = (Right("list", "", "events"), Right("get", "", "pods/log"))
KEDA = Right("list", "keda.sh", "scaledobjects")
CAPACITY = (Right("list", "", "nodes", True), Right("list", "", "pods", True))
DEVICES = (Right("list", "resource.k8s.io", "resourceslices", True),)


def missing(cluster: Cluster, wanted: tuple[Right, ...]) -> list[Right]:
    """Those of `wanted` that we do not have, as the API server sees it."""
    from kubernetes.client import AuthorizationV1Api

    api: Any = AuthorizationV1Api(cluster.client)  # takes plain dictionaries too
    found = []
    for right in wanted:
        resource, _, subresource = right.resource.partition("/")
        attributes = {
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": "" if right.everywhere else cluster.namespace,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        with explained("ask for our rights", "create selfsubjectaccessreviews"):
            answer = api.create_self_subject_access_review(body, _request_timeout=TIMEOUT_S)
        if not answer.status.allowed:
            found.append(right)
    return found
