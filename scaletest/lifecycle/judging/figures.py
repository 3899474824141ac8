"""Summarize a run: the durations of each phase, and the throughput of scheduling."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated

from scaletest.lifecycle.judging.timeline import (
    MILESTONE_TEXTS,
    POD_MILESTONE_TEXTS,
    LifecyclePhase,
    WorkloadTimeline,
    best_time,
    phase_durations,
    reference_milestone,
)
from scaletest.lifecycle.records import TimeSource
from scaletest.model.declared import INNER, Count, flat, named_in_documents
from scaletest.model.writing import Written
from scaletest.stats.percentiles import Distribution, summarise_samples


@dataclass(frozen=True, slots=True)
class PhaseDurations(Written):
    """The durations of one phase in a run, in seconds."""

    phase: Annotated[LifecyclePhase, flat(), "its name"]
    since: Annotated[str, "the milestone at which the phase begins"]
    values: Annotated[
        tuple[float | None, ...], INNER, "in the order of submission, None where missing."
    ]
    spread: Annotated[Distribution, named_in_documents("seconds"), "how long it took"]
    sources: Annotated[
        dict[TimeSource, Count], "how many values come from where: watch, api, event, or mixed"
    ]
    missing: Annotated[Count, "workloads or pods without a value"]

    @property
    def text(self) -> str:
        """The name for people: where the phase begins and where it ends."""
        if self.phase.of_pods:
            texts = POD_MILESTONE_TEXTS
            return f"each pod: {texts[self.since]} → {texts[self.phase.event]}"
        return f"{MILESTONE_TEXTS[self.since]} → {MILESTONE_TEXTS[self.phase.event]}"


@dataclass(frozen=True, slots=True)
class PodThroughput(Written):
    """How fast pods were scheduled."""

    pods: Annotated[Count, "pods whose time of scheduling is known"]
    per_s: Annotated[float | None, "from the first to the last; null for less than a second"]
    seen: Annotated[Count, "pods that were seen"]


def summarize_phase(phase: LifecyclePhase, timelines: Sequence[WorkloadTimeline]) -> PhaseDurations:
    """Summarize the durations of one phase in all workloads."""
    durations = phase_durations(phase, timelines)
    measured = [duration for duration in durations if duration is not None]
    return PhaseDurations(
        phase=phase,
        since=reference_milestone(phase, timelines),
        values=tuple(None if duration is None else duration.value_s for duration in durations),
        spread=summarise_samples(duration.value_s for duration in measured),
        sources=dict(Counter(duration.source for duration in measured)),
        missing=len(durations) - len(measured),
    )


def count_scheduled(timelines: Sequence[WorkloadTimeline]) -> PodThroughput:
    """Count the pods that were scheduled, and how many of them in a second."""
    pods = chain.from_iterable(timeline.workload.pods.values() for timeline in timelines)
    scheduled = [best_time(pod.stamps.get("scheduled")) for pod in pods]
    times_s = [time_s for time_s in scheduled if time_s is not None]
    span_s = max(times_s, default=0.0) - min(times_s, default=0.0)
    # too short a span says nothing, since most times are whole seconds
    per_s = (len(times_s) - 1) / span_s if span_s >= 1.0 else None
    return PodThroughput(pods=len(times_s), per_s=per_s, seen=len(scheduled))
