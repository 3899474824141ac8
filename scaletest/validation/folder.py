"""The folder of a validation on disk.

Records are on disk before the line in steps.jsonl that says their step is complete. So a reader, or
a run that goes on after it was killed, knows which records belong to a complete step.
"""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from scaletest.model import Measurement, NodeSample, Record
from scaletest.runs.folder import (
    ENVIRONMENT,
    LOG,
    RECORDS,
    RESULT,
    SAMPLES,
    STEPS,
    VALIDATION,
    TypedFolder,
)
from scaletest.validation.plan import Plan


@dataclass(frozen=True, slots=True)
class StoredValidation:
    """A validation as it lies on disk."""

    plan: Plan
    environment: dict[str, Any] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    # of complete steps, by (workers, repeat)
    records: dict[tuple[int, int], list[Record]] = field(default_factory=dict)
    # those of other queues, of complete steps as well
    background: list[Record] = field(default_factory=list)
    # {} when there is none
    result: dict[str, Any] = field(default_factory=dict)
    # of the nodes, in the order in which they came; none where nobody sampled
    samples: list[NodeSample] = field(default_factory=list)


class ValidationFolder(TypedFolder[Plan]):
    """The steps, records and samples of one validation on disk."""

    run_type = VALIDATION
    plan_type = Plan
    readers: ClassVar = {
        STEPS: Measurement.from_json,
        RECORDS: Record.from_json,
        SAMPLES: NodeSample.from_json,
    }

    @property
    def log(self) -> Path:
        """The file that local workers write to."""
        return self.path / LOG

    def add(self, measurement: Measurement, records: Sequence[Record]) -> None:
        """Append a complete step and its records, and make sure they are on disk in this order."""
        self.append(RECORDS, (record.to_json() for record in records))
        self.append(STEPS, [measurement.to_json()])

    def add_samples(self, samples: Sequence[NodeSample]) -> None:
        """Append samples of nodes, without waiting for the disk: the last ones may be lost."""
        self.append(SAMPLES, (sample.to_json() for sample in samples), durable=False)

    def replace_samples(self, samples: Sequence[NodeSample]) -> None:
        """Keep these samples of nodes and no others."""
        self.replace(SAMPLES, (sample.to_json() for sample in samples))

    def load(self) -> StoredValidation:
        """Read everything; UsageError when this is no run, or no validation."""
        plan, measurements = self.plan(), self.steps()
        complete = {measurement.key for measurement in measurements}
        records: dict[tuple[int, int], list[Record]] = defaultdict(list)
        background: list[Record] = []
        for record in self.rows(RECORDS):
            key = (record.step, record.repeat)
            if key in complete:
                of_queue = records[key] if record.queue == plan.queue else background
                of_queue.append(record)
        return StoredValidation(
            plan=plan,
            environment=self.read(ENVIRONMENT),
            measurements=measurements,
            records=dict(records),
            background=background,
            result=self.read(RESULT),
            samples=list(self.rows(SAMPLES)),
        )

    def forget_unfinished(self, stored: StoredValidation) -> None:
        """Rewrite steps, records and samples to `stored`, so that nothing cut off is left."""
        complete = {measurement.key for measurement in stored.measurements}
        records = [*itertools.chain(*stored.records.values()), *stored.background]
        kept = [record for record in records if (record.step, record.repeat) in complete]
        self.replace(RECORDS, (record.to_json() for record in kept))
        self.replace(STEPS, (measurement.to_json() for measurement in stored.measurements))
        if (self.path / SAMPLES).exists():
            self.replace_samples(stored.samples)
