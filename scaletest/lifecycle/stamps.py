"""Milestones of an object's lifecycle, and the stamps that say when they were passed. Pure data.

A stamp says when a milestone was passed, as each source saw it; times are never guessed:

    api    a field of the object: whole seconds of the API server's, scheduler's or kubelet's clock
    watch  the arrival of the first watch event that shows it: this machine's clock, with fractions
    event  the eventTime of an Event: microseconds, best effort
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta

from scaletest.model.document import Document

# The end of the year 9999, in seconds since the epoch: no date is later.
_EpochSeconds = Annotated[float, Meta(ge=0, le=253402300799, extra={"unit": "s"})]
# A pod's milestones in the order in which a pod passes them.
POD_MILESTONES = (
    "created",
    "claim_created",
    "claim_allocated",
    "scheduled",
    "ready_to_start",
    "initialized",
    "started",
    "containers_ready",
    "ready",
    "finished",
)
# Further events of a pod, which not every pod meets.
POD_INCIDENTS = ("decided", "evicted", "deleted")
# Milestones of the submitted object itself and of the objects that belong to it.
OWN_MILESTONES = (
    "submitted",
    "accepted",
    "created",
    "job_created",
    "pod_group_created",
    "pvc_requested",
    "pvc_bound",
    "evicted",
    "finished",
    "deleted",
    "backend_job_created",
)


class TimeSource(StrEnum):
    """Where both ends of a duration come from.

    MIXED: one end is this machine's clock, the other end the API server's.
    """

    WATCH = "watch"
    API = "api"
    EVENT = "event"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Stamp(Document):
    """One milestone in seconds since the epoch, by source; None where the source did not see it."""

    document_name = "a stamp"
    always: ClassVar = frozenset()

    api_s: Annotated[_EpochSeconds | None, "by the API, whole seconds"] = None
    watch_s: Annotated[_EpochSeconds | None, "this machine's clock when it was seen"] = None
    event_s: Annotated[_EpochSeconds | None, "by an Event"] = None

    def merged(self, later: Stamp) -> Stamp:
        """Return the times of this stamp, and of the later one where this one lacks the source."""
        return replace(later, **self.to_dict())


Stamps = dict[str, Stamp]


def mark(stamps: Stamps, milestone: str, stamp: Stamp) -> None:
    """Note a milestone; the first time that a source names is kept."""
    known = stamps.get(milestone)
    stamps[milestone] = stamp if known is None else known.merged(stamp)
