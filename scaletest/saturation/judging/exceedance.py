"""Whether a latency limit holds, by an exact binomial test of how many requests took longer.

"p99<50ms" says that at most 1 - 0.99 = 1 % of all requests take longer than 50 ms. When x of n
independent requests took longer and q is the share that the limit allows, the true share s is
bounded by Clopper and Pearson (1934, Biometrika 26, 404-413), one-sided with 5 %:

    refuted   the lower bound of s lies above q:       P(B >= x) < 0.05
    shown     the upper bound of s is no more than q:  P(B <= x) <= 0.05

with B binomial (n, q). Neither bound has to be computed: each lies beyond q exactly where the tail
at q is that small. In between nothing is known, and more requests are needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from scaletest.saturation.plan import QUANTILES
from scaletest.stats.percentiles import binomial_masses, samples_needed

# The chance with which one look may be wrong, in either direction.
ERROR = 0.05


def chance_of_at_least(count: int, over: int, share: float) -> float:
    """Return P(B >= over) for B binomial (count, share)."""
    if over <= 0:
        return 1.0
    first, masses = binomial_masses(count, share)
    return min(1.0, sum(masses[max(0, over - first) :]))


def chance_of_at_most(count: int, over: int, share: float) -> float:
    """Return P(B <= over) for B binomial (count, share)."""
    if over >= count:
        return 1.0
    first, masses = binomial_masses(count, share)
    return min(1.0, sum(masses[: max(0, over - first + 1)]))


@dataclass(frozen=True, slots=True)
class Exceedance:
    """Requests that took longer than the limit of a percentile."""

    percentile: str  # p50 to p99
    limit_s: float
    over: int  # requests that took longer
    count: int  # of so many

    @property
    def allowed_share(self) -> float:
        """The share of requests that may take longer."""
        return 1.0 - QUANTILES[self.percentile]

    @property
    def is_refuted(self) -> bool:
        """Whether more than the allowed share surely take longer."""
        return chance_of_at_least(self.count, self.over, self.allowed_share) < ERROR

    @property
    def is_shown(self) -> bool:
        """Whether no more than the allowed share surely take longer."""
        return chance_of_at_most(self.count, self.over, self.allowed_share) <= ERROR

    @property
    def needed_count(self) -> int:
        """The fewest requests that can show that the limit holds: none of them took longer."""
        return samples_needed(QUANTILES[self.percentile])

    def __add__(self, other: Exceedance) -> Exceedance:
        return replace(self, over=self.over + other.over, count=self.count + other.count)

    def may_be_decided_by(self, further: int) -> bool:
        """Whether so many further requests may decide.

        Of these none is taken to be over the limit where the limit may hold, else as large a part
        as so far.
        """
        if not self.count:
            return False
        if self.over <= self.allowed_share * self.count:
            return replace(self, count=self.count + further).is_shown
        over = self.over + round(further * self.over / self.count)
        return replace(self, over=over, count=self.count + further).is_refuted

    def __str__(self) -> str:
        limit = f"{1000 * self.limit_s:.4g} ms"
        allowed = f"{self.percentile} allows {self.allowed_share:.0%}"
        return f"{self.over} of {self.count} requests took longer than {limit}, {allowed}"
