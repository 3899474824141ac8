"""What one worker did since it began, for who looks at it: outcomes and run times."""

from collections import Counter
from dataclasses import dataclass, field

from scaletest.model import Outcome
from scaletest.model.histogram import bucket_of


@dataclass(slots=True)
class WorkTally:
    """Counts of one worker."""

    ended: int = 0  # requests and jobs
    outcomes: Counter[str] = field(default_factory=Counter)
    run_times: Counter[int] = field(default_factory=Counter)  # by bucket of the histogram

    def add(self, outcome: Outcome, run_s: float) -> None:
        """Count a request that ended."""
        self.ended += 1
        self.outcomes[outcome.value] += 1
        self.run_times[bucket_of(run_s)] += 1

    @property
    def failed(self) -> int:
        """How many did not succeed."""
        return self.ended - self.outcomes[Outcome.SUCCEEDED.value]
