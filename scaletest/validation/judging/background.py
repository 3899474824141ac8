"""The load beside a validation: its figures in every measurement of a step."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model import Measurement, Record
from scaletest.model.declared import (
    Count,
    Positive,
    flat,
    named_in_documents,
)
from scaletest.model.writing import Written
from scaletest.stats.completions import Completions
from scaletest.stats.percentiles import Distribution, summarise_samples
from scaletest.validation.judging.steps import has_failed
from scaletest.validation.judging.throughput import Throughput, throughput
from scaletest.validation.plan import Background, Plan


@dataclass(frozen=True, slots=True)
class BackgroundStep(Written):
    """One background queue during one measurement of a step. No verdict depends on it.

    Times of successful requests in seconds.
    """

    name: str
    workers: Annotated[Positive, "of the validated queue"]
    repeat: Annotated[Count, "as in the steps"]
    throughput: Annotated[Throughput, flat()]
    failures: Count
    wait: Annotated[Distribution, named_in_documents("wait_s"), "from enqueued to started"]
    run: Annotated[Distribution, named_in_documents("run_s"), "run time"]


def queue_of(plan: Plan, background: Background) -> str:
    """Return the queue of a background load: the queue of the run and its name."""
    return f"{plan.queue}-{background.name}"


def summarise_background(
    plan: Plan, measurements: Sequence[Measurement], records: Sequence[Record]
) -> list[BackgroundStep]:
    """Return one step for every background queue and measurement, in the order of both."""
    by_key: dict[tuple[str, int, int], list[Record]] = defaultdict(list)
    for record in records:
        by_key[record.queue, record.step, record.repeat].append(record)
    steps = []
    for background in plan.background:
        for measurement in measurements:
            rows = by_key[queue_of(plan, background), *measurement.key]
            succeeded = [record for record in rows if record.ok]
            steps.append(
                BackgroundStep(
                    name=background.name,
                    workers=measurement.workers,
                    repeat=measurement.repeat,
                    throughput=throughput(Completions.of(rows), background.workers),
                    failures=sum(map(has_failed, rows)),
                    wait=summarise_samples(record.reply.wait_s for record in succeeded),
                    run=summarise_samples(record.reply.run_s for record in succeeded),
                )
            )
    return steps
