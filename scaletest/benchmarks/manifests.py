"""The objects of one benchmark in a cluster, as documents. Pure.

An Indexed Job for each role behind one headless Service; a ConfigMap with the peers' addresses, from which parts find
each other without DNS; a claim for fio. A Job is never tried twice: a second measurement would be another one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from scaletest.benchmarks import ssh
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.common import DIFFERENT_NODES, SAME_NODE, PodOverrides
from scaletest.kinds.kind import Kind, Part, PartAddress
from scaletest.kinds.registry import GROUP

# Another benchmark may have had the name, and its pods may still be there: a result is of one uid.
BENCHMARK, ROLE, UID = f"{GROUP}/benchmark", f"{GROUP}/role", f"{GROUP}/uid"
INDEX = "batch.kubernetes.io/job-completion-index"
MULTUS, MULTUS_STATUS = "v1.multus-cni.io/default-network", "k8s.v1.cni.cncf.io/network-status"
PEERS, HOSTS, DOCUMENT, MEASURING = "peers.json", "hosts", "benchmark.json", "measuring"
FOLDER, SCRATCH, READY = "/scaletest", "/scratch", "/tmp/ready"
# That of the images' user: a fresh volume belongs to root alone.
GROUP_ID = 10001
# Until all parts are placed and servers are ready, unless the spec says otherwise;
# then the benchmark's own limit; then the log may still be read.
START_S, SPARE_S, HOLD_S = 600.0, 60.0, 3600.0
Document = dict[str, Any]


def start_s(benchmark: Benchmark) -> float:
    """Seconds by which all parts must have started."""
    return float(benchmark.spec.start_limit or START_S)


def name_of(benchmark: Benchmark, role: str) -> str:
    """Of the objects of a role."""
    return f"{benchmark.name}-{role}"


def result_name(name: str) -> str:
    """Of the ConfigMap with the result."""
    return f"{name}-result"


def image_of(kind: Kind, image: str) -> str:
    """The image of a kind, given that of benchmarks in general: beside it, in the same place and with the same tag.

    One with a digest, or of another name, is what there is.
    """
    return re.sub(r"(^|/)scaletest-benchmarks(?=:[^/@]*$|$)", rf"\1scaletest-{kind.image}", image)


def servers(benchmark: Benchmark) -> list[Part]:
    """The parts that do not measure."""
    return [one for one in benchmark.kind.layout(benchmark.spec) if one.role != benchmark.kind.measures]


def labels(benchmark: Benchmark) -> dict[str, str]:
    """Those by which pods of a benchmark know each other."""
    return {BENCHMARK: benchmark.name}


def own(name: str, uid: str) -> str:
    """The selector of what was made of that very benchmark."""
    return f"{BENCHMARK}={name},{UID}={uid}"


def meta(benchmark: Benchmark, name: str, owner: Document) -> Document:
    """Metadata of an object that goes with its owner."""
    more = {UID: owner["uid"], "app.kubernetes.io/managed-by": "scaletest"}
    return {"name": name, "labels": {**labels(benchmark), **more}, "ownerReferences": [owner]}


def peers_map(benchmark: Benchmark, owner: Document) -> Document:
    """The ConfigMap of the peers, still without them."""
    document = json.dumps(benchmark.document())
    metadata = meta(benchmark, name_of(benchmark, "peers"), owner)
    return {"metadata": metadata, "data": {DOCUMENT: document, HOSTS: hosts([])}}


def hosts(peers: Sequence[PartAddress]) -> str:
    """A hosts file with these peers."""
    rows = ["127.0.0.1 localhost", "::1 localhost", *(f"{one.address} {one.host}" for one in peers)]
    return "\n".join(rows) + "\n"


def service(benchmark: Benchmark, owner: Document) -> Document:
    """Gives the pods names where there is DNS; nothing here needs them."""
    return {
        "metadata": meta(benchmark, benchmark.name, owner),
        "spec": {"clusterIP": "None", "selector": labels(benchmark), "publishNotReadyAddresses": True},
    }


def secret(benchmark: Benchmark, owner: Document) -> Document:
    """The key, a new one, with which the parts start processes on each other."""
    metadata = meta(benchmark, ssh.secret_name(benchmark.name, owner["uid"]), owner)
    return {"metadata": metadata, "type": "Opaque", "immutable": True, "data": ssh.pair()}


def claim(benchmark: Benchmark, owner: Document) -> Document | None:
    """The one claim of all workers, when it may be mounted by many."""
    template = getattr(benchmark.spec, "volume_claim_template", None)
    if not template or "ReadWriteMany" not in template.get("accessModes", ()):
        return None
    return {"metadata": meta(benchmark, name_of(benchmark, "scratch"), owner), "spec": dict(template)}


def job(benchmark: Benchmark, parts: Sequence[Part], owner: Document, image: str) -> Document:
    """The Indexed Job of one role."""
    role, count = parts[0].role, len(parts)
    measuring = role == benchmark.kind.measures
    pod = _pod(benchmark, role, parts, image, measuring)
    if ssh.wanted(benchmark.kind):
        ssh.mounted(pod, ssh.secret_name(benchmark.name, owner["uid"]))
    return {
        "metadata": meta(benchmark, name_of(benchmark, role), owner),
        "spec": {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "activeDeadlineSeconds": int(start_s(benchmark) + benchmark.limit_s + SPARE_S + HOLD_S),
            "template": {
                "metadata": _pod_meta(benchmark, role, owner),
                "spec": pod,
            },
        },
    }


def _pod_meta(benchmark: Benchmark, role: str, owner: Document) -> Document:
    spec, annotations, more = benchmark.spec, dict[str, str](), dict[str, str]()
    for one in _customised(benchmark, role):
        annotations |= one.annotations
        more |= one.labels
    if spec.network_name:
        annotations[MULTUS] = spec.network_name
    return {"labels": {**more, **labels(benchmark), UID: owner["uid"], ROLE: role}, "annotations": annotations}


def _customised(benchmark: Benchmark, role: str) -> tuple[PodOverrides, ...]:
    """What the spec says of all pods, then of those of the role."""
    own = getattr(benchmark.spec, role, None)
    return (benchmark.spec.pods, *([own] if isinstance(own, PodOverrides) else []))


def _pod(benchmark: Benchmark, role: str, parts: Sequence[Part], image: str, measuring: bool) -> Document:
    spec = benchmark.spec
    volumes, mounts = _volumes(benchmark, role, measuring)
    container: Document = {
        "name": "benchmark",
        "image": spec.image or image,
        "imagePullPolicy": spec.image_pull_policy,
        "args": ["bench", "part", "--role", role, "--folder", FOLDER, "--scratch", SCRATCH],
        "env": [
            {
                "name": "JOB_COMPLETION_INDEX",
                "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}},
            },
        ],
        "resources": _resources(benchmark, role),
        "volumeMounts": mounts,
        "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        },
    }  # fmt: skip
    if not measuring:
        container["readinessProbe"] = {"exec": {"command": ["test", "-f", READY]}, "periodSeconds": 1}
    return {
        "restartPolicy": "Never",
        "subdomain": benchmark.name,
        "terminationGracePeriodSeconds": 5,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            "fsGroup": GROUP_ID,
            "fsGroupChangePolicy": "OnRootMismatch",
        },
        "containers": [container],
        "volumes": volumes,
        **_place(benchmark, role, parts, measuring),
        **_wished(benchmark, spec.image or image),
    }


def _wished(benchmark: Benchmark, image: str) -> Document:
    """Account and network, where the spec has wishes."""
    spec, found = benchmark.spec, dict[str, Any]()
    if account := getattr(spec, "service_account_name", ""):
        found |= {"serviceAccountName": account, "automountServiceAccountToken": True}
    if spec.host_network:
        found |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    if spec.mtu is not None:
        found["initContainers"] = [_mtu(benchmark, image, spec.mtu)]
    return found


def _mtu(benchmark: Benchmark, image: str, mtu: int) -> Document:
    """Sets the MTU in the pod's own network namespace, where a default network of Multus is eth0 too."""
    return {
        "name": "mtu",
        "image": image,
        "imagePullPolicy": benchmark.spec.image_pull_policy,
        "command": ["ip", "link", "set", "dev", "eth0", "mtu", str(mtu)],
        "securityContext": {
            "runAsUser": 0,
            "runAsNonRoot": False,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
        },
    }


def _resources(benchmark: Benchmark, role: str) -> Document:
    found: Document = {name: dict(value) for name, value in benchmark.spec.resources.items()}
    for one in _customised(benchmark, role):
        for name, value in one.resources.items():
            found[name] = {**found.get(name, {}), **value}
    return found


def _volumes(benchmark: Benchmark, role: str, measuring: bool) -> tuple[list[Document], list[Document]]:
    """The peers, and what scratch is: the spec's volume or claims for fio's workers, else an emptyDir."""
    spec, scratch = benchmark.spec, dict[str, Any](emptyDir={})
    template = getattr(spec, "volume_claim_template", None)
    if not measuring and getattr(spec, "volume", None):
        scratch = dict(getattr(spec, "volume"))  # noqa: B009
    elif not measuring and template and "ReadWriteMany" in template.get("accessModes", ()):
        scratch = {"persistentVolumeClaim": {"claimName": name_of(benchmark, "scratch")}}
    elif not measuring and template:
        scratch = {"ephemeral": {"volumeClaimTemplate": {"spec": dict(template)}}}
    volumes: list[Document] = [
        {"name": "peers", "configMap": {"name": name_of(benchmark, "peers")}},
        {"name": "scratch", **scratch},
        {"name": "tmp", "emptyDir": {}},
    ]
    mounts: list[Document] = [
        {"name": "peers", "mountPath": FOLDER, "readOnly": True},
        {"name": "scratch", "mountPath": SCRATCH},
        {"name": "tmp", "mountPath": "/tmp"},
    ]
    if measuring:
        # its peers are known before it is made, so the file is whole from the start
        mounts.append({"name": "peers", "mountPath": "/etc/hosts", "subPath": HOSTS, "readOnly": True})
    return volumes, mounts


def _place(benchmark: Benchmark, role: str, parts: Sequence[Part], measuring: bool) -> Document:
    """Where pods may go: the spec's nodes, all on one, all on different ones, or spread as far as there are nodes."""
    spec, found = benchmark.spec, dict[str, Any]()
    selector, tolerations, affinity = dict[str, str](), list[Any](), dict[str, Any]()
    for one in _customised(benchmark, role):
        selector |= one.node_selector
        tolerations += one.tolerations
        if one.node_affinity:
            affinity["nodeAffinity"] = dict(one.node_affinity)
    if spec.nodes:
        affinity["nodeAffinity"] = _on([spec.nodes[part.node % len(spec.nodes)] for part in parts])
    everyone = {"labelSelector": {"matchLabels": labels(benchmark)}, "topologyKey": "kubernetes.io/hostname"}
    if spec.placement == SAME_NODE:
        affinity["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [everyone]}
    elif spec.placement == DIFFERENT_NODES:
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [everyone]}
    elif not (measuring and len(parts) == 1 and len(servers(benchmark)) > 1):
        affinity["podAntiAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": everyone}]
        }
    for name, value in (("nodeSelector", selector), ("tolerations", tolerations), ("affinity", affinity)):
        if value:
            found[name] = value
    return found


def _on(nodes: Sequence[str]) -> Mapping[str, Any]:
    values = [{"key": "kubernetes.io/hostname", "operator": "In", "values": sorted(set(nodes))}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": values}]}}
