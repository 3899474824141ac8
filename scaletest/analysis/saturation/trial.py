"""What a search asks for and what it is told: a probe of a level, the trial that came of it, the bracket in the end."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum

from scaletest.analysis.estimate import Estimate
from scaletest.model.saturation import Phase


@dataclass(frozen=True, slots=True)
class Probe:
    """A level to measure next, and why."""

    level: float
    phase: Phase


class Finding(StrEnum):
    """What a trial says of its level. open: neither that it holds nor that it does not."""

    HELD = "held"
    FAILED = "failed"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Trial:
    """What a step found. per_s: what succeeded. unfit: the tester was the bottleneck. growth: of the backlog.

    slow: it was saturated by its latency alone. undecided: whether the latency limit holds is not known.
    """

    level: float
    saturated: bool
    per_s: float
    unfit: bool = False
    growth: Estimate | None = None
    slow: bool = False
    undecided: bool = False

    @property
    def finding(self) -> Finding:
        """Whether the level held."""
        if self.saturated or self.unfit:
            return Finding.FAILED
        return Finding.OPEN if self.undecided else Finding.HELD


@dataclass(frozen=True, slots=True)
class Bracket:
    """low: the highest level that held, None when none did. high: the lowest that did not, None when none was met.

    plateau_per_s: of closed load. confirmed: the ends were measured again and said the same. steps: before that.
    unfit: at the high end the tester was the bottleneck, so nothing is known of the service there.
    undecided: levels above the low end and below the high one whose latency limit was neither shown nor refuted.
    """

    low: float | None
    high: float | None
    plateau_per_s: float | None = None
    confirmed: bool = False
    steps: int = 0
    unfit: bool = False
    undecided: tuple[float, ...] = ()


Search = Generator[Probe, Trial, Bracket]
