"""What stops a run, in its result: the values of `Causes` in `analysis`, which this room must not import."""

from __future__ import annotations

from scaletest.model.activity import State
from scaletest.model.schema.parts import Schema, closed, count, estimate, flag, maybe, number, one_of, rows, table, text

# Where the time of a worker can be spent: in a state of the request that it runs, or in the gap before it.
PLACES = (*State, "gap")


def causes() -> Schema:
    """The causes between two steps, and where the requests of all steps spent their time."""
    slow = closed(
        {
            "kind": one_of(("worker", "device", "node")),
            "name": text(),
            "place": text("where a slow worker is, when no other worker is there"),
            "run_s": number("mean run time there"),
            "others_run_s": number("and elsewhere"),
            "evidence": rows(text(), "what the resources there did, where that differs from elsewhere"),
        },
        "the one worker, device or node whose requests got slower alone",
    )
    time = closed(
        {
            "workers": count("", 1),
            "per_device": count("workers on each device, in a run that compares that; else 0"),
            "seconds": table(number(), "mean seconds of a request by state, and in the gap before it"),
        }
    )
    return closed(
        {
            "before": count("workers of the step from which the time of a request grew", 1),
            "after": count("workers of the step to which it grew; the same where only one step was measured", 1),
            "headline": text("why no cause is named; empty when one is"),
            "sentence": text("the cause in one line; empty when nothing grew"),
            "grown_s": estimate("by how much the time of a request grew, the gap before it included"),
            "observed": number("the part of that which was observed"),
            "covered": number("the part of the requests that say where their time went"),
            "causes": rows(_cause(), "the largest share first"),
            "slow": maybe(slow),
            "times": rows(time, "where the requests of every step spent their time"),
        },
        "what stops it; null where no request says where its time went",
    )


def _cause() -> Schema:
    return closed(
        {
            "state": one_of(PLACES),
            "share": estimate("of what the time of a request grew by"),
            "grown_s": estimate("seconds a request"),
            "before_s": number("seconds a request in the first of the two steps"),
            "after_s": number(),
            "object": text("what most of the added time was spent on: a path, an address, a device; empty for none"),
            "sentence": text(),
            "remedy": text("what to try"),
            "evidence": rows(text(), "what the resources of the nodes did meanwhile, the most telling first"),
            "confirmed": maybe(flag("whether the resources agree; null where nothing measured speaks to it")),
        }
    )
