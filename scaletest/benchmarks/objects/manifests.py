"""Builds the documents of a benchmark's objects in a cluster. Pure.

There is an Indexed Job for each role behind one headless Service, a ConfigMap with the peers'
addresses, from which parts find each other without DNS, and a claim for fio. A Job is never tried
twice: a second measurement would be a different one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from scaletest.benchmarks.documents.benchmark import Benchmark
from scaletest.benchmarks.kinds.kind import Kind, Part, PartAddress
from scaletest.benchmarks.kinds.registry import GROUP
from scaletest.benchmarks.kinds.spec import DIFFERENT_NODES, SAME_NODE, PodOverrides
from scaletest.benchmarks.objects import ssh

# Pods of an earlier benchmark of the same name may still exist: the uid tells them apart.
BENCHMARK, ROLE, UID = f"{GROUP}/benchmark", f"{GROUP}/role", f"{GROUP}/uid"
INDEX = "batch.kubernetes.io/job-completion-index"
MULTUS, MULTUS_STATUS = "v1.multus-cni.io/default-network", "k8s.v1.cni.cncf.io/network-status"
PEERS, HOSTS, DOCUMENT, MEASURING = "peers.json", "hosts", "benchmark.json", "measuring"
FOLDER, SCRATCH, READY = "/scaletest", "/scratch", "/tmp/ready"
# The group of the images' user: without it a fresh volume belongs to root alone.
GROUP_ID = 10001
PULL_POLICY = "IfNotPresent"
# START_S: until all parts have a node and servers are ready, unless the spec says otherwise. Then
# the benchmark's own limit counts, with SPARE_S added. HOLD_S: how long the log can be read after
# that.
START_S, SPARE_S, HOLD_S = 600.0, 60.0, 3600.0
# Seconds after which a part that no node can take ends a benchmark whose spec gives no startLimit:
# other benchmarks of its namespace wait for it, and a cluster that makes nodes or volumes on demand
# has mostly made them by then.
UNSCHEDULABLE_S = 120.0
Document = dict[str, Any]


def start_s(benchmark: Benchmark) -> float:
    """Return the seconds within which all parts must have started."""
    return float(benchmark.spec.start_limit or START_S)


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


def servers(benchmark: Benchmark) -> list[Part]:
    """List the parts that do not measure."""
    return [
        part
        for part in benchmark.kind.layout(benchmark.spec)
        if part.role != benchmark.kind.measures
    ]


def labels(benchmark: Benchmark) -> dict[str, str]:
    """Return the labels that all pods of a benchmark share."""
    return {BENCHMARK: benchmark.name}


def selector_of(name: str, uid: str) -> str:
    """Build the label selector of the objects that one benchmark owns."""
    return f"{BENCHMARK}={name},{UID}={uid}"


def meta(benchmark: Benchmark, name: str, owner: Document) -> Document:
    """Build the metadata of an object that is deleted together with its owner."""
    return {
        "name": name,
        "labels": {
            **labels(benchmark),
            UID: owner["uid"],
            "app.kubernetes.io/managed-by": "scaletest",
        },
        "ownerReferences": [owner],
    }


def peers_map(benchmark: Benchmark, owner: Document) -> Document:
    """Build the ConfigMap of the peers, before their addresses are known."""
    return {
        "metadata": meta(benchmark, name_of(benchmark, "peers"), owner),
        "data": {DOCUMENT: json.dumps(benchmark.document()), HOSTS: hosts([])},
    }


def hosts(peers: Sequence[PartAddress]) -> str:
    """Write a hosts file with these peers."""
    others = "".join(f"{peer.address} {peer.host}\n" for peer in peers)
    return f"127.0.0.1 localhost\n::1 localhost\n{others}"


def service(benchmark: Benchmark, owner: Document) -> Document:
    """Build the Service that gives pods names in DNS; the benchmark itself does not need them."""
    return {
        "metadata": meta(benchmark, benchmark.name, owner),
        "spec": {
            "clusterIP": "None",
            "selector": labels(benchmark),
            "publishNotReadyAddresses": True,
        },
    }


def secret(benchmark: Benchmark, owner: Document) -> Document:
    """Build a Secret with a new SSH key, with which the parts start processes on each other."""
    return {
        "metadata": meta(benchmark, ssh.secret_name(benchmark.name, owner["uid"]), owner),
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
        "metadata": meta(benchmark, name_of(benchmark, "scratch"), owner),
        "spec": dict(template),
    }


def job(benchmark: Benchmark, role: str, owner: Document, image: str) -> Document:
    """Build the Indexed Job of one role. image: unless the spec names one."""
    parts = [part for part in benchmark.kind.layout(benchmark.spec) if part.role == role]
    count = len(parts)
    pod = _pod(benchmark, role, parts, image, role == benchmark.kind.measures)
    if ssh.wanted(benchmark.kind):
        ssh.mount_key(pod, ssh.secret_name(benchmark.name, owner["uid"]))
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
    overrides = _overrides(benchmark, role)
    annotations = dict(overrides.annotations)
    if benchmark.spec.network_name:
        annotations[MULTUS] = benchmark.spec.network_name
    return {
        "labels": {**overrides.labels, **labels(benchmark), UID: owner["uid"], ROLE: role},
        "annotations": annotations,
    }


def _overrides(benchmark: Benchmark, role: str) -> PodOverrides:
    """The spec's changes to all pods, with those to the pods of the role over them."""
    common, own = benchmark.spec.pods, getattr(benchmark.spec, role, PodOverrides())
    resources: Document = {}
    for part in (benchmark.spec.resources, common.resources, own.resources):
        for kind, quantities in part.items():
            resources[kind] = {**resources.get(kind, {}), **quantities}
    return PodOverrides(
        labels={**common.labels, **own.labels},
        annotations={**common.annotations, **own.annotations},
        node_selector={**common.node_selector, **own.node_selector},
        node_affinity=own.node_affinity or common.node_affinity,
        tolerations=(*common.tolerations, *own.tolerations),
        resources=resources,
    )


def _pod(
    benchmark: Benchmark, role: str, parts: Sequence[Part], image: str, measuring: bool
) -> Document:
    spec, overrides = benchmark.spec, _overrides(benchmark, role)
    volumes, mounts = _volumes(benchmark, role, measuring)
    container: Document = {
        "name": "benchmark",
        "image": spec.image or image,
        "imagePullPolicy": spec.image_pull_policy or PULL_POLICY,
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
    if not measuring:
        container["readinessProbe"] = {
            "exec": {"command": ["test", "-f", READY]},
            "periodSeconds": 1,
        }
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
        **_place(benchmark, overrides, parts, measuring),
        **_other_fields(benchmark, spec.image or image),
    }


def _other_fields(benchmark: Benchmark, image: str) -> Document:
    """Build the fields of a pod's spec for scheduler and network that are set."""
    spec, pod_fields = benchmark.spec, dict[str, Any]()
    if spec.scheduler_name:
        pod_fields["schedulerName"] = spec.scheduler_name
    if spec.host_network:
        pod_fields |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    if spec.mtu is not None:
        # sets the MTU of eth0, also Multus's default network
        setter = {
            "name": "mtu",
            "image": image,
            "imagePullPolicy": spec.image_pull_policy or PULL_POLICY,
            "command": ["ip", "link", "set", "dev", "eth0", "mtu", str(spec.mtu)],
            "securityContext": {
                "runAsUser": 0,
                "runAsNonRoot": False,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
            },
        }
        pod_fields["initContainers"] = [setter]
    return pod_fields


def _volumes(
    benchmark: Benchmark, role: str, measuring: bool
) -> tuple[list[Document], list[Document]]:
    """Build a pod's volumes and their mounts: peers, scratch and /tmp."""
    volumes: list[Document] = [
        {"name": "peers", "configMap": {"name": name_of(benchmark, "peers")}},
        {"name": "scratch", **_scratch(benchmark, measuring)},
        {"name": "tmp", "emptyDir": {}},
    ]
    mounts: list[Document] = [
        {"name": "peers", "mountPath": FOLDER, "readOnly": True},
        {"name": "scratch", "mountPath": SCRATCH},
        {"name": "tmp", "mountPath": "/tmp"},
    ]
    if measuring:
        # its peers are known before the pod is created, so the file is complete from the start
        mounts.append(
            {"name": "peers", "mountPath": "/etc/hosts", "subPath": HOSTS, "readOnly": True}
        )
    return volumes, mounts


def _scratch(benchmark: Benchmark, measuring: bool) -> Document:
    """Choose the scratch volume: the spec's volume, claims of fio's workers, or an emptyDir."""
    template = getattr(benchmark.spec, "volume_claim_template", None)
    volume = getattr(benchmark.spec, "volume", None)
    if volume and not measuring:
        return dict(volume)
    if measuring or not template:
        return {"emptyDir": {}}
    if "ReadWriteMany" in template.get("accessModes", ()):
        return {"persistentVolumeClaim": {"claimName": name_of(benchmark, "scratch")}}
    return {"ephemeral": {"volumeClaimTemplate": {"spec": dict(template)}}}


def _place(
    benchmark: Benchmark, overrides: PodOverrides, parts: Sequence[Part], measuring: bool
) -> Document:
    """Build the fields of a pod's spec that choose its node."""
    affinity: Document = {"nodeAffinity": overrides.node_affinity}
    nodes = benchmark.spec.nodes
    if nodes:
        affinity["nodeAffinity"] = _on([nodes[part.node % len(nodes)] for part in parts])
    lone_client = measuring and len(parts) == 1 and len(servers(benchmark)) > 1
    affinity |= _pod_affinity(benchmark, lone_client)
    constraints: Document = {
        "nodeSelector": overrides.node_selector,
        "tolerations": list(overrides.tolerations),
        "affinity": {kind: terms for kind, terms in affinity.items() if terms},
    }
    return {key: constraint for key, constraint in constraints.items() if constraint}


def _pod_affinity(benchmark: Benchmark, lone_client: bool) -> Document:
    """Place pods on one node, on different ones, or on as many as there are.

    lone_client: one client of several servers may share a node with one of them.
    """
    everyone = {
        "labelSelector": {"matchLabels": labels(benchmark)},
        "topologyKey": "kubernetes.io/hostname",
    }
    if benchmark.spec.placement == SAME_NODE:
        return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [everyone]}}
    if benchmark.spec.placement == DIFFERENT_NODES:
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [everyone]}}
    if lone_client:
        return {}
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": everyone}
            ]
        }
    }


def _on(nodes: Sequence[str]) -> Mapping[str, Any]:
    """Build the affinity for the nodes of these names."""
    hostnames = [{"key": "kubernetes.io/hostname", "operator": "In", "values": sorted(set(nodes))}]
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": hostnames}]
        }
    }
