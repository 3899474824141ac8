"""The load beside a validation: its other queues while each step was measured.

No verdict depends on these figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model import Measurement, Record
from scaletest.model.declared import Count, Positive, called, flat
from scaletest.model.writing import Written
from scaletest.stats.completions import Completions
from scaletest.stats.percentiles import Distribution, summary
from scaletest.validation.judging.steps import failed
from scaletest.validation.judging.throughput import Throughput, throughput
from scaletest.validation.plan import Background, Plan


@dataclass(frozen=True, slots=True)
class BackgroundStep(Written):
    """One background queue during one measurement of a step. Times of successful requests in
    seconds.
    """

    name: str
    workers: Annotated[Positive, "of the validated queue"]
    repeat: Annotated[Count, "as in the steps"]
    throughput: Annotated[Throughput, flat()]
    failures: Count
    wait: Annotated[Distribution, called("wait_s"), "from enqueued to started"]
    run: Annotated[Distribution, called("run_s"), "run time"]


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
                    throughput=throughput(Completions.of(own), background.workers),
                    failures=sum(failed(record) for record in own),
                    wait=summary(record.reply.wait_s for record in good),
                    run=summary(record.reply.run_s for record in good),
                )
            )
    return steps
