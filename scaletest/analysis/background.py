"""Figures of the load beside a validation in each step. No verdict depends on them."""

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
    """One background queue during one measurement of a step.

    Times of successful requests in seconds.
    """

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
    """The queue of a background load: the queue of the run and its name."""
    return f"{plan.queue}-{background.name}"


def summarise_background(
    plan: Plan, measurements: Sequence[Measurement], records: Sequence[Record]
) -> list[BackgroundStep]:
    """One BackgroundStep for every background queue and measurement, in the order of both."""
    steps = []
    for background in plan.background:
        queue = queue_of(plan, background)
        for measurement in measurements:
            own = [
                record
                for record in records
                if record.queue == queue and (record.step, record.repeat) == measurement.key
            ]
            good = [record for record in own if record.ok]
            steps.append(
                BackgroundStep(
                    name=background.name,
                    workers=measurement.workers,
                    repeat=measurement.repeat,
                    throughput=throughput(ends_of(own), background.workers),
                    failures=sum(failed(record) for record in own),
                    wait=summary(record.reply.wait_s for record in good),
                    run=summary(record.reply.run_s for record in good),
                )
            )
    return steps
