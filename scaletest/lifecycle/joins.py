"""Whose an object is: the workload that a pod, a claim, a pod group or an event belongs to. Pure.

Our own label says it where we could put one. Else the labels that controllers give, in a fixed
order, and then the owner, whose name a controller has made of the workload's. With known names only
those count; what belongs to nobody known is foreign, counted and left alone.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from scaletest.lifecycle.kinds import WORKLOAD_LABEL

LABELS = (
    WORKLOAD_LABEL,
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
    "scaledjob.keda.sh/name",
)
# Labels that others use for more than one workload: they count only where the workload's name is
# known.
LOOSE_LABELS = ("release", "workloadName")
_HASH = "pod-template-hash"
_CLAIM = re.compile(r"j-[0-9a-f]{6}")


def workload_of(body: Mapping[str, Any], known: Container[str] | None) -> str:
    """The workload's name; "" for a foreign object. known: None to count all (observing)."""
    for name in _candidates(body, (*LABELS, *LOOSE_LABELS) if known is not None else LABELS):
        if name and (known is None or name in known):
            return name
    return ""


def _candidates(body: Mapping[str, Any], trusted: Sequence[str]) -> Iterator[str]:
    metadata = body["metadata"]
    labels = metadata.get("labels") or {}
    for label in trusted:
        if label in labels:
            yield str(labels[label])
    for owner in metadata.get("ownerReferences") or ():
        name = str(owner["name"])
        if owner["kind"] == "ReplicaSet" and labels.get(_HASH):
            name = name.removesuffix(f"-{labels[_HASH]}")
        yield name
        # a pod's ephemeral claim, a JobSet's Job, a ScaledJob's Job: the workload's name is the
        # beginning
        yield from _claims(name)
    yield str(metadata["name"])
    yield from _claims(str(metadata["name"]))


def _claims(name: str) -> list[str]:
    return [str(found) for found in _CLAIM.findall(name)]


def of_event(
    body: Mapping[str, Any], known: Container[str] | None, owners: Mapping[str, str]
) -> str:
    """Whose an Event is. owners: uid of an object -> its workload, for those that were seen."""
    regarding = body.get("involvedObject") or {}
    uid, named = str(regarding.get("uid", "")), str(regarding.get("name", ""))
    if uid in owners:
        return owners[uid]
    for name in (named, *_claims(named)):
        if name and known is not None and name in known:
            return name
    return ""
