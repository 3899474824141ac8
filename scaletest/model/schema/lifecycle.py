"""The files of a lifecycle run, and the comparison of two runs.

The schemas of plan, submissions, objects and pods are made from their classes. The result comes
from `analysis`, which this package cannot import; a test checks real results against its schema.
"""

from __future__ import annotations

from scaletest.model.lifecycle import (
    OWN_MILESTONES,
    POD_INCIDENTS,
    POD_MILESTONES,
    LifecycleObject,
    LifecyclePod,
    Submission,
    TimeSource,
)
from scaletest.model.lifecycle_plan import KIND, TOOLS, UNTIL, LifecyclePlan
from scaletest.model.schema.parts import (
    DRAFT,
    Schema,
    closed,
    count,
    document,
    flag,
    maybe,
    number,
    one_of,
    properties_of,
    rows,
    table,
    text,
)
from scaletest.model.schema.result import distribution, threshold, verdict

_VERSION = count("version of the format", 1)
_LIMITS: dict[str, Schema] = {
    "count": {"minimum": 0, "maximum": 1_000_000},
    "processes": {"minimum": 1, "maximum": 1000},
    "workers": {"minimum": 1, "maximum": 100_000},
    "delay_s": {"minimum": 0},
    "interval_s": {"minimum": 0},
    "until": {"enum": list(UNTIL)},
    "tool": {"enum": list(TOOLS)},
}


def plan() -> Schema:
    """lifecycle.json."""
    properties = properties_of(LifecyclePlan)
    for name, limit in _LIMITS.items():
        properties[name].update(limit)
    own = {"schema_version": _VERSION, "kind_of_run": {"const": KIND}}
    return document("lifecycle", "What a lifecycle was to do.", {**own, **properties})


def submission() -> Schema:
    """A line of submissions.jsonl."""
    properties = {"schema_version": _VERSION, **properties_of(Submission)}
    return document("lifecycle-submission", "One workload that was submitted.", properties)


def record() -> Schema:
    """A line of records.jsonl: a workload, or one of the pods that follow it."""
    workload = properties_of(LifecycleObject, skip=("stamps", "pods"))
    mine = {
        "schema_version": _VERSION,
        "record": {"const": "workload"},
        **workload,
        "stamps": _stamps(OWN_MILESTONES),
    }
    pod = properties_of(LifecyclePod, skip=("stamps",))
    its = {"record": {"const": "pod"}, "workload": text("its name"), **pod}
    return {
        "$schema": DRAFT,
        "$id": "urn:scaletest:lifecycle-record:1",
        "title": "scaletest lifecycle-record",
        "oneOf": [
            closed(mine, "what is known of a workload"),
            closed(
                {**its, "stamps": _stamps((*POD_MILESTONES, *POD_INCIDENTS))},
                "of the workload before it",
            ),
        ],
    }


def _stamps(milestones: tuple[str, ...]) -> Schema:
    names = {
        "api_s": "by the API, whole seconds",
        "watch_s": "this machine's clock when it was seen",
        "event_s": "by an Event",
    }
    stamp = closed(
        {name: number(description) for name, description in names.items()}, optional=tuple(names)
    )
    described = closed(dict.fromkeys(milestones, stamp), optional=milestones)
    return {
        **described,
        "description": "when each milestone was passed, seconds since the epoch; never a guess",
    }


def result() -> Schema:
    """result.json, and what `lifecycle run --output json` and `lifecycle report -t json` print."""
    return document(
        "lifecycle-result",
        "What a lifecycle found. Seconds; what is not known is null.",
        {
            "schema_version": _VERSION,
            "kind": {"const": KIND},
            "until": one_of(UNTIL, "the milestone that ends a workload"),
            "books": _books(),
            "steps": rows(_step(), "one for every phase of which something was measured"),
            "throughput": _throughput(),
            "skipped": table(count(), "workloads left out as erroneous, by reason"),
            "thresholds": rows(threshold(), "conditions of a PASS, as they were given"),
            "verdict": verdict(),
            "folder": text("where the run is kept"),
        },
    )


def comparison() -> Schema:
    """What `lifecycle compare` prints."""
    test = closed(
        {
            "u": number("Mann and Whitney's U"),
            "larger": number("part of all pairs"),
            "p": number("by chance"),
        }
    )
    change = closed(
        {
            "step": text(),
            "change": text(
                "slower, faster, no change beyond chance and tolerance, or too few values"
            ),
            "base_s": number("median"),
            "candidate_s": number("median"),
            "test": maybe(test),
        }
    )
    return document(
        "lifecycle-comparison",
        "Which steps became slower from one lifecycle to another.",
        {
            "schema_version": _VERSION,
            "kind": {"const": "lifecycle_comparison"},
            "tolerance": number("part of a median by which a candidate may be slower"),
            "steps": rows(change, "that both runs have"),
            "verdict": verdict(),
        },
    )


def _books() -> Schema:
    counts = {
        "planned": "objects to submit",
        "rejected": "refused by the API server",
        "submitted": "measured + pending + failed + lost",
        "measured": "reached the milestone",
        "pending": "have not reached the milestone yet",
        "failed": "ended badly",
        "lost": "disappeared without a known end",
        "running": "pending ones that only have to end",
        "not_tried": "planned and not submitted yet",
    }
    return closed(
        {
            **{name: count(description) for name, description in counts.items()},
            "rejections": table(count(), "how often each reason was given"),
            "failures": table(count(), "how often each reason of a failure was given"),
            "balanced": flag("whether the counts add up"),
        }
    )


def _step() -> Schema:
    return closed(
        {
            "step": text("its name"),
            "title": text("as people read it"),
            "since": text("the milestone at which the phase begins"),
            "of_pods": flag("whether there is a value for each pod, not for each workload"),
            "seconds": distribution("how long it took"),
            "sources": {
                "type": "object",
                "propertyNames": one_of(TimeSource),
                "additionalProperties": count(),
                "description": "how many values come from where: watch, api, event, or mixed",
            },
            "missing": count("workloads or pods without a value"),
            "clipped": count("values a little below zero, counted as zero"),
        }
    )


def _throughput() -> Schema:
    return closed(
        {
            "pods": count("pods whose time of scheduling is known"),
            "seen": count("pods that were seen"),
            "per_s": maybe(number("from the first to the last; null for less than a second")),
            "peak_per_s": maybe(number("in the bin with the most pods")),
            "began_s": number("seconds since the epoch"),
            "bin_s": number(),
            "counts": rows(count(), "pods in consecutive bins from began_s on"),
        },
        "throughput of scheduling",
    )
