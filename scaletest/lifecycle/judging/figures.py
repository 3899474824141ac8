"""The figures of a run: the durations of each phase, and pods scheduled over time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated

from scaletest.lifecycle.judging.timeline import (
    MILESTONE_TEXTS,
    OF_A_POD,
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
    """One step of a run, durations in s."""

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
        """Its name for people: where it begins and where it ends."""
        if self.step.of_pods:
            return f"each pod: {OF_A_POD[self.since]} → {OF_A_POD[self.step.event]}"
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
    """Summarize the durations of one step in all workloads."""
    measured = phase_durations(phase, timelines)
    known = [duration for duration in measured if duration is not None]
    return PhaseDurations(
        phase,
        reference_milestone(phase, timelines),
        tuple(duration and duration.value_s for duration in measured),
        summarise_samples(duration.value_s for duration in known),
        dict(Counter(duration.source for duration in known)),
        len(measured) - len(known),
        sum(duration.clipped for duration in known),
    )


def throughput(timelines: Sequence[WorkloadTimeline]) -> PodThroughput:
    """Count pods scheduled over time, in bins of whole seconds."""
    pods = chain.from_iterable(timeline.workload.pods.values() for timeline in timelines)
    scheduled = [best_time(pod.stamps.get("scheduled")) for pod in pods]
    times = sorted(time for time in scheduled if time is not None)
    if not times:
        return PodThroughput(0, None, None, 0.0, 1.0, (), len(scheduled))
    span = times[-1] - times[0]
    bin_s = float(max(1, -(-int(span + 1) // MOST_BINS)))
    counts = [0] * (int(span / bin_s) + 1)
    for time in times:
        counts[int((time - times[0]) / bin_s)] += 1
    per_s = (len(times) - 1) / span if span >= 1.0 else None
    return PodThroughput(
        len(times), per_s, max(counts) / bin_s, times[0], bin_s, tuple(counts), len(scheduled)
    )
