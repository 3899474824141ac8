"""Bar: open load at 2,000 requests/s for 60 s from one process: lag p99 under 5 ms, not INVALID."""

from __future__ import annotations

import argparse
import sys

from hack.benchmarks.saturation import report, saturate, service


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=2000.0)
    parser.add_argument("--seconds", default="60")
    options = parser.parse_args()
    with service("--slots", "200") as url:
        outcome = saturate(
            *(
                "--url",
                url,
                "--mode",
                "sweep",
                "--start",
                str(options.rate),
                "--step-time",
                options.seconds,
                "--warm",
                "1",
            )
        )
    last = outcome["steps"][-1]
    lag_ms = 1e3 * last["lag_p99_s"]
    return report(
        f"open load at {options.rate:g}/s from one process",
        lag_ms < 5.0 and outcome["verdict"]["kind"] != "INVALID",
        lag_p99_ms=lag_ms,
        verdict=outcome["verdict"],
        offered_per_s=last["offered_per_s"],
        goodput_per_s=last["goodput_per_s"],
        latency_mean_ms=1e3 * (last["latency_s"]["mean"] or 0.0),
        cpu_cores=last["cpu_cores"],
    )


if __name__ == "__main__":
    sys.exit(main())
