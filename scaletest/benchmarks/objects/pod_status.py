"""Read the status of a benchmark's pods and Jobs: addresses, conditions, reasons to wait."""

import json
from datetime import datetime

from scaletest.benchmarks.objects.manifests import INDEX, MULTUS_STATUS, ROLE
from scaletest.cluster.objects import Document

# A Job tries again after 1, 2, 4, ... seconds: a denial that is only temporary is over by then. A
# quota may still be used by pods that are being deleted, which takes longer.
REFUSED_S, QUOTA_S = 10.0, 30.0


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
        # this annotation was not written by Multus
        return []
    return ips


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


def is_final_denial(message: str, age_s: float) -> bool:
    """Check whether waiting longer is useless after this denial of pods, for a Job of this age."""
    refusals = ("is forbidden", "denied the request", "is invalid", "not found")
    is_refusal = any(phrase in message for phrase in refusals)
    return is_refusal and age_s > (QUOTA_S if "quota" in message else REFUSED_S)
