"""The folder of a validation.

Records are on disk before the line in steps.jsonl that says their step is complete, so a reader, or
a run that goes on after it was killed, knows which records belong to a whole step.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scaletest.archive.environment import environment
from scaletest.model import Measurement, NodeSample, Plan, Record, wire
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.labels import UNLABELLED, Labels
from scaletest.runs.folder import (
    ENVIRONMENT,
    LOG,
    PLAN,
    RECORDS,
    RESULT,
    SAMPLES,
    STEPS,
    VALIDATION,
    RunFolder,
)


@dataclass(frozen=True, slots=True)
class StoredValidation:
    """A validation as it lies on disk.

    records: of complete steps, by (workers, repeat); background: those of other queues, of complete
    steps as well. result: {} when there is none. samples: of the nodes, in the order in which they
    came; none where nobody sampled. damaged: why samples are missing, "" when none are.
    """

    plan: Plan
    environment: dict[str, Any]
    measurements: list[Measurement]
    records: dict[tuple[int, int], list[Record]]
    background: list[Record]
    result: dict[str, Any]
    samples: list[NodeSample] = field(default_factory=list)
    damaged: str = ""


class ValidationFolder:
    """The steps, records and samples of one validation on disk."""

    def __init__(self, files: RunFolder) -> None:
        self.files = files
        self.path, self.name = files.path, files.name

    @property
    def log(self) -> Path:
        """Where local workers write."""
        return self.path / LOG

    def begin(self, plan: Plan, command_line: Sequence[str], labels: Labels = UNLABELLED) -> None:
        """Write plan, environment and labels."""
        self.files.begin(plan, environment(command_line, plan.device_glob), labels)

    def add(self, measurement: Measurement, records: Sequence[Record]) -> None:
        """Append a complete step and its records, and make sure they are on disk in this order."""
        self.files.append(RECORDS, (record.to_json() for record in records))
        self.files.append(STEPS, [measurement.to_json()])

    def add_samples(self, samples: Sequence[NodeSample]) -> None:
        """Append samples of nodes. They need not be on disk at once: a run can be judged without
        the last of them.
        """
        self.files.append(SAMPLES, (sample.to_json() for sample in samples), durable=False)

    def replace_samples(self, samples: Sequence[NodeSample]) -> None:
        """Keep these samples of nodes and no others."""
        self.files.replace(SAMPLES, (sample.to_json() for sample in samples))

    def load(self) -> StoredValidation:
        """Read everything; UsageError when this is no run, or no validation."""
        plan = self._plan()
        measurements = self._measurements()
        complete = {measurement.key for measurement in measurements}
        records: dict[tuple[int, int], list[Record]] = defaultdict(list)
        background: list[Record] = []
        for record in self._records():
            if (record.step, record.repeat) in complete:
                own = record.queue == plan.queue
                (records[record.step, record.repeat] if own else background).append(record)
        return StoredValidation(
            plan,
            self.files.read(ENVIRONMENT),
            measurements,
            dict(records),
            background,
            self.files.read(RESULT),
            *self._readable_samples(),
        )

    def _plan(self) -> Plan:
        if not self.files.exists:
            raise UsageError(f"{self.path} holds no run", hint="see: scaletest runs list")
        if self.files.kind != VALIDATION:
            raise UsageError(
                f"run {self.name} is no validation: it is a {self.files.kind} run",
                hint=f"see: scaletest report {self.name}",
            )
        return Plan.from_dict(self.files.read(PLAN))

    def _readable_samples(self) -> tuple[list[NodeSample], str]:
        """The samples up to the first that cannot be read, and why that one cannot; "" when all
        can.

        A run is judged without them: they only say why it went as it did.
        """
        samples: list[NodeSample] = []
        try:
            for sample in self._node_samples():
                samples.append(sample)
        except (UsageError, InvalidValue) as error:
            return samples, f"{SAMPLES} of {self.name}: {error.message}"
        return samples, ""

    def check(self) -> None:
        """UsageError or InvalidValue unless the whole run can be read. Never holds more than a
        record of it.
        """
        self._plan()
        for name in (ENVIRONMENT, RESULT):
            self.files.read(name)
        self._measurements()
        for _ in itertools.chain(self._records(), self._node_samples()):
            pass

    def _measurements(self) -> list[Measurement]:
        measurements = [Measurement.from_json(line) for line in self.files.lines(STEPS)]
        if len({measurement.key for measurement in measurements}) < len(measurements):
            raise InvalidValue(f"{STEPS} of run {self.name} holds a step twice")
        return measurements

    def _records(self) -> Iterator[Record]:
        yield from map(Record.from_json, self.files.lines(RECORDS))

    def _node_samples(self) -> Iterator[NodeSample]:
        for line in self.files.lines(SAMPLES):
            yield NodeSample.from_dict(wire.load(line, f"{SAMPLES} of run {self.name}"))

    def forget_unfinished(self, stored: StoredValidation) -> None:
        """Rewrite steps, records and samples to `stored`: what was cut off leaves nothing
        behind.
        """
        whole = {measurement.key for measurement in stored.measurements}
        records = [*itertools.chain(*stored.records.values()), *stored.background]
        kept = (each.to_json() for each in records if (each.step, each.repeat) in whole)
        self.files.replace(RECORDS, kept)
        self.files.replace(STEPS, (measurement.to_json() for measurement in stored.measurements))
        if (self.path / SAMPLES).exists():
            self.replace_samples(stored.samples)
