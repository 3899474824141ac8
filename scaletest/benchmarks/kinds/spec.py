"""Fields of all specs: network, placement, pods and limits.

Names, defaults and choices of hostNetwork, networkName, resources, mtu, image and imagePullPolicy
are those of kube-perftest's CRDs, so that its documents can be read; the others are ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from scaletest.model import checks, declared, writing

SAME_NODE, DIFFERENT_NODES, SPREAD = "sameNode", "differentNodes", "spread"
TCP, RDMA = "TCP", "RDMA"


class Spec(writing.Written):
    """A spec, or a part of one, as people and Kubernetes write it."""

    camel_case = True

    def to_dict(self) -> dict[str, Any]:
        """Return the document, without fields that have their defaults."""
        written = super().to_dict()
        for member in writing.document_members(type(self)):
            if getattr(self, member.attribute) == member.default:
                del written[member.name]
        return written


@dataclass(frozen=True, kw_only=True)
class PodOverrides(Spec):
    """Changes to the pods of a benchmark, or of one of its parts."""

    labels: Annotated[Mapping[str, str], "Labels added to the pods."] = field(default_factory=dict)
    annotations: Annotated[Mapping[str, str], "Annotations added to the pods."] = field(
        default_factory=dict
    )
    node_selector: Annotated[Mapping[str, str], "Labels that the node must have."] = field(
        default_factory=dict
    )
    node_affinity: Annotated[Mapping[str, Any], "Node affinity, as in a pod's spec."] = field(
        default_factory=dict
    )
    tolerations: Annotated[tuple[Mapping[str, Any], ...], "Tolerations, as in a pod's spec."] = ()
    resources: Annotated[Mapping[str, Any], "Requests and limits of these pods only."] = field(
        default_factory=dict
    )


@dataclass(frozen=True, kw_only=True)
class CommonSpec(Spec):
    """Spec with the fields of every kind."""

    host_network: Annotated[bool, "Use the node's network instead of the pod's own."] = False
    network_name: Annotated[
        str,
        declared.text(r"|[a-z0-9.-]+(/[a-z0-9.-]+)?", "namespace/name"),
        "Multus network of the pods, as namespace/name; ignored with hostNetwork.",
    ] = ""
    resources: Annotated[
        Mapping[str, Any], "Requests and limits of the benchmark's containers."
    ] = field(default_factory=dict)
    mtu: Annotated[
        Annotated[int, Meta(ge=68, le=65535)] | None,
        "MTU of the interface inside the pod, in bytes; ignored with hostNetwork. The result has"
        " the one that was used.",
    ] = None
    image: Annotated[str, "Image of the benchmark; empty: the kind's default."] = ""
    image_pull_policy: Annotated[
        str | None,
        declared.choice(("Always", "IfNotPresent", "Never")),
        "When the image is pulled; not set: the operator's choice.",
    ] = None
    scheduler_name: Annotated[
        str,
        declared.text(r"|[a-z0-9.-]{1,253}", "a name"),
        "Scheduler of the pods; empty: the operator's choice.",
    ] = ""
    ip_family: Annotated[
        str, declared.choice(("IPv4", "IPv6")), "Family of the addresses that the peers use."
    ] = "IPv4"
    placement: Annotated[
        str,
        declared.choice((SPREAD, SAME_NODE, DIFFERENT_NODES)),
        "Where the parts run: spread over nodes when there are several, all on one node, or never"
        " two on one node.",
    ] = SPREAD
    nodes: Annotated[
        tuple[str, ...], "Names of the nodes to use, in the order of the parts; empty: any nodes."
    ] = ()
    cpu_affinity: Annotated[
        str,
        declared.text(r"|\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", "CPUs, e.g. 0-3,8"),
        "CPUs that the tool's processes are bound to, such as 0-3,8.",
    ] = ""
    time_limit: Annotated[
        int, Meta(ge=0), "Seconds after which the benchmark fails; 0: the kind's default."
    ] = 0
    start_limit: Annotated[
        int, Meta(ge=0), "Seconds, in a cluster, by which all parts must have started; 0: 600."
    ] = 0
    paused: Annotated[bool, "Do not start the benchmark until this is false."] = False
    pods: Annotated[PodOverrides, "Changes to all pods of the benchmark."] = PodOverrides()

    def __post_init__(self) -> None:
        checks.raise_first_mistake(
            (
                self.mtu is not None and self.mtu < 1280 and self.ip_family == "IPv6",
                f"mtu {self.mtu} is too small for IPv6",
                "IPv6 needs 1280 (RFC 8200)",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class PairSpec(CommonSpec):
    """Spec of a benchmark with a server and a client."""

    server: Annotated[PodOverrides, "Changes to the server's pod."] = PodOverrides()
    client: Annotated[PodOverrides, "Changes to the client's pod."] = PodOverrides()


@dataclass(frozen=True, kw_only=True)
class CrowdSpec(CommonSpec):
    """Spec of a benchmark with a master that measures, and workers."""

    master: Annotated[PodOverrides, "Changes to the master's pod."] = PodOverrides()
    worker: Annotated[PodOverrides, "Changes to the workers' pods."] = PodOverrides()


@dataclass(frozen=True, kw_only=True)
class MpiSpec(CrowdSpec):
    """Spec of a benchmark with a master that starts MPI processes on workers."""

    ssh_port: Annotated[int, Meta(ge=1, le=65535), "Port of the SSH servers of the workers."] = 2222
    transport: Annotated[
        str,
        declared.choice((TCP, RDMA)),
        declared.text_aliases({"tcp": TCP, "rdma": RDMA}),
        "Transport of MPI: TCP, or RDMA by UCX.",
    ] = TCP
