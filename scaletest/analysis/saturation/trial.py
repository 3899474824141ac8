"""The messages of a search: a probe of a level, the trial of it, and the bracket at the end."""

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
    """The finding of a trial. open: neither that the level holds nor that it does not."""

    HELD = "held"
    FAILED = "failed"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of one step.

    per_s: successful requests a second. unfit: the tester was the bottleneck. growth: of the
    backlog. slow: it was saturated by its latency alone. undecided: whether the latency limit holds
    is unknown.
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
        if self.undecided:
            return Finding.OPEN
        return Finding.HELD


@dataclass(frozen=True, slots=True)
class Bracket:
    """The levels between which the saturation point lies.

    low: the highest level that held, None when none did. high: the lowest that did not, None
    without one. plateau_per_s: of closed load. confirmed: the ends were measured again with the
    same findings. steps: before that. unfit: at the high end the tester was the bottleneck, so the
    service may take more. undecided: levels above the low end and below the high one whose latency
    limit was neither shown nor refuted.
    """

    low: float | None
    high: float | None
    plateau_per_s: float | None = None
    confirmed: bool = False
    steps: int = 0
    unfit: bool = False
    undecided: tuple[float, ...] = ()


Search = Generator[Probe, Trial, Bracket]
