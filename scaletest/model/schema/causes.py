"""Causes in a run's result: values of `analysis`, which this package cannot import."""

from __future__ import annotations

from scaletest.model.activity import State
from scaletest.model.schema.parts import (
    Schema,
    closed,
    count,
    estimate,
    flag,
    maybe,
    number,
    one_of,
    rows,
    table,
    text,
)

# Where a worker's time can be spent: in a state of the request, or in the gap before it.
PLACES = (*State, "gap")


def causes() -> Schema:
    """The causes between two steps, and where the requests of all steps spent their time."""
    slow = closed(
        {
            "kind": one_of(("worker", "device", "node")),
            "name": text(),
            "place": text("node or device of a slow worker, when no other worker is on it"),
            "run_s": number("mean run time there"),
            "others_run_s": number("mean run time elsewhere"),
            "evidence": rows(text(), "resources there whose use differs from elsewhere"),
        },
        "the only worker, device or node whose requests became slower",
    )
    time = closed(
        {
            "workers": count("", 1),
            "per_device": count("workers on each device, in a run that compares that; else 0"),
            "seconds": table(
                number(), "mean seconds of a request by state, and in the gap before it"
            ),
        }
    )
    return closed(
        {
            "before": count("workers of the step from which the time of a request grew", 1),
            "after": count(
                "workers of the step to which it grew; the same where only one step was measured", 1
            ),
            "headline": text("why no cause is named; empty when one is"),
            "sentence": text("the cause in one line; empty when nothing grew"),
            "grown_s": estimate(
                "by how much the time of a request grew, the gap before it included"
            ),
            "observed": number("the part of the growth that was observed"),
            "covered": number("the part of the requests whose states were sampled"),
            "causes": rows(_cause(), "the largest share first"),
            "slow": maybe(slow),
            "times": rows(time, "where the requests of every step spent their time"),
        },
        "what keeps throughput from growing; null where no requests were sampled",
    )


def _cause() -> Schema:
    return closed(
        {
            "state": one_of(PLACES),
            "share": estimate("part of the growth of a request's time"),
            "grown_s": estimate("seconds a request"),
            "before_s": number("seconds a request in the first of the two steps"),
            "after_s": number(),
            "object": text(
                "path, address or device that most of the added time was spent on; empty for none"
            ),
            "sentence": text(),
            "remedy": text("what to try"),
            "evidence": rows(
                text(), "use of the nodes' resources in these steps, the most relevant first"
            ),
            "confirmed": maybe(
                flag("whether the resources confirm it; null where none was measured")
            ),
        }
    )
