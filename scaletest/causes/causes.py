"""The causes that limit throughput: places where requests spend the time that more workers added.

See `attribution` for how they are found.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from scaletest.causes.places import PLACE_TEXTS
from scaletest.causes.slow_member import SlowMember
from scaletest.model.declared import Count, Positive, choice
from scaletest.model.writing import Written
from scaletest.stats.estimate import Estimate

# A cause with a smaller share does not explain the growth alone.
SUFFICIENT_SHARE = 0.5
NOTHING_GREW = "nothing grew by more than chance explains"
GREW_AS_WANTED = "nothing grew more than is wanted"
ONLY_ONE_STEP = "one step does not show what grows"
# Headlines of runs without a cause to look for.
NO_CAUSE_HEADLINES = (NOTHING_GREW, GREW_AS_WANTED, ONLY_ONE_STEP)
# A smaller share of the growth is no cause worth naming.
LEAST_SHARE = 0.03


@dataclass(frozen=True, slots=True)
class Cause(Written):
    """One place where requests spend added time."""

    state: Annotated[str, choice(PLACE_TEXTS), 'a State or "gap".']
    share: Annotated[Estimate, "part of the growth of a request's time"]
    grown_s: Annotated[Estimate, "seconds a request"]
    before_s: Annotated[float, "seconds a request in the first of the two steps"]
    after_s: Annotated[float, "seconds a request in the two steps."]
    object: Annotated[
        str, "path, address or device that most of the added time was spent on; empty for none"
    ]
    sentence: str
    remedy: Annotated[str, "what to try"]
    evidence: Annotated[
        tuple[str, ...], "use of the nodes' resources in these steps, the most relevant first"
    ] = ()
    confirmed: Annotated[
        bool | None, "whether the resources confirm it; null where none was measured"
    ] = None
    of_others: Annotated[bool, "whether other programs or scaletest took most of the resource"] = (
        False
    )

    @property
    def label(self) -> str:
        """The name in tables."""
        return PLACE_TEXTS[self.state].label


@dataclass(frozen=True, slots=True)
class StepTime(Written):
    """Mean seconds of a step's requests by place; places without any are left out."""

    workers: Positive
    per_device: Annotated[Count, "workers on each device, in a run that compares that; else 0"]
    seconds: Annotated[
        Mapping[str, float], "mean seconds of a request by state, and in the gap before it"
    ]

    @property
    def level(self) -> int:
        """The variable of the scaling law in this run: workers, or workers on each device."""
        return self.per_device or self.workers


@dataclass(frozen=True, slots=True)
class Causes(Written):
    """Growth between two steps of a run, and its causes."""

    description = "what keeps throughput from growing; null where no requests were sampled"

    before: Annotated[Positive, "workers of the step from which the time of a request grew"]
    after: Annotated[
        Positive, "workers of the step to which it grew; the same where only one step was measured"
    ]
    causes: Annotated[tuple[Cause, ...], "the largest share first"]
    grown_s: Annotated[
        Estimate, "by how much the time of a request grew, the gap before it included"
    ]
    observed: Annotated[float, "the part of the growth that was observed"]
    sampled_share: Annotated[
        float, "the part of the requests whose workers report where their time went"
    ]
    headline: Annotated[str, "why no cause is named; empty when one is"]
    slow: Annotated[
        SlowMember | None, "the only worker, device or node whose requests became slower"
    ]
    times: Annotated[tuple[StepTime, ...], "where the requests of every step spent their time"]
    pinned_cpus: Annotated[
        Count, "CPUs to which the processes of all requests are pinned; 0 where they are not"
    ] = 0

    @property
    def not_observed(self) -> str:
        """What was not observed of the growth, as in "6% not observed"; "" where it is little."""
        unseen = 1.0 - self.observed
        return f"{unseen:.0%} not observed" if unseen >= LEAST_SHARE else ""

    @property
    def sentence(self) -> Annotated[str, "the cause in one line; empty when nothing grew"]:
        """The causes in a few words; "" when nothing grew."""
        if self.headline in NO_CAUSE_HEADLINES:
            return ""
        if self.headline:
            parts = [f"Cause {self.headline}"]
        else:
            first, *others = self.causes
            parts = [f"Cause: {first.sentence}", *first.evidence[:1]]
            if others and first.share.value < SUFFICIENT_SHARE:
                parts.append(others[0].sentence)
            if self.not_observed:
                parts.append(self.not_observed)
        if self.slow:
            parts.append(self.slow.sentence)
        return "; ".join(parts)

    @property
    def of_others(self) -> bool:
        """Whether most of the added time is a wait for what other programs or the tester took."""
        if self.headline or self.slow:
            return False
        return self.causes[0].of_others and self.causes[0].share.value >= SUFFICIENT_SHARE

    @property
    def remedy(self) -> str:
        """The remedy; "" when no cause is named."""
        if self.slow:
            return self.slow.remedy
        return "" if self.headline else self.causes[0].remedy
