"""What the pods of a benchmark say: where they are, whether they are ready, what keeps them. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from scaletest.benchmarks.manifests import INDEX, MULTUS_STATUS, ROLE, Document, name_of
from scaletest.kinds.benchmark import Benchmark, BenchmarkResult
from scaletest.kinds.kind import PartAddress

MOST_PLACES = 32


def name(pod: Document) -> str:
    """Its name."""
    return str(pod["metadata"]["name"])


def marked(pod: Document) -> bool:
    """Whether it says which part it is."""
    meta = pod["metadata"]
    index = (meta.get("annotations") or {}).get(INDEX, "0")
    return ROLE in meta["labels"] and str(index).isdecimal()


def seconds(stamp: str) -> float:
    """Of a time as Kubernetes writes it, since the epoch."""
    return datetime.fromisoformat(stamp).timestamp()


def started_s(pod: Document) -> float:
    """When its node began with it, in seconds since the epoch."""
    return seconds(str(pod["status"].get("startTime") or pod["metadata"]["creationTimestamp"]))


def known(benchmark: Benchmark, pods: Sequence[Document]) -> list[PartAddress]:
    """The servers that have an address on the network that is to be measured."""
    spec, found = benchmark.spec, []
    for pod in pods:
        role = pod["metadata"]["labels"][ROLE]
        index = int((pod["metadata"].get("annotations") or {}).get(INDEX, 0))
        at = address(pod, spec.ip_family, spec.network_name)
        if role != benchmark.kind.measures and at:
            found.append(PartAddress(role, index, name_of(benchmark, f"{role}-{index}"), at))
    return sorted(found, key=lambda one: (one.role, one.index))


def address(pod: Document, family: str, network: str) -> str:
    """A pod's address of that family on the network that was asked for; "" while it has none."""
    return next((ip for ip in addresses(pod, network) if (":" in ip) == (family == "IPv6")), "")


def addresses(pod: Document, network: str) -> list[str]:
    """All addresses of a pod on a network of Multus, "" for the cluster's own."""
    if not network:
        return [one["ip"] for one in pod.get("status", {}).get("podIPs", ())]
    try:
        told = json.loads(pod["metadata"].get("annotations", {}).get(MULTUS_STATUS, "[]"))
        wanted = {network, network.rpartition("/")[2]}
        return [str(ip) for one in told if one.get("name") in wanted for ip in one.get("ips") or ()]
    except (ValueError, AttributeError, TypeError):
        # whatever wrote this, it was not Multus
        return []


def elsewhere(pod: Document, network: str, found: BenchmarkResult) -> str:
    """What is wrong when a pod did not reach its peer from its address on the network of Multus that was asked for."""
    used, own = str(found.network.get("address", "")), addresses(pod, network)
    if not network or not found.ok or used in own:
        return ""
    by = f"the peer was reached from {used or 'nowhere'} by {found.network.get('interface', 'no interface')}"
    return f"{by}, and the pod's address on {network} is {', '.join(own) or 'not known'}"


def ready(pod: Document) -> bool:
    """Whether it is, as its probe says."""
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))


def places(pods: Sequence[Document]) -> Document:
    """On which nodes pods ran, and which images really: digests, by pod."""
    nodes, images = dict[str, str](), dict[str, str]()
    for pod in pods[:MOST_PLACES]:
        name = pod["metadata"]["name"]
        nodes[name] = pod["spec"].get("nodeName", "")
        images[name] = next((one.get("imageID", "") for one in pod["status"].get("containerStatuses", ())), "")
    return {"nodes": nodes, "images": images}


def why_not(pod: Document) -> str:
    """What keeps a pod from running, in the words of who knows."""
    status = pod.get("status", {})
    for one in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        said = one.get("state", {}).get("waiting") or {}
        if said.get("message") or said.get("reason"):
            return f"{said.get('reason', '')}: {said.get('message', '')}".strip(": ")
    for one in status.get("conditions", ()):
        if one.get("status") == "False" and one.get("message"):
            return str(one["message"])
    return str(status.get("phase", "Pending"))


def waits(pod: Document) -> str:
    """The same with its name."""
    return f"{name(pod)}: {why_not(pod)}"
