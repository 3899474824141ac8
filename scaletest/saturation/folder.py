"""The folder of a saturation run, with samples as its records."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import ClassVar

from scaletest.model.attempt import Attempt, from_json, to_json
from scaletest.model.errors import UsageError
from scaletest.runs.folder import RECORDS, STEPS, TypedFolder
from scaletest.saturation.plan import KIND, SaturationPlan, SaturationStep


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

    def samples(self, steps: Iterable[SaturationStep]) -> dict[int, list[Attempt]]:
        """Read the samples of these steps, which are complete, by the step's number."""
        numbers = {step.number for step in steps}
        samples: dict[int, list[Attempt]] = defaultdict(list)
        for number, sample in self.rows(RECORDS):
            if number in numbers:
                samples[number].append(sample)
        return dict(samples)
