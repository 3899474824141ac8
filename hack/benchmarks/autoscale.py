"""Measures the time to simulate a day of autoscaling: 100,000 requests, at most 500 workers."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace

from scaletest.analysis.autoscale import simulation
from scaletest.analysis.autoscale.rule import RULES
from scaletest.analysis.autoscale.simulation import SimulationSetting, simulate

DAY_S = 86_400.0


def main() -> None:
    chance = random.Random(1)
    played = simulation.pattern(
        "wave", chance, simulation.runs_of(chance, 200.0, 0.5), 100_000 / DAY_S, DAY_S
    )
    rows = {}
    for name, rule in RULES.items():
        began = time.perf_counter()
        simulated = simulate(
            played, replace(rule, maximum=500), SimulationSetting(), random.Random(1)
        )
        rows[name] = {
            "s": time.perf_counter() - began,
            "ended": simulated.ended,
            "peak_pods": simulated.peak,
        }
        print(
            f"{name:20} {rows[name]['s']:5.2f} s, {simulated.ended} requests, at most"
            f" {simulated.peak} pods",
            flush=True,
        )
    print(
        json.dumps(
            {
                "schema_version": 1,
                "kind": "bench.autoscale",
                "requests": len(played.runs),
                "rules": rows,
            }
        )
    )


if __name__ == "__main__":
    main()
