"""Fields of all specs: network, placement, pods, limits.

Names, defaults and choices of hostNetwork, networkName, resources, mtu, image and imagePullPolicy
are those of kube-perftest's CRDs, so that its documents can be read; the others are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.kinds.fields import spec_field
from scaletest.model.errors import InvalidValue

SAME_NODE, DIFFERENT_NODES, SPREAD = "sameNode", "differentNodes", "spread"
PLACEMENTS = (SPREAD, SAME_NODE, DIFFERENT_NODES)
TCP, RDMA = "TCP", "RDMA"
NO_GANG, KUEUE, VOLCANO, JOBSET = "none", "kueue", "volcano", "jobset"
_MAP = {"additionalProperties": {"type": "string"}}
CPUS = r"|\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*"


@dataclass(frozen=True, kw_only=True)
class PodOverrides:
    """Changes to the pods of a benchmark, or of one of its parts."""

    labels: Mapping[str, str] = spec_field({}, "Labels added to the pods.", schema=_MAP)
    annotations: Mapping[str, str] = spec_field({}, "Annotations added to the pods.", schema=_MAP)
    node_selector: Mapping[str, str] = spec_field(
        {}, "Labels that the node must have.", schema=_MAP
    )
    node_affinity: Mapping[str, Any] = spec_field({}, "Node affinity, as in a pod's spec.")
    tolerations: tuple[Mapping[str, Any], ...] = spec_field(
        (), "Tolerations, as in a pod's spec.", schema={"items": {"type": "object"}}
    )
    resources: Mapping[str, Any] = spec_field({}, "Requests and limits of these pods only.")


@dataclass(frozen=True, kw_only=True)
class CommonSpec:
    """Spec with the fields of every kind."""

    host_network: bool = spec_field(False, "Use the node's network instead of the pod's own.")
    network_name: str = spec_field(
        "",
        "Multus network of the pods, as namespace/name; not together with hostNetwork.",
        pattern=r"|[a-z0-9.-]+(/[a-z0-9.-]+)?",
        pattern_text="namespace/name",
    )
    resources: Mapping[str, Any] = spec_field(
        {}, "Requests and limits of the benchmark's containers."
    )
    mtu: int | None = spec_field(
        None,
        "MTU of the interface inside the pod, in bytes; the result has the one that was used.",
        minimum=68,
        maximum=65535,
    )
    image: str = spec_field("", "Image of the benchmark; empty: the kind's default.")
    image_pull_policy: str = spec_field(
        "IfNotPresent", "When the image is pulled.", choices=("Always", "IfNotPresent", "Never")
    )
    ip_family: str = spec_field(
        "IPv4", "Family of the addresses that the peers use.", choices=("IPv4", "IPv6")
    )
    placement: str = spec_field(
        SPREAD,
        "Where the parts run: spread over nodes when there are several, all on one node, or never"
        " two on one node.",
        choices=PLACEMENTS,
    )
    nodes: tuple[str, ...] = spec_field(
        (), "Names of the nodes to use, in the order of the parts; empty: any nodes."
    )
    cpu_affinity: str = spec_field(
        "",
        "CPUs that the tool's processes are bound to, such as 0-3,8.",
        pattern=CPUS,
        pattern_text="CPUs as in 0-3,8",
    )
    time_limit: int = spec_field(
        0, "Seconds after which the benchmark fails; 0: the kind's default.", minimum=0
    )
    start_limit: int = spec_field(
        0, "Seconds, in a cluster, by which all parts must have started; 0: 600.", minimum=0
    )
    gang: str = spec_field(
        NO_GANG,
        "System of the cluster that admits all parts together; none: servers start before the"
        " measuring part.",
        choices=(NO_GANG, KUEUE, VOLCANO, JOBSET),
    )
    queue_name: str = spec_field(
        "",
        "Kueue's LocalQueue, or Volcano's queue.",
        pattern=r"|[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?",
        pattern_text="a name",
    )
    queue_limit: int = spec_field(
        0, "Seconds, in a cluster, by which a gang must be admitted; 0: 86400, a day.", minimum=0
    )
    paused: bool = spec_field(False, "Do not start the benchmark until this is false.")
    pods: PodOverrides = spec_field(PodOverrides(), "Changes to all pods of the benchmark.")

    def __post_init__(self) -> None:
        self._check_network()
        self._check_gang()

    def _check_network(self) -> None:
        if self.host_network and self.mtu is not None:
            raise InvalidValue(
                "mtu together with hostNetwork would change the interface of the node",
                hint="set the MTU on the node itself, or leave hostNetwork out",
            )
        if self.host_network and self.network_name:
            raise InvalidValue(
                "hostNetwork and networkName exclude each other", hint="leave one of them out"
            )
        if self.mtu is not None and self.mtu < 1280 and self.ip_family == "IPv6":
            raise InvalidValue(
                f"mtu {self.mtu} is too small for IPv6", hint="IPv6 needs 1280 (RFC 8200)"
            )

    def _check_gang(self) -> None:
        if self.gang == KUEUE and not self.queue_name:
            raise InvalidValue("gang kueue needs a queue", hint="name a LocalQueue with queueName")
        if self.queue_name and self.gang not in (KUEUE, VOLCANO):
            raise InvalidValue(
                f"queueName {self.queue_name} has no effect with gang {self.gang}",
                hint="set gang to kueue or volcano",
            )
        if self.queue_limit and self.gang == NO_GANG:
            raise InvalidValue(
                "queueLimit has no effect without a gang", hint="set gang, or use startLimit"
            )


@dataclass(frozen=True, kw_only=True)
class ActingSpec(CommonSpec):
    """Spec of a benchmark that uses the Kubernetes API."""

    service_account_name: str = spec_field(
        "",
        "Service account of the pod; empty: the operator's choice.",
        pattern=r"|[a-z0-9.-]{1,253}",
        pattern_text="a name",
    )


@dataclass(frozen=True, kw_only=True)
class PairSpec(CommonSpec):
    """Spec of a benchmark with a server and a client."""

    server: PodOverrides = spec_field(PodOverrides(), "Changes to the server's pod.")
    client: PodOverrides = spec_field(PodOverrides(), "Changes to the client's pod.")


@dataclass(frozen=True, kw_only=True)
class CrowdSpec(CommonSpec):
    """Spec of a benchmark with a master that measures, and workers."""

    master: PodOverrides = spec_field(PodOverrides(), "Changes to the master's pod.")
    worker: PodOverrides = spec_field(PodOverrides(), "Changes to the workers' pods.")


@dataclass(frozen=True, kw_only=True)
class MpiSpec(CrowdSpec):
    """Spec of a benchmark with a master that starts MPI processes on workers."""

    ssh_port: int = spec_field(
        2222, "Port of the SSH servers of the workers.", minimum=1, maximum=65535
    )
    transport: str = spec_field(
        TCP,
        "Transport of MPI: TCP, or RDMA by UCX.",
        choices=(TCP, RDMA),
        aliases={"tcp": TCP, "rdma": RDMA},
    )
