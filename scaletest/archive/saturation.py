"""A saturation run's folder: the files of every run, with samples as records; readers judge it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from scaletest.archive.folder import ENVIRONMENT, PLAN, RECORDS, RESULT, STEPS, RunFolder
from scaletest.model.attempt import Attempt, from_json, to_json
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.saturation import KIND, SaturationPlan, SaturationStep


@dataclass(frozen=True, slots=True)
class StoredSaturation:
    """samples: of complete steps, by the step's number. result: {} when there is none."""

    plan: SaturationPlan
    environment: dict[str, Any]
    steps: list[SaturationStep]
    samples: dict[int, list[Attempt]]
    result: dict[str, Any]


class SaturationFolder(RunFolder):
    """One saturation run on disk."""

    def store(self, step: SaturationStep, samples: Sequence[Attempt]) -> None:
        """Append a complete step and its samples, on disk in this order."""
        try:
            with self._trouble("written"):
                self._append(RECORDS, (to_json(one, step.number) for one in samples))
                self._append(STEPS, [step.to_json()])
        except UsageError as error:
            raise UsageError(
                error.message,
                hint=f"make room; the steps before are kept: scaletest report {self.path}",
            ) from error

    def forget_empty(self) -> None:
        """Delete a run of which nothing is known: its first call failed, or no agent came."""
        if not (self.path / STEPS).exists() and not (self.path / RESULT).exists():
            with suppress(UsageError):
                self.remove()

    def saturation(self) -> StoredSaturation:
        """Read everything; UsageError when this is no saturation run, or cannot be read."""
        if not (self.path / PLAN).is_file() or self.kind != KIND:
            raise UsageError(
                f"{self.path} holds no saturation run", hint="see: scaletest runs list"
            )
        with self._readable():
            plan, steps = self._saturation_plan(), self._steps()
            complete = {step.number for step in steps}
            samples: dict[int, list[Attempt]] = defaultdict(list)
            for number, sample in self._samples():
                if number in complete:
                    samples[number].append(sample)
            return StoredSaturation(
                plan, self._read(ENVIRONMENT), steps, dict(samples), self._read(RESULT)
            )

    def check(self) -> None:
        """UsageError unless the whole run can be read. Never holds more than a sample of it."""
        with self._readable():
            self._saturation_plan()
            self._steps()
            for name in (ENVIRONMENT, RESULT):
                self._read(name)
            for _ in self._samples():
                pass

    def _saturation_plan(self) -> SaturationPlan:
        return SaturationPlan.from_dict(self._read(PLAN))

    def _steps(self) -> list[SaturationStep]:
        steps = [SaturationStep.from_json(line) for line in self._lines(STEPS)]
        if len({step.number for step in steps}) < len(steps):
            raise InvalidValue(f"{STEPS} of run {self.name} holds a step twice")
        return steps

    def _samples(self) -> Iterator[tuple[int, Attempt]]:
        for line in self._lines(RECORDS):
            yield from_json(line)
