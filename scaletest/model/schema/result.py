"""The result of a validation, as `validate -o json` prints it and result.json contains it.

The values come from the `to_dict` of classes in `analysis`, which this package cannot import. So
their names are repeated here; tests check every result that they make, so that both agree.
"""

from __future__ import annotations

from scaletest.model.schema import plan
from scaletest.model.schema.causes import causes
from scaletest.model.schema.parts import (
    Schema,
    closed,
    count,
    document,
    estimate,
    flag,
    maybe,
    number,
    one_of,
    rows,
    table,
    text,
)
from scaletest.model.schema.resources import interference, resources
from scaletest.model.verdict import JUDGEMENTS, VerdictKind

LAWS = ("linear", "amdahl", "usl", "capped")


def result() -> Schema:
    """The whole result."""
    return document(
        "result",
        "What a validation found. Seconds, requests per second, parts of 1; what is not known is"
        " null.",
        {
            "schema_version": count("version of the format", 1),
            "kind": {"const": "validation"},
            "plan": plan.stored_object(),
            "steps": rows(_step(), "one step for every number of workers that was measured"),
            **_growth(),
            "sharing": maybe(_sharing()),
            "failures": rows(
                _failure_group(), "failed requests that have all of this in common, most first"
            ),
            "background": rows(
                _background(), "the plan's other queues, in every measurement of a step"
            ),
            "warnings": rows(text(), "remarks that do not change the verdict"),
            "noticed": rows(text(), "the warnings from before the run"),
            "verdict": verdict(),
            "interrupted": text("what ended the run early; empty when nothing did"),
            "elapsed_s": number("wall seconds of the whole run"),
            "trend_per_s": number(
                "relative change of the machine's speed per second, in a mirrored run"
            ),
            "causes": maybe(causes()),
            "resources": resources(),
            "interference": interference(),
            "thresholds": rows(threshold(), "further conditions of a PASS, in the plan's order"),
            "folder": text("where the run is stored; printed, not stored"),
        },
        optional=("folder",),
    )


def verdict() -> Schema:
    """PASS, FAIL or INVALID with reason and remedy."""
    return closed(
        {"kind": one_of(VerdictKind), "reason": text("in one line"), "remedy": text("what to do")}
    )


def threshold() -> Schema:
    """The result of one threshold, of any run type."""
    return closed(
        {
            "text": text("as in efficiency(8)>=0.8"),
            "kind": one_of(JUDGEMENTS),
            "reason": text("what was measured, in the threshold's unit"),
            "remedy": text("what to do"),
            "workers": maybe(count("step that decided it, of a validation", 1)),
            "value": maybe(number("in base units")),
            "low": maybe(number("of its interval")),
            "high": maybe(number()),
        }
    )


def _rate() -> dict[str, Schema]:
    return {
        "throughput_per_s": maybe(number("requests per second")),
        "half_width_per_s": maybe(
            number("half of the 95 % interval; null without enough completions")
        ),
        "completions": count("successful requests counted"),
        "enough": flag("whether there are completions enough for the rate to be evidence"),
    }


def _step() -> Schema:
    return closed(
        {
            "workers": count("workers, and requests in flight", 1),
            **_rate(),
            "interval": one_of(
                ("between repeats", "within the run"),
                "variation that the interval of the rate covers",
            ),
            "repeats": rows(_sample(), "one for every measurement of the step"),
            "ratio": maybe(_ratio()),
            "efficiency": maybe(number("throughput over that of as many single workers")),
            "failures": count("requests that failed for a reason of their own"),
            "wait_s": distribution("from enqueued to started, successful requests"),
            "run_s": distribution("run time of successful requests"),
            "overhead_s": number("mean time that the tester itself added to a request"),
            "overhead_share": number("the overhead as a part of the request's whole time"),
            "suspects": rows(text(), "workers that failed all of at least five requests"),
            "fairness": table(
                _fairness(), "by worker, node and device, where there is more than one"
            ),
            "per_device": count("workers on each device, in a run that compares that; else 0"),
            "work": table(
                closed(
                    {
                        "per_s": maybe(number()),
                        "half_width_per_s": maybe(number("of the 95 % interval")),
                    }
                ),
                "work that requests report, per second: frames, samples, bytes",
            ),
            "memory_limit_hits": count("requests that met the limit of a device's memory"),
        }
    )


def _sample() -> Schema:
    return closed(
        {
            "repeat": count(
                "counted from 0; of a mirrored run even on the way up and odd on the way down"
            ),
            **_rate(),
            "scale_s": number("from the request to scale until all workers served"),
            "measured_s": number("time under load"),
            "stop": text("why the measurement ended"),
            "warmup_s": number("beginning that does not count"),
            "settled": flag("whether the warm-up ended in time"),
            "drift": closed(
                {
                    "shift": number(
                        "relative change of throughput, 0 when there is no significant one"
                    ),
                    "shift_at_s": number(),
                    "certain": flag("whether it is significant at 1 %"),
                    "dips": rows(rows(number()), "seconds and relative depth of short breaks"),
                }
            ),
            "slow": count("requests that took more than three times as long as usual"),
            "little": maybe(
                number("throughput x time in the system / requests in flight; 1 by Little's law")
            ),
        }
    )


def _ratio() -> Schema:
    return closed(
        {
            "value": number("throughput over that of the step before"),
            "low": maybe(number("of the 90 % interval")),
            "high": maybe(number()),
            "wanted": number(),
            "most": maybe(number("upper bound for all doublings together, on which FAIL rests")),
            "up": maybe(number("the ratio on the way up; null where the run is not mirrored")),
            "down": maybe(number("the ratio on the way down")),
            "widened_by": one_of(
                ("", "ways", "slow requests"),
                "what widens the interval, besides the variation of requests",
            ),
            "verdict": one_of(JUDGEMENTS),
        }
    )


def distribution(description: str) -> Schema:
    """Count, extremes, and percentiles with their intervals."""
    ends = {"value": number(), "low": maybe(number()), "high": maybe(number())}
    percentile = maybe(closed(ends, "null when there are too few values"))
    return closed(
        {
            "count": count(),
            "mean": maybe(number()),
            "min": maybe(number()),
            **dict.fromkeys(("p50", "p90", "p95", "p99", "p99_9"), percentile),
            "max": maybe(number()),
        },
        description,
    )


def _fairness() -> Schema:
    group = closed({"name": text(), "amount": number(), "share": number("part of the whole")})
    return closed(
        {
            "groups": rows(group, "most first"),
            "ratio": maybe(number("largest over smallest")),
            "jain": number("Jain's index, 1 when all are equal"),
        }
    )


def _growth() -> dict[str, Schema]:
    """Properties of the result that describe how throughput grows with the workers."""
    names = ("rate_per_s", "contention", "coherency", "ceiling_per_s", "peak_workers")
    law = closed(
        {
            "name": one_of(LAWS),
            "rate_per_s": number("throughput of one worker"),
            "contention": number("part of a request that waits for others"),
            "coherency": number("part that grows with every pair of workers"),
            "ceiling_per_s": maybe(number()),
            "criteria": table(
                number(), "corrected AIC of every law that was fitted; the least is chosen"
            ),
            "too_few_points_for": rows(one_of(LAWS)),
            "intervals": maybe(closed({name: maybe(estimate()) for name in names}, "by bootstrap")),
        }
    )
    return {
        "law": maybe(law),
        "lacking": table(text(), "by law: measurements that are missing to fit it"),
        "peak": _peak(),
        "knees": rows(_knee(), "where more workers bring less, by three definitions"),
        "scaling": rows(_scaled()),
        "serial_fraction": closed(
            {
                "course": text("how it changes as workers are added"),
                "sentence": text(),
                "level": maybe(estimate("mean")),
                "rise": maybe(estimate("from the first step to the last")),
            }
        ),
    }


def _sharing() -> Schema:
    candidate = closed(
        {
            "per_device": count("", 1),
            "relative": maybe(
                estimate("throughput over that of the leader; the intervals hold together at 95 %")
            ),
            "worse": flag("whether the interval lies below 1"),
            "excluded": text("why it is no candidate; empty when it is one"),
        }
    )
    return closed(
        {
            "devices": count("", 1),
            "best": maybe(
                count("the least number of workers per device that is not worse than the leader", 1)
            ),
            "leader": maybe(count("the number with the highest throughput", 1)),
            "equals": rows(count("", 1), "all that do not differ from the leader beyond chance"),
            "candidates": rows(candidate),
            "sentence": text(),
        },
        "null unless the run compares numbers of workers per device",
    )


def _scaled() -> Schema:
    return closed(
        {
            "workers": count("", 1),
            "speedup": estimate(
                "throughput over that of the fewest workers, with its 95 % interval"
            ),
            "efficiency": estimate("speed-up over the multiple of workers"),
            "serial_fraction": maybe(estimate("of Karp and Flatt")),
        }
    )


def _failure_group() -> Schema:
    return closed(
        {
            "outcome": text(),
            "reason": text(),
            "exit_code": {"type": ["integer", "null"]},
            "error": text(),
            "node": text(),
            "device": text(),
            "count": count("", 1),
            "first_s": number("when the first of them ended, on Redis's clock; 0 when none began"),
            "last_s": number(),
        }
    )


def _background() -> Schema:
    return closed(
        {
            "name": text(),
            "workers": count("of the validated queue", 1),
            "repeat": count("as in the steps"),
            **_rate(),
            "failures": count(),
            "wait_s": distribution("from enqueued to started"),
            "run_s": distribution("run time"),
        }
    )


def _peak() -> Schema:
    return closed(
        {
            "workers": maybe(number("where throughput is highest; null when that cannot be said")),
            "low": maybe(number()),
            "high": maybe(number()),
            "extrapolated": flag("whether it lies beyond the measured steps"),
            "measured": flag("whether it was measured, not fitted"),
            "reason": text(),
        }
    )


def _knee() -> Schema:
    return closed(
        {
            "method": text(),
            "workers": maybe(count("", 1)),
            "low": maybe(count("least that the intervals allow", 1)),
            "high": maybe(count("", 1)),
            "reached": flag("whether it lies within the measured steps"),
        }
    )
