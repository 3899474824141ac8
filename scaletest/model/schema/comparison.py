"""The result of `scaletest compare -o json`."""

from __future__ import annotations

from scaletest.model.schema.parts import (
    Schema,
    closed,
    count,
    document,
    estimate,
    flag,
    maybe,
    number,
    rows,
    text,
)
from scaletest.model.schema.result import verdict


def comparison() -> Schema:
    """Whether a candidate run is slower than a base run."""
    rank_test = closed(
        {
            "u": number("Mann and Whitney's U of the candidate's run times"),
            "larger": number("part of all pairs in which the candidate's is longer"),
            "p": number("of so uneven a split by chance"),
        }
    )
    step = closed(
        {
            "workers": count("", 1),
            "change": text("regression, improvement, equivalent, not slower or undecided"),
            "ratio": maybe(
                estimate("throughput of the candidate over the base, with its 95 % interval")
            ),
            "base_per_s": number(),
            "candidate_per_s": number(),
            "interval": text("what the interval holds: between repeats, or within the runs"),
            "significant": flag("whether it differs beyond chance, all steps considered (Holm)"),
            "run_times": maybe(rank_test),
            "reason": text("why nothing was decided"),
        }
    )
    difference = closed(
        {
            "field": text(),
            "base": {},
            "candidate": {},
            "workload": flag("whether it forbids to compare"),
        }
    )
    return document(
        "comparison",
        "What comparing two runs found.",
        {
            "schema_version": count("version of the format", 1),
            "kind": {"const": "comparison"},
            "tolerance": number("part of the throughput by which a candidate may be slower"),
            "steps": rows(step),
            "only_base": rows(count("", 1)),
            "only_candidate": rows(count("", 1)),
            "differences": rows(difference, "in which the plans differ"),
            "verdict": verdict(),
            "base": text("folder"),
            "candidate": text("folder"),
        },
        optional=("base", "candidate"),
    )
