"""What the load beside a validation did in each step: apart, since no verdict rests on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.completions import ends_of
from scaletest.analysis.percentiles import Distribution, summary
from scaletest.analysis.steps import failed, rate_dict
from scaletest.analysis.throughput import Throughput, throughput
from scaletest.model import Background, Measurement, Plan, Record


@dataclass(frozen=True, slots=True)
class BackgroundStep:
    """One background queue during one measuring of a step. Times of successful requests in seconds."""

    name: str
    workers: int
    repeat: int
    throughput: Throughput
    failures: int
    wait: Distribution
    run: Distribution

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `workers` are those of the validated queue."""
        return {
            "name": self.name,
            "workers": self.workers,
            "repeat": self.repeat,
            **rate_dict(self.throughput),
            "failures": self.failures,
            "wait_s": self.wait.to_dict(),
            "run_s": self.run.to_dict(),
        }


def queue_of(plan: Plan, background: Background) -> str:
    """The queue of a background load: that of the run and its name."""
    return f"{plan.queue}-{background.name}"


def summarise_background(
    plan: Plan, measurements: Sequence[Measurement], records: Sequence[Record]
) -> list[BackgroundStep]:
    """One row for every background queue and measuring, in the order of both."""
    rows = []
    for background in plan.background:
        queue = queue_of(plan, background)
        for one in measurements:
            own = [row for row in records if row.queue == queue and (row.step, row.repeat) == one.key]
            good = [row for row in own if row.ok]
            rows.append(
                BackgroundStep(
                    name=background.name,
                    workers=one.workers,
                    repeat=one.repeat,
                    throughput=throughput(ends_of(own), background.workers),
                    failures=sum(failed(row) for row in own),
                    wait=summary(row.reply.wait_s for row in good),
                    run=summary(row.reply.run_s for row in good),
                )
            )
    return rows
