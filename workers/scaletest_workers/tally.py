"""What one worker did since it began: outcomes and run times."""

from collections import Counter
from dataclasses import dataclass, field

from scaletest.model import Outcome
from scaletest.model.histogram import bucket_of


@dataclass(slots=True)
class WorkTally:
    """Counts of one worker's requests and jobs that ended."""

    ended: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    run_s: float = 0.0  # of all together
    run_times: Counter[int] = field(default_factory=Counter)  # by bucket of the histogram

    def add(self, outcome: Outcome, run_s: float) -> None:
        """Count a request that ended after so many seconds."""
        self.ended += 1
        self.outcomes[outcome.value] += 1
        self.run_s += run_s
        self.run_times[bucket_of(run_s)] += 1

    @property
    def succeeded(self) -> int:
        """How many succeeded."""
        return self.outcomes[Outcome.SUCCEEDED.value]

    @property
    def failed(self) -> int:
        """How many did not succeed."""
        return self.ended - self.succeeded
