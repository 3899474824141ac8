"""What one worker did since it began, for who looks at it."""

from collections import Counter
from dataclasses import dataclass, field

from scaletest.model import Outcome


@dataclass(slots=True)
class WorkTally:
    """Counts of one worker."""

    ended: int = 0  # requests and jobs
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count a request that ended."""
        self.ended += 1
        self.outcomes[outcome.value] += 1

    @property
    def failed(self) -> int:
        """How many did not succeed."""
        return self.ended - self.outcomes[Outcome.SUCCEEDED.value]
