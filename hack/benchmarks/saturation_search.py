"""Bar: 19 of 20 runs find that 8 slots of 10 ms saturate at 800/s within 3 %, in 12 steps.

Runs use HTTP, against a service in its own process; --room N makes it refuse on overload. A second
line says whether the interval contains 800/s in nine of ten runs.

A third line says whether the client's latency at 70 % agrees with theory: service time, wait in the
queue (M/D/8 by Cosmetatos 1975), and the time in client, kernel and server. That time is measured
at the same rate with so many slots that no request waits. The difference must lie within the 95 %
intervals of both means in 17 of 20 runs: exact intervals reach that with a probability of 98 %, but
would miss 19 of 20 in every fourth series.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

from hack.benchmarks.saturation import report, saturate, service

CAPACITY, SLOTS, SERVICE_S = 800.0, 8, 0.010
# so many slots that no request waits
FREE = 512


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--step-time", default="5")
    parser.add_argument(
        "--room", type=int, default=-1, help="so many wait at most; others are refused with 503"
    )
    options = parser.parse_args()
    rows = []
    arguments = ["--seconds", str(SERVICE_S), "--slots"]
    with (
        service(*arguments, str(SLOTS), "--room", str(options.room)) as url,
        service(*arguments, str(FREE)) as free,
    ):
        for seed in range(options.runs):
            outcome = saturate("--url", url, "--step-time", options.step_time, "--seed", str(seed))
            interval = outcome["saturation_per_s"] or {}
            point = interval.get("value")
            figures = {
                "seed": seed,
                "verdict": outcome["verdict"]["kind"],
                "per_s": point,
                "within": point is not None and abs(point / CAPACITY - 1) <= 0.03,
                "interval": [interval.get("low"), interval.get("high")],
                "steps": outcome["steps_before_confirmation"],
                **latency(outcome, free, seed),
            }
            rows.append(figures)
            print(figures, file=sys.stderr, flush=True)
    good = sum(bool(figures["within"]) and figures["steps"] <= 12 for figures in rows)
    name = "saturation within 3 % of 800/s" + (", refusing" if options.room >= 0 else "")
    first = report(
        name, good >= math.floor(0.95 * options.runs), runs=options.runs, good=good, rows=rows
    )
    as_in_theory = sum(bool(figures["theory"]) for figures in rows)
    # a service that refuses may be offered 1 % more than it serves
    most = CAPACITY / 0.99 if options.room >= 0 else CAPACITY
    true = sum(
        None not in figures["interval"]
        and figures["interval"][0] <= most
        and figures["interval"][1] >= CAPACITY
        for figures in rows
    )
    return max(
        first,
        report(
            "its interval contains the truth",
            true >= math.floor(0.9 * options.runs),
            runs=options.runs,
            good=true,
        ),
        report(
            "latency at 70 % within theory",
            as_in_theory >= math.floor(0.85 * options.runs),
            runs=options.runs,
            good=as_in_theory,
        ),
    )


def latency(outcome: dict[str, Any], free: str, seed: int) -> dict[str, Any]:
    """Compare the latency at the operating point with theory; False when it is not measured."""
    at, mean = outcome["operating_point"], outcome["mean_latency_s"]
    if not at or at["tester_bottleneck"] or mean is None:
        return {"theory": False}
    arguments = [
        "--mode",
        "sweep",
        "--start",
        str(at["level"]),
        "--step-time",
        str(at["seconds"]),
        "--warm",
        "1",
    ]
    alone = saturate("--url", free, *arguments, "--seed", str(seed))
    base = alone["mean_latency_s"]
    if base is None or alone["verdict"]["kind"] == "INVALID":
        return {"theory": False}
    wanted = base.value + md_c_wait(at["level"])
    half = math.hypot(mean.high - mean.value, base.high - base.value)
    return {
        "theory": abs(mean.value - wanted) <= half,
        "latency_ms": 1e3 * mean.value,
        "wanted_ms": 1e3 * wanted,
        "interval_ms": 1e3 * half,
        "cost_ms": 1e3 * (base.value - SERVICE_S),
    }


def md_c_wait(per_s: float) -> float:
    """Compute the mean wait in s by theory."""
    load = per_s * SERVICE_S
    part = load / SLOTS
    last = load**SLOTS / math.factorial(SLOTS) / (1 - part)
    erlang = last / (sum(load**k / math.factorial(k) for k in range(SLOTS)) + last)
    factor = 1 + (1 - part) * (SLOTS - 1) * (math.sqrt(4 + 5 * SLOTS) - 2) / (16 * part * SLOTS)
    return erlang / (SLOTS / SERVICE_S - per_s) / 2 * factor


if __name__ == "__main__":
    sys.exit(main())
