"""What a search for the saturating level asks for, is told, and finds: the bracket.

A search is a generator: it yields the level to measure next, is sent the outcome, and returns the
bracket when it ends (`search_open_load`, `search_closed_load`).
"""

from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum

from scaletest.saturation.plan import Phase
from scaletest.stats.estimate import Estimate

# From one level of the ramp to the next.
RAMP_FACTOR = 2.0
# Steps of a search before its bracket is confirmed, and how often its ends are measured again.
MOST_STEPS = 12
CONFIRMATIONS = 2


@dataclass(frozen=True, slots=True)
class Probe:
    """A level to measure next, and why."""

    level: float
    phase: Phase


class Finding(StrEnum):
    """Whether a level held in a trial."""

    HELD = "held"
    FAILED = "failed"
    OPEN = "open"  # neither that the level holds nor that it does not


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of one step."""

    level: float
    saturated: bool
    per_s: float  # successful requests
    unfit: bool = False  # the tester was the bottleneck
    growth: Estimate | None = None  # of the backlog
    slow: bool = False  # saturated by its latency alone
    undecided: bool = False  # it is unknown whether the latency limit holds

    @property
    def finding(self) -> Finding:
        """Whether the level held, by all of this."""
        if self.saturated or self.unfit:
            return Finding.FAILED
        return Finding.OPEN if self.undecided else Finding.HELD


@dataclass(frozen=True, slots=True)
class Bracket:
    """The levels between which the saturation point lies."""

    low: float | None  # the highest level that held, None when none did
    high: float | None  # the lowest that did not, None without one
    plateau_per_s: float | None = None  # of closed load
    confirmed: bool = False  # the ends were measured again with the same findings
    steps: int = 0  # before that
    unfit: bool = False  # at the high end the tester was the bottleneck: the service may take more
    # levels between the ends whose latency limit was neither shown nor refuted
    undecided: tuple[float, ...] = ()


Search = Generator[Probe, Trial, Bracket]
