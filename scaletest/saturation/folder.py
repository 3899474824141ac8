"""The folder of a saturation run, with samples as its records. Judged anew by whoever reads it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from scaletest.model.attempt import Attempt, from_json, to_json
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.saturation import KIND, SaturationPlan, SaturationStep
from scaletest.runs.folder import ENVIRONMENT, PLAN, RECORDS, RESULT, STEPS, RunFolder


@dataclass(frozen=True, slots=True)
class StoredSaturation:
    """samples: of complete steps, by the step's number. result: {} when there is none."""

    plan: SaturationPlan
    environment: dict[str, Any]
    steps: list[SaturationStep]
    samples: dict[int, list[Attempt]]
    result: dict[str, Any]


class SaturationFolder:
    """The steps and samples of one saturation run on disk."""

    def __init__(self, files: RunFolder) -> None:
        self.files = files
        self.path, self.name = files.path, files.name

    def store(self, step: SaturationStep, samples: Sequence[Attempt]) -> None:
        """Append a complete step and its samples, on disk in this order."""
        try:
            self.files.append(RECORDS, (to_json(sample, step.number) for sample in samples))
            self.files.append(STEPS, [step.to_json()])
        except UsageError as error:
            raise UsageError(
                error.message,
                hint=f"make room; the steps before are kept: scaletest report {self.path}",
            ) from error

    def forget_empty(self) -> None:
        """Delete a run of which nothing is known: its first call failed, or no agent came."""
        if not (self.path / STEPS).exists() and not (self.path / RESULT).exists():
            with suppress(UsageError):
                self.files.remove()

    def load(self) -> StoredSaturation:
        """Read everything; UsageError when this is no saturation run, or cannot be read."""
        if not self.files.exists or self.files.kind != KIND:
            raise UsageError(
                f"{self.path} holds no saturation run", hint="see: scaletest runs list"
            )
        with self.files.readable():
            plan, steps = self._plan(), self._steps()
            complete = {step.number for step in steps}
            samples: dict[int, list[Attempt]] = defaultdict(list)
            for number, sample in self._samples():
                if number in complete:
                    samples[number].append(sample)
            environment, result = self.files.read(ENVIRONMENT), self.files.read(RESULT)
            return StoredSaturation(plan, environment, steps, dict(samples), result)

    def check(self) -> None:
        """UsageError unless the whole run can be read. Never holds more than a sample of it."""
        with self.files.readable():
            self._plan()
            self._steps()
            for name in (ENVIRONMENT, RESULT):
                self.files.read(name)
            for _ in self._samples():
                pass

    def _plan(self) -> SaturationPlan:
        return SaturationPlan.from_dict(self.files.read(PLAN))

    def _steps(self) -> list[SaturationStep]:
        steps = [SaturationStep.from_json(line) for line in self.files.lines(STEPS)]
        if len({step.number for step in steps}) < len(steps):
            raise InvalidValue(f"{STEPS} of run {self.name} holds a step twice")
        return steps

    def _samples(self) -> Iterator[tuple[int, Attempt]]:
        yield from map(from_json, self.files.lines(RECORDS))
