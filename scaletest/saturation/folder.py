"""The folder of a saturation run, with samples as its records."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from scaletest.model.attempt import Attempt, from_json, to_json
from scaletest.model.errors import UsageError
from scaletest.runs.folder import ENVIRONMENT, RECORDS, RESULT, STEPS, TypedFolder
from scaletest.saturation.plan import KIND, SaturationPlan, SaturationStep


@dataclass(frozen=True, slots=True)
class StoredSaturation:
    """What is on disk of one run."""

    plan: SaturationPlan
    environment: dict[str, Any]
    steps: list[SaturationStep]
    samples: dict[int, list[Attempt]]  # of complete steps, by the step's number
    result: dict[str, Any]  # {} when there is none


class SaturationFolder(TypedFolder[SaturationPlan]):
    """The steps and samples of one saturation run on disk."""

    run_type = KIND
    plan_type = SaturationPlan
    readers: ClassVar = {STEPS: SaturationStep.from_json, RECORDS: from_json}

    def store(self, step: SaturationStep, samples: Sequence[Attempt]) -> None:
        """Append a complete step and its samples, on disk in this order."""
        try:
            self.append(RECORDS, (to_json(sample, step.number) for sample in samples))
            self.append(STEPS, [step.to_json()])
        except UsageError as error:
            raise UsageError(
                error.message,
                hint="free some disk space; the steps measured so far are kept:"
                f" scaletest report {self.path}",
            ) from error

    def forget_empty(self) -> None:
        """Delete a run of which nothing is known: its first call failed, or no agent came."""
        if not (self.path / STEPS).exists() and not (self.path / RESULT).exists():
            with suppress(UsageError):
                self.remove()

    def load(self) -> StoredSaturation:
        """Read everything; UsageError when this is no saturation run, or cannot be read."""
        with self.readable():
            plan, steps = self.plan(), self.steps()
            complete = {step.number for step in steps}
            samples: dict[int, list[Attempt]] = defaultdict(list)
            for number, sample in self.rows(RECORDS):
                if number in complete:
                    samples[number].append(sample)
            return StoredSaturation(
                plan, self.read(ENVIRONMENT), steps, dict(samples), self.read(RESULT)
            )
