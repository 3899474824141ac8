"""Summarize a run: the durations of each phase, and the throughput of scheduling."""

import math
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

MOST_BINS = 120


@dataclass(frozen=True, slots=True)
class PhaseDurations(Written):
    """The durations of one phase in a run, in seconds."""

    step: Annotated[LifecyclePhase, flat(), "its name"]
    since: Annotated[str, "the milestone at which the phase begins"]
    values: Annotated[
        tuple[float | None, ...], INNER, "in the order of submission, None where missing."
    ]
    spread: Annotated[Distribution, named_in_documents("seconds"), "how long it took"]
    sources: Annotated[
        dict[TimeSource, Count], "how many values come from where: watch, api, event, or mixed"
    ]
    missing: Annotated[Count, "workloads or pods without a value"]
    clipped: Annotated[Count, "values a little below zero, counted as zero"]

    @property
    def text(self) -> str:
        """The name for people: where the phase begins and where it ends."""
        if self.step.of_pods:
            texts = POD_MILESTONE_TEXTS
            return f"each pod: {texts[self.since]} → {texts[self.step.event]}"
        return f"{MILESTONE_TEXTS[self.since]} → {MILESTONE_TEXTS[self.step.event]}"


@dataclass(frozen=True, slots=True)
class PodThroughput(Written):
    """Pods scheduled over time."""

    pods: Annotated[Count, "pods whose time of scheduling is known"]
    per_s: Annotated[float | None, "from the first to the last; null for less than a second"]
    peak_per_s: Annotated[float | None, "in the bin with the most pods"]
    began_s: Annotated[float, "seconds since the epoch"]
    bin_s: float
    counts: Annotated[tuple[int, ...], "pods in consecutive bins from began_s on"]
    seen: Annotated[Count, "pods that were seen"] = 0


def summarize_phase(phase: LifecyclePhase, timelines: Sequence[WorkloadTimeline]) -> PhaseDurations:
    """Summarize the durations of one phase in all workloads."""
    durations = phase_durations(phase, timelines)
    measured = [duration for duration in durations if duration is not None]
    return PhaseDurations(
        step=phase,
        since=reference_milestone(phase, timelines),
        values=tuple(duration and duration.value_s for duration in durations),
        spread=summarise_samples(duration.value_s for duration in measured),
        sources=dict(Counter(duration.source for duration in measured)),
        missing=len(durations) - len(measured),
        clipped=sum(duration.clipped for duration in measured),
    )


def count_scheduled(timelines: Sequence[WorkloadTimeline]) -> PodThroughput:
    """Count pods scheduled over time, in bins of whole seconds."""
    pods = chain.from_iterable(timeline.workload.pods.values() for timeline in timelines)
    scheduled = [best_time(pod.stamps.get("scheduled")) for pod in pods]
    times_s = sorted(time_s for time_s in scheduled if time_s is not None)
    if not times_s:
        return PodThroughput(
            pods=0,
            per_s=None,
            peak_per_s=None,
            began_s=0.0,
            bin_s=1.0,
            counts=(),
            seen=len(scheduled),
        )
    span_s = times_s[-1] - times_s[0]
    bin_s = float(max(1, math.ceil(int(span_s + 1) / MOST_BINS)))
    counts = [0] * (int(span_s / bin_s) + 1)
    for time_s in times_s:
        counts[int((time_s - times_s[0]) / bin_s)] += 1
    return PodThroughput(
        pods=len(times_s),
        per_s=(len(times_s) - 1) / span_s if span_s >= 1.0 else None,
        peak_per_s=max(counts) / bin_s,
        began_s=times_s[0],
        bin_s=bin_s,
        counts=tuple(counts),
        seen=len(scheduled),
    )
