"""What one worker did since it began, for who looks at it."""

from collections import Counter
from dataclasses import dataclass, field

from scaletest.model import Outcome


@dataclass(slots=True)
class WorkTally:
    """Counts of one worker's requests and jobs that ended."""

    ended: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    run_s: float = 0.0  # of all together

    def add(self, outcome: Outcome, run_s: float) -> None:
        """Count a request that ended after so many seconds."""
        self.ended += 1
        self.outcomes[outcome.value] += 1
        self.run_s += run_s

    @property
    def succeeded(self) -> int:
        """How many succeeded."""
        return self.outcomes[Outcome.SUCCEEDED.value]

    @property
    def failed(self) -> int:
        """How many did not succeed."""
        return self.ended - self.succeeded
