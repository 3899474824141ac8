"""The causes of a run that does not scale, as reports show them. `causes` finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.cause_text import PLACE_TEXTS
from scaletest.analysis.estimate import Estimate
from scaletest.analysis.slow_member import SlowMember

# A state with a smaller share does not explain the growth alone.
MAIN_SHARE = 0.5
NOTHING_GREW = "nothing grew by more than chance explains"
AS_WANTED = "nothing grew more than is wanted"
ALONE = "one step does not show what grows"
# Headlines of runs without a cause to look for.
NO_CAUSE = (NOTHING_GREW, AS_WANTED, ALONE)


@dataclass(frozen=True, slots=True)
class Cause:
    """One place where requests spend added time.

    state: a State or "gap". share: part of the growth of a cycle, at most 1. before_s, after_s:
    seconds a request in the two steps. object: where most of the added time was spent: a path, an
    address, a device; "" where it has none, or none holds more than half. evidence: what the
    resources of the nodes did meanwhile. confirmed: whether they agree; None where nothing measured
    is about it.
    """

    state: str
    share: Estimate
    grown_s: Estimate
    before_s: float
    after_s: float
    object: str
    sentence: str
    remedy: str
    evidence: tuple[str, ...] = ()
    confirmed: bool | None = None

    @property
    def label(self) -> str:
        """The name in tables."""
        return PLACE_TEXTS[self.state].label

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "state": str(self.state),
            "share": self.share.to_dict(),
            "grown_s": self.grown_s.to_dict(),
            "before_s": self.before_s,
            "after_s": self.after_s,
            "object": self.object,
            "sentence": self.sentence,
            "remedy": self.remedy,
            "evidence": list(self.evidence),
            "confirmed": self.confirmed,
        }


@dataclass(frozen=True, slots=True)
class StepTime:
    """Mean seconds of a step's requests by place; places without any are left out."""

    workers: int
    per_device: int
    seconds: Mapping[str, float]

    @property
    def level(self) -> int:
        """The variable of the scaling law in this run: workers, or workers on each device."""
        return self.per_device or self.workers

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "workers": self.workers,
            "per_device": self.per_device,
            "seconds": dict(self.seconds),
        }


@dataclass(frozen=True, slots=True)
class Causes:
    """Growth between two steps of a run, and its causes.

    before, after: their workers; the same where only one step reports where its requests spend the
    time. causes: ranked, the largest share first. grown_s: by how much a cycle grew. observed: the
    part of that which was observed. covered: the part of the requests that report where their time
    went. headline: why no cause is named, "" when one is. slow: the worker, device or node that got
    slower alone. times: where the requests of every step spent their time.
    """

    before: int
    after: int
    causes: tuple[Cause, ...]
    grown_s: Estimate
    observed: float
    covered: float
    headline: str
    slow: SlowMember | None
    times: tuple[StepTime, ...]

    @property
    def sentence(self) -> str:
        """The causes in a few words; "" when nothing grew."""
        if self.headline in NO_CAUSE:
            return ""
        beginning, parts = "Cause", [self.headline]
        if not self.headline:
            first, *others = self.causes
            beginning, parts = "Cause:", [first.sentence, *first.evidence[:1]]
            if others and first.share.value < MAIN_SHARE:
                parts.append(others[0].sentence)
        if self.slow:
            parts.append(self.slow.sentence)
        return f"{beginning} {'; '.join(parts)}"

    @property
    def remedy(self) -> str:
        """The remedy; "" when no cause is named."""
        if self.slow:
            return self.slow.remedy
        if self.headline:
            return ""
        return self.causes[0].remedy

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "before": self.before,
            "after": self.after,
            "headline": self.headline,
            "sentence": self.sentence,
            "grown_s": self.grown_s.to_dict(),
            "observed": self.observed,
            "covered": self.covered,
            "causes": [cause.to_dict() for cause in self.causes],
            "slow": self.slow.to_dict() if self.slow else None,
            "times": [time.to_dict() for time in self.times],
        }
