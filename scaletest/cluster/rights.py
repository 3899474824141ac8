"""What we may do, asked before anything is done: a run that fails half-way for want of a right helps nobody."""

from __future__ import annotations

from typing import Any, NamedTuple

from scaletest.cluster.connection import TIMEOUT_S, Cluster, explained


class Right(NamedTuple):
    """A verb on a resource. why: what it is for. everywhere: in all namespaces."""

    verb: str
    group: str
    resource: str
    why: str = ""
    everywhere: bool = False

    def __str__(self) -> str:
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {name}{' in all namespaces' if self.everywhere else ''}"


# Without these there is no validation.
NEEDED: tuple[Right, ...] = (
    Right("get", "apps", "deployments", "the pods' template and labels"),
    Right("get", "apps", "deployments/scale", "the number of pods, to put it back"),
    Right("patch", "apps", "deployments/scale", "set the number of pods"),
    Right("list", "", "pods", "who is ready"),
    Right("list", "autoscaling", "horizontalpodautoscalers", "who else scales"),
)
PROXY = Right("get", "", "services/proxy", "steer the client (--client svc/NAME)")
# Where KEDA is installed.
KEDA = Right("list", "keda.sh", "scaledobjects", "who else scales")
PAUSE = Right("patch", "keda.sh", "scaledobjects", "pause KEDA (--pause-autoscalers)")
# Without these something is unknown, and a validation goes on.
EXPLAIN = (
    Right("list", "", "events", "say why a pod is not ready"),
    Right("get", "", "pods/log", "say why a pod is not ready"),
)
# What the nodes show to workers is in their logs.
VIEWS = (Right("list", "", "pods"), Right("get", "", "pods/log"))
LISTED = (Right("list", "apps", "deployments", "look at all Deployments, not at one (cluster check)"),)
QUOTA = (Right("list", "", "resourcequotas", "how many pods the quota admits"),)
CAPACITY = (
    Right("list", "", "nodes", "how many pods the nodes can take", True),
    Right("list", "", "pods", "how many pods the nodes can take", True),
)
SLICES = (Right("list", "resource.k8s.io", "resourceslices", "devices of dynamic resource allocation", True),)
CLASSES = (Right("list", "resource.k8s.io", "deviceclasses", "devices of dynamic resource allocation", True),)


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
