"""The charts of docs/explanation/autoscaling.md: the complaint, and what ends it. The same chance, the same charts."""

from __future__ import annotations

import random

from scaletest.analysis.autoscale import workload
from scaletest.analysis.autoscale.rule import parse
from scaletest.analysis.autoscale.simulation import Setting, simulate
from scaletest.report.autoscaling import chart, scales

COMPLAINT, REMEDY = "waiting-fast", "desired:window=300"


def charts() -> tuple[str, str]:
    """Two SVGs on one scale: two requests a minute of about four minutes each, for half an hour."""
    chance = random.Random(1)
    played = workload.pattern("poisson", chance, workload.runs_of(chance, 240.0, 0.3), 2 / 60, 1800.0)
    results = [simulate(played, parse(rule), Setting(), random.Random(1)) for rule in (COMPLAINT, REMEDY)]
    until_s, top = scales(results)
    first, second = (chart(result, until_s, top) + "\n" for result in results)
    return first, second
