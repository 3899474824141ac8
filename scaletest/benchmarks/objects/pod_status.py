"""Read the status of a benchmark's pods and Jobs: addresses, places, reasons to wait."""

import json
from collections.abc import Sequence
from datetime import datetime

from scaletest.benchmarks.documents import Benchmark, BenchmarkResult
from scaletest.benchmarks.kinds import PartAddress
from scaletest.benchmarks.objects.manifests import INDEX, MULTUS_STATUS, ROLE, name_of
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import EVENTS
from scaletest.render.numbers import plural

MOST_PLACES = 32
# A Job tries again after 1, 2, 4, ... seconds: a denial that is only temporary is over by then. A
# quota may still be used by pods that are being deleted, which takes longer.
REFUSED_S, QUOTA_S = 10.0, 30.0


def pod_name(pod: Document) -> str:
    """Return the pod's name."""
    return str(pod["metadata"]["name"])


def names_its_part(pod: Document) -> bool:
    """Check whether the pod's labels and annotations tell which part it is."""
    meta = pod["metadata"]
    index = (meta.get("annotations") or {}).get(INDEX, "0")
    return ROLE in meta["labels"] and str(index).isdecimal()


def parse_time_s(stamp: str) -> float:
    """Convert a time as Kubernetes writes it to seconds since the epoch."""
    return datetime.fromisoformat(stamp).timestamp()


def started_s(pod: Document) -> float:
    """Return when the node accepted the pod, in seconds since the epoch."""
    return parse_time_s(str(pod["status"].get("startTime") or pod["metadata"]["creationTimestamp"]))


def reachable_servers(benchmark: Benchmark, pods: Sequence[Document]) -> list[PartAddress]:
    """List the servers that have an address on the network that the benchmark measures."""
    peers = []
    for pod in pods:
        role = pod["metadata"]["labels"][ROLE]
        index = int((pod["metadata"].get("annotations") or {}).get(INDEX, 0))
        # it may have an address of each family
        is_ipv6 = benchmark.spec.ip_family == "IPv6"
        ips = [
            ip for ip in pod_addresses(pod, benchmark.spec.network_name) if (":" in ip) == is_ipv6
        ]
        if role != benchmark.kind.measures and ips:
            peers.append(PartAddress(role, index, name_of(benchmark, f"{role}-{index}"), ips[0]))
    return sorted(peers, key=lambda peer: (peer.role, peer.index))


def pod_addresses(pod: Document, network: str) -> list[str]:
    """List the pod's addresses on a network of Multus; "" is the cluster's own network."""
    if not network:
        return [assigned["ip"] for assigned in pod.get("status", {}).get("podIPs", ())]
    annotation = pod["metadata"].get("annotations", {}).get(MULTUS_STATUS, "[]")
    # Multus names a network of the pod's own namespace without that namespace
    names = {network, network.rpartition("/")[2]}
    ips: list[str] = []
    try:
        for interface in json.loads(annotation):
            if interface.get("name") in names:
                ips += map(str, interface.get("ips") or ())
    except (ValueError, AttributeError, TypeError):
        # whoever wrote this annotation, it was not Multus
        return []
    return ips


def explain_other_network(pod: Document, network: str, result: BenchmarkResult) -> str:
    """Explain by which other network the pod reached its peer; "" when it used the spec's."""
    address, expected = str(result.network.get("address", "")), pod_addresses(pod, network)
    if not network or not result.ok or address in expected:
        return ""
    return (
        f"the peer was reached from {address or 'nowhere'} by"
        f" {result.network.get('interface', 'no interface')}, and the pod's address on {network}"
        f" is {', '.join(expected) or 'unknown'}"
    )


def conditions_by_type(document: Document) -> dict[str, Document]:
    """Map the conditions of any object by their types."""
    return {
        condition["type"]: condition
        for condition in (document.get("status", {}).get("conditions") or ())
    }


def has_condition(document: Document, *names: str) -> bool:
    """Check whether an object has one of these conditions, and it is true."""
    by_type = conditions_by_type(document)
    return any(by_type.get(name, {}).get("status") == "True" for name in names)


def nodes_and_images(pods: Sequence[Document]) -> Document:
    """Map pods to their nodes, and to the digests of the images that really ran."""
    places: Document = {"nodes": {}, "images": {}}
    for pod in pods[:MOST_PLACES]:
        (container, *_) = pod["status"].get("containerStatuses") or [{}]
        places["nodes"][pod_name(pod)] = pod["spec"].get("nodeName", "")
        places["images"][pod_name(pod)] = container.get("imageID", "")
    return places


def crowding_notes(benchmark: Benchmark, pods: Sequence[Document]) -> tuple[str, ...]:
    """Write a note when the parts had fewer nodes than the benchmark is meant for; else none."""
    node_count = len({part.node for part in benchmark.kind.layout(benchmark.spec)})
    used_nodes = {pod["spec"].get("nodeName", "") for pod in pods}
    if benchmark.spec.nodes or len(used_nodes) >= min(node_count, len(pods)):
        return ()
    return (
        f"the parts ran on {plural(len(used_nodes), 'node')} instead of {node_count}, and what"
        " those of one node send each other crosses no network; with placement: differentNodes"
        " they wait for nodes of their own",
    )


def is_unschedulable(pod: Document) -> bool:
    """Check whether the scheduler found no node for a pod."""
    scheduled = conditions_by_type(pod).get("PodScheduled", {})
    return scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable"


def reason_not_running(pod: Document) -> str:
    """Explain why a pod is not running, from its status."""
    status = pod.get("status", {})
    # a container that waits says more than a condition: an image that cannot be pulled
    for container in (
        *status.get("initContainerStatuses", ()),
        *status.get("containerStatuses", ()),
    ):
        waiting = container.get("state", {}).get("waiting") or {}
        if waiting.get("message") or waiting.get("reason"):
            return f"{waiting.get('reason', '')}: {waiting.get('message', '')}".strip(": ")
    for condition in conditions_by_type(pod).values():
        if condition.get("status") == "False" and condition.get("message"):
            return str(condition["message"])
    return str(status.get("phase", "Pending"))


def last_denial(objects: ObjectClient, namespace: str, job: Document) -> str:
    """Return the API server's last reason to deny pods of a Job, from its events; "" without one.

    The status of a Job does not tell it.
    """

    def event_time(event: Document) -> str:
        # which of these times an event has depends on who wrote it
        created = event["metadata"].get("creationTimestamp")
        return str(event.get("lastTimestamp") or event.get("eventTime") or created or "")

    about = f"involvedObject.uid={job['metadata']['uid']},reason=FailedCreate"
    events = objects.list(EVENTS, namespace, fields=about)
    return str(max(events, key=event_time, default={}).get("message", ""))


def is_final_denial(message: str, age_s: float) -> bool:
    """Check whether waiting longer is useless after this denial of pods, for a Job of this age."""
    refusals = ("is forbidden", "denied the request", "is invalid", "not found")
    is_refusal = any(phrase in message for phrase in refusals)
    return is_refusal and age_s > (QUOTA_S if "quota" in message else REFUSED_S)
