"""Build the manifests of a benchmark's objects in a cluster. Pure.

There is an Indexed Job for each role, a ConfigMap with the peers' addresses, from which parts find
each other without DNS, and a claim for fio. A Job is never tried twice: a second measurement would
be a different one.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from scaletest.benchmarks.documents import MOST_NAME, Benchmark
from scaletest.benchmarks.kinds import (
    DIFFERENT_NODES,
    GROUP,
    SAME_NODE,
    Kind,
    Part,
    PartAddress,
    PodOverrides,
)
from scaletest.benchmarks.objects import ssh
from scaletest.cluster.objects import Document
from scaletest.model import checks

# Names of benchmarks in a cluster; their Jobs and pods have longer ones.
NAME = re.compile(rf"[a-z]([a-z0-9-]{{0,{MOST_NAME - 2}}}[a-z0-9])?")
# Pods of an earlier benchmark of the same name may still exist: the uid tells them apart.
BENCHMARK = f"{GROUP}/benchmark"
ROLE = f"{GROUP}/role"
UID = f"{GROUP}/uid"
# Annotations of Kubernetes and of Multus.
INDEX = "batch.kubernetes.io/job-completion-index"
MULTUS = "v1.multus-cni.io/default-network"
MULTUS_STATUS = "k8s.v1.cni.cncf.io/network-status"
# Keys of the ConfigMap of the peers; the last one is there once measuring has begun.
DOCUMENT = "benchmark.json"
PEERS = "peers.json"
HOSTS = "hosts"
MEASURING = "measuring"
# Paths in pods: that ConfigMap, the tools' files, and the file of a server that is ready.
FOLDER = "/scaletest"
SCRATCH = "/scratch"
READY = "/tmp/ready"
# Until all parts have a node and servers are ready, unless the spec says otherwise.
START_LIMIT_S = 600.0
LIMIT_SLACK_S = 60.0  # added to the benchmark's own limit, which counts from then on
KEEP_POD_S = 3600.0  # how long the log can be read after that
# The group of the images' user: without it a fresh volume belongs to root alone.
GROUP_ID = 10001


def require_runnable(benchmark: Benchmark) -> None:
    """Raise UsageError for a benchmark that cannot run in any cluster."""
    nodes = {part.node for part in benchmark.kind.layout(benchmark.spec)}
    checks.raise_first_mistake(
        (
            not NAME.fullmatch(benchmark.name),
            f"the name {benchmark.name[:80]!r} cannot be used for Jobs",
            f"use a-z, 0-9 and '-', a letter first, {MOST_NAME} characters at most",
        ),
        (
            benchmark.spec.nodes and len(benchmark.spec.nodes) < len(nodes),
            f"the benchmark uses {len(nodes)} nodes, and its spec names"
            f" {len(benchmark.spec.nodes)}",
            "name more nodes, or none",
        ),
    )


def start_limit_s(benchmark: Benchmark) -> float:
    """Return the seconds within which all parts must have started."""
    return float(benchmark.spec.start_limit or START_LIMIT_S)


def name_of(benchmark: Benchmark, role: str) -> str:
    """Return the name of a role's objects."""
    return f"{benchmark.name}-{role}"


def result_name(name: str) -> str:
    """Return the name of the ConfigMap with the result."""
    return f"{name}-result"


def image_of(kind: Kind, image: str) -> str:
    """Derive a kind's image from that of benchmarks: another name, same registry and tag.

    An image with a digest, or with a name that scaletest does not know, is used as it is.
    """
    return re.sub(r"(^|/)scaletest-benchmarks(?=:[^/@]*$|$)", rf"\1scaletest-{kind.image}", image)


def server_parts(benchmark: Benchmark) -> list[Part]:
    """List the parts that do not measure."""
    return [
        part
        for part in benchmark.kind.layout(benchmark.spec)
        if part.role != benchmark.kind.measures
    ]


def pod_labels(benchmark: Benchmark) -> dict[str, str]:
    """Return the labels that all pods of a benchmark share."""
    return {BENCHMARK: benchmark.name}


def selector_of(name: str, uid: str) -> str:
    """Build the label selector of the objects that one benchmark owns."""
    return f"{BENCHMARK}={name},{UID}={uid}"


def owned_metadata(benchmark: Benchmark, name: str, owner: Document) -> Document:
    """Build the metadata of an object that is deleted together with its owner."""
    return {
        "name": name,
        "labels": {
            **pod_labels(benchmark),
            UID: owner["uid"],
            "app.kubernetes.io/managed-by": "scaletest",
        },
        "ownerReferences": [owner],
    }


def peers_map(benchmark: Benchmark, owner: Document) -> Document:
    """Build the ConfigMap of the peers, before their addresses are known."""
    return {
        "metadata": owned_metadata(benchmark, name_of(benchmark, "peers"), owner),
        "data": {DOCUMENT: json.dumps(benchmark.document()), HOSTS: hosts_file([])},
    }


def hosts_file(peers: Sequence[PartAddress]) -> str:
    """Write a hosts file with these peers."""
    others = "".join(f"{peer.address} {peer.host}\n" for peer in peers)
    return f"127.0.0.1 localhost\n::1 localhost\n{others}"


def secret(benchmark: Benchmark, owner: Document) -> Document:
    """Build a Secret with a new SSH key, with which the parts start processes on each other."""
    return {
        "metadata": owned_metadata(benchmark, ssh.secret_name(benchmark.name, owner["uid"]), owner),
        "type": "Opaque",
        "immutable": True,
        "data": ssh.make_key_pair(),
    }


def claim(benchmark: Benchmark, owner: Document) -> Document | None:
    """Build the claim that all workers share; None unless many pods may mount it."""
    if not _is_claim_shared(benchmark):
        return None
    return {
        "metadata": owned_metadata(benchmark, name_of(benchmark, "scratch"), owner),
        "spec": dict(_claim_template(benchmark)),
    }


def _claim_template(benchmark: Benchmark) -> Mapping[str, Any]:
    """Return the spec of the claims of fio's workers; {} for other kinds."""
    return getattr(benchmark.spec, "volume_claim_template", {})


def _is_claim_shared(benchmark: Benchmark) -> bool:
    """Check whether all workers mount one claim."""
    return "ReadWriteMany" in _claim_template(benchmark).get("accessModes", ())


def job(benchmark: Benchmark, role: str, owner: Document, image: str) -> Document:
    """Build the Indexed Job of one role. image: unless the spec names one."""
    count = sum(part.role == role for part in benchmark.kind.layout(benchmark.spec))
    return {
        "metadata": owned_metadata(benchmark, name_of(benchmark, role), owner),
        "spec": {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "activeDeadlineSeconds": int(
                start_limit_s(benchmark) + benchmark.limit_s + LIMIT_SLACK_S + KEEP_POD_S
            ),
            "template": pod_template(benchmark, role, owner, image),
        },
    }


def pod_template(benchmark: Benchmark, role: str, owner: Document, image: str) -> Document:
    """Build the template of the pods of one role."""
    spec = benchmark.spec
    overrides = _merge_overrides(benchmark, role)
    annotations = dict(overrides.annotations)
    if spec.network_name:
        annotations[MULTUS] = spec.network_name
    volumes: list[Document] = [
        {"name": "peers", "configMap": {"name": name_of(benchmark, "peers")}},
        {"name": "scratch", **_scratch_volume(benchmark, role)},
        {"name": "tmp", "emptyDir": {}},
    ]
    # the key's file belongs to root, which ssh refuses as a user's key: each part copies it first
    if ssh.is_needed(benchmark.kind):
        key = {"secretName": ssh.secret_name(benchmark.name, owner["uid"]), "defaultMode": 0o444}
        volumes.append({"name": "ssh", "secret": key})
    pod: Document = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            "fsGroup": GROUP_ID,
            "fsGroupChangePolicy": "OnRootMismatch",
        },
        "containers": [_make_container(benchmark, role, image, overrides.resources)],
        "volumes": volumes,
    }
    # what chooses its node, where anything does
    constraints = {
        "nodeSelector": overrides.node_selector,
        "tolerations": list(overrides.tolerations),
        "affinity": _make_affinity(benchmark, role, overrides.node_affinity),
        "schedulerName": spec.scheduler_name,
    }
    pod |= {key: constraint for key, constraint in constraints.items() if constraint}
    if spec.host_network:
        pod |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    if spec.mtu is not None:
        # sets the MTU of eth0, also Multus's default network
        pod["initContainers"] = [
            {
                "name": "mtu",
                "image": spec.image or image,
                "imagePullPolicy": _pull_policy(benchmark),
                "command": ["ip", "link", "set", "dev", "eth0", "mtu", str(spec.mtu)],
                "securityContext": {
                    "runAsUser": 0,
                    "runAsNonRoot": False,
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
                },
            }
        ]
    return {
        "metadata": {
            "labels": {**overrides.labels, **pod_labels(benchmark), UID: owner["uid"], ROLE: role},
            "annotations": annotations,
        },
        "spec": pod,
    }


def _make_container(
    benchmark: Benchmark, role: str, image: str, resources: Mapping[str, Any]
) -> Document:
    """Build the container that runs a part of one role."""
    mounts: list[Document] = [
        {"name": "peers", "mountPath": FOLDER, "readOnly": True},
        {"name": "scratch", "mountPath": SCRATCH},
        {"name": "tmp", "mountPath": "/tmp"},
    ]
    if ssh.is_needed(benchmark.kind):
        mounts.append({"name": "ssh", "mountPath": ssh.MOUNT, "readOnly": True})
    container: Document = {
        "name": "benchmark",
        "image": benchmark.spec.image or image,
        "imagePullPolicy": _pull_policy(benchmark),
        "args": ["bench", "part", "--role", role, "--folder", FOLDER, "--scratch", SCRATCH],
        "env": [
            {
                "name": "JOB_COMPLETION_INDEX",
                "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}},
            },
        ],
        "resources": resources,
        "volumeMounts": mounts,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if role == benchmark.kind.measures:
        # its peers are known before the pod is created, so the file is complete from the start
        hosts = {"name": "peers", "mountPath": "/etc/hosts", "subPath": HOSTS, "readOnly": True}
        mounts.append(hosts)
    else:
        # a server is ready when its part has written a file
        test = {"command": ["test", "-f", READY]}
        container["readinessProbe"] = {"exec": test, "periodSeconds": 1}
    return container


def _pull_policy(benchmark: Benchmark) -> str:
    return benchmark.spec.image_pull_policy or "IfNotPresent"


def _scratch_volume(benchmark: Benchmark, role: str) -> Document:
    """Choose what holds the tools' files: for fio's workers its volume or claims."""
    if role != benchmark.kind.measures:
        if volume := getattr(benchmark.spec, "volume", None):
            return dict(volume)
        if _is_claim_shared(benchmark):
            return {"persistentVolumeClaim": {"claimName": name_of(benchmark, "scratch")}}
        if template := _claim_template(benchmark):
            return {"ephemeral": {"volumeClaimTemplate": {"spec": dict(template)}}}
    return {"emptyDir": {}}


def _merge_overrides(benchmark: Benchmark, role: str) -> PodOverrides:
    """Return the spec's changes to all pods, with those to the pods of the role over them."""
    common, special = benchmark.spec.pods, getattr(benchmark.spec, role, PodOverrides())
    resources: Document = {}
    for part in (benchmark.spec.resources, common.resources, special.resources):
        for kind, quantities in part.items():
            resources[kind] = {**resources.get(kind, {}), **quantities}
    return PodOverrides(
        labels={**common.labels, **special.labels},
        annotations={**common.annotations, **special.annotations},
        node_selector={**common.node_selector, **special.node_selector},
        node_affinity=special.node_affinity or common.node_affinity,
        tolerations=(*common.tolerations, *special.tolerations),
        resources=resources,
    )


def _make_affinity(benchmark: Benchmark, role: str, node_affinity: Mapping[str, Any]) -> Document:
    """Choose the nodes by name, and place pods on one node, on different ones, or on many."""
    spec, affinity = benchmark.spec, dict[str, Any]()
    parts = [part for part in benchmark.kind.layout(spec) if part.role == role]
    if node_affinity:
        affinity["nodeAffinity"] = node_affinity
    if spec.nodes:
        names = {spec.nodes[part.node % len(spec.nodes)] for part in parts}
        on_them = {"key": "kubernetes.io/hostname", "operator": "In", "values": sorted(names)}
        affinity["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [on_them]}]
            }
        }
    everyone = {
        "labelSelector": {"matchLabels": pod_labels(benchmark)},
        "topologyKey": "kubernetes.io/hostname",
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [everyone]}
    # one client of several servers may share a node with one of them
    is_lone_client = (
        role == benchmark.kind.measures and len(parts) == 1 and len(server_parts(benchmark)) > 1
    )
    if spec.placement == SAME_NODE:
        affinity["podAffinity"] = required
    elif spec.placement == DIFFERENT_NODES:
        affinity["podAntiAffinity"] = required
    elif not is_lone_client:
        affinity["podAntiAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": everyone}
            ]
        }
    return affinity
