"""Bar: four local agents at 100 requests/s each equal one at 400 within 3 %.

Throughput and mean latency are compared.

The service takes 50 ms, so that the noise of starting processes does not count for latency. Runs
alternate.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

from hack.benchmarks.saturation import report, saturate, service


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", default="10")
    options = parser.parse_args()
    steps: dict[int, list[dict[str, Any]]] = {1: [], 4: []}
    with service("--slots", "64", "--seconds", "0.05") as url:
        for seed in range(options.runs):
            for agents, repeats in steps.items():
                arguments = [
                    "--url",
                    url,
                    "--mode",
                    "sweep",
                    "--start",
                    "400",
                    "--step-time",
                    options.seconds,
                ]
                report_ = saturate(
                    *arguments, "--warm", "1", "--agents", str(agents), "--seed", str(seed)
                )
                repeats.append(report_["steps"][-1])
    rates, means = dict[int, float](), dict[int, float]()
    for agents, repeats in steps.items():
        rates[agents] = statistics.fmean(
            last_step["goodput_per_s"]["value"] for last_step in repeats
        )
        means[agents] = statistics.fmean(last_step["latency_s"]["mean"] for last_step in repeats)
    return report(
        "four agents equal one within 3 %",
        abs(rates[4] / rates[1] - 1) <= 0.03 and abs(means[4] / means[1] - 1) <= 0.03,
        per_s={str(agents): rate for agents, rate in rates.items()},
        latency_mean_s={str(agents): mean for agents, mean in means.items()},
    )


if __name__ == "__main__":
    sys.exit(main())
