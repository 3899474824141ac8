"""Build the manifests of a benchmark's objects in a cluster. Pure.

There is an Indexed Job for each role behind one headless Service, a ConfigMap with the peers'
addresses, from which parts find each other without DNS, and a claim for fio. A Job is never tried
twice: a second measurement would be a different one.
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
BENCHMARK, ROLE, UID = f"{GROUP}/benchmark", f"{GROUP}/role", f"{GROUP}/uid"
INDEX = "batch.kubernetes.io/job-completion-index"
MULTUS, MULTUS_STATUS = "v1.multus-cni.io/default-network", "k8s.v1.cni.cncf.io/network-status"
PEERS, HOSTS, DOCUMENT, MEASURING = "peers.json", "hosts", "benchmark.json", "measuring"
FOLDER, SCRATCH, READY = "/scaletest", "/scratch", "/tmp/ready"
START_LIMIT_S = (
    600.0  # until all parts have a node and servers are ready, unless the spec says otherwise
)
LIMIT_SLACK_S = 60.0  # added to the benchmark's own limit, which counts from then on
KEEP_POD_S = 3600.0  # how long the log can be read after that


def require_runnable(benchmark: Benchmark) -> None:
    """Raise UsageError for a benchmark that cannot run in any cluster."""
    nodes = {part.node for part in benchmark.kind.layout(benchmark.spec)}
    checks.raise_first_mistake(
        (
            not NAME.fullmatch(benchmark.name),
            f"the name {benchmark.name[:80]!r} cannot be used for a Service and its Jobs",
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


def service(benchmark: Benchmark, owner: Document) -> Document:
    """Build the Service that gives pods names in DNS; the benchmark itself does not need them."""
    return {
        "metadata": owned_metadata(benchmark, benchmark.name, owner),
        "spec": {
            "clusterIP": "None",
            "selector": pod_labels(benchmark),
            "publishNotReadyAddresses": True,
        },
    }


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
    template = getattr(benchmark.spec, "volume_claim_template", None)
    if not template or "ReadWriteMany" not in template.get("accessModes", ()):
        return None
    return {
        "metadata": owned_metadata(benchmark, name_of(benchmark, "scratch"), owner),
        "spec": dict(template),
    }


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
    spec, overrides = benchmark.spec, _merge_overrides(benchmark, role)
    measures = role == benchmark.kind.measures
    pull_policy = spec.image_pull_policy or "IfNotPresent"
    annotations = dict(overrides.annotations)
    if spec.network_name:
        annotations[MULTUS] = spec.network_name
    # the scratch volume: the spec's volume, claims of fio's workers, or an emptyDir
    scratch: Document = {"emptyDir": {}}
    template = getattr(spec, "volume_claim_template", None)
    volume = getattr(spec, "volume", None)
    if volume and not measures:
        scratch = dict(volume)
    elif template and not measures:
        scratch = {"ephemeral": {"volumeClaimTemplate": {"spec": dict(template)}}}
        if "ReadWriteMany" in template.get("accessModes", ()):
            scratch = {"persistentVolumeClaim": {"claimName": name_of(benchmark, "scratch")}}
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
    if measures:
        # its peers are known before the pod is created, so the file is complete from the start
        mounts.append(
            {"name": "peers", "mountPath": "/etc/hosts", "subPath": HOSTS, "readOnly": True}
        )
    container: Document = {
        "name": "benchmark",
        "image": spec.image or image,
        "imagePullPolicy": pull_policy,
        "args": ["bench", "part", "--role", role, "--folder", FOLDER, "--scratch", SCRATCH],
        "env": [
            {
                "name": "JOB_COMPLETION_INDEX",
                "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}},
            },
        ],
        "resources": overrides.resources,
        "volumeMounts": mounts,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    # a server is ready when its part has written a file
    if not measures:
        container["readinessProbe"] = {
            "exec": {"command": ["test", "-f", READY]},
            "periodSeconds": 1,
        }
    pod: Document = {
        "restartPolicy": "Never",
        "subdomain": benchmark.name,
        "terminationGracePeriodSeconds": 5,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            # the group of the images' user: without it a fresh volume belongs to root alone
            "fsGroup": 10001,
            "fsGroupChangePolicy": "OnRootMismatch",
        },
        "containers": [container],
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
                "imagePullPolicy": pull_policy,
                "command": ["ip", "link", "set", "dev", "eth0", "mtu", str(spec.mtu)],
                "securityContext": {
                    "runAsUser": 0,
                    "runAsNonRoot": False,
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
                },
            }
        ]
    # the key's file belongs to root, which ssh refuses as a user's key: each part copies it first
    if ssh.is_needed(benchmark.kind):
        key = {"secretName": ssh.secret_name(benchmark.name, owner["uid"]), "defaultMode": 0o444}
        volumes.append({"name": "ssh", "secret": key})
        mounts.append({"name": "ssh", "mountPath": ssh.MOUNT, "readOnly": True})
    return {
        "metadata": {
            "labels": {**overrides.labels, **pod_labels(benchmark), UID: owner["uid"], ROLE: role},
            "annotations": annotations,
        },
        "spec": pod,
    }


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
