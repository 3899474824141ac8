"""Bar: four local agents at 100 requests/s each equal one at 400 within 3 %: throughput and mean latency.

The service takes 50 ms, so that the noise of starting processes does not count for latency. Runs alternate.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

from hack.benchmarks.saturation import report, saturate, service


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", default="10")
    given = parser.parse_args()
    rows: dict[int, list[dict[str, Any]]] = {1: [], 4: []}
    with service("--slots", "64", "--seconds", "0.05") as url:
        for seed in range(given.runs):
            for agents, found in rows.items():
                words = ["--url", url, "--mode", "sweep", "--start", "400", "--step-time", given.seconds]
                result = saturate(*words, "--warm", "1", "--agents", str(agents), "--seed", str(seed))
                found.append(result["steps"][-1])
    rates = {agents: statistics.fmean(one["goodput_per_s"]["value"] for one in found) for agents, found in rows.items()}
    means = {agents: statistics.fmean(one["latency_s"]["mean"] for one in found) for agents, found in rows.items()}
    return report(
        "four agents equal one within 3 %",
        abs(rates[4] / rates[1] - 1) <= 0.03 and abs(means[4] / means[1] - 1) <= 0.03,
        per_s={str(key): value for key, value in rates.items()},
        latency_mean_s={str(key): value for key, value in means.items()},
    )


if __name__ == "__main__":
    sys.exit(main())
