"""A step of a saturation that was measured.

It stands beside its attempts: requests that were sent once, as the tester saw them. Everything in a
report is derived from these. Their times are seconds since the step began, on the tester's
monotonic clock; all agents begin a step together, so their times are comparable.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from scaletest.model.attempt import PodTroubles
from scaletest.model.declared import VERSIONED, choice
from scaletest.model.document import Document
from scaletest.model.measurement import MachineUse
from scaletest.saturation.plan import LoadKind, Phase

_FIGURE = Annotated[float, Meta(ge=0, le=1e12, extra={"unit": "s"})]


@dataclass(frozen=True, slots=True)
class SaturationStep(Document):
    """One step that was measured."""

    document_name = "the step"
    constants = VERSIONED

    number: Annotated[int, "from 0."]
    phase: Annotated[str, choice(Phase, "phase")]
    load: Annotated[str, choice(LoadKind, "load"), "open or closed."]
    level: Annotated[_FIGURE, "in the load's unit."]
    seconds: Annotated[
        _FIGURE,
        "from its beginning until no request was due any more; requests that ended later "
        "count too.",
    ]
    requests: int
    warmup_s: Annotated[_FIGURE, "the beginning that does not count."] = 0.0
    cpu: Annotated[_FIGURE, "cores that each tester process used, at most."] = 0.0
    beat_s: Annotated[_FIGURE, "how late the tester's timers fired, 99th percentile."] = 0.0
    throttled_s: Annotated[
        _FIGURE, "how long the tester's CPU limit kept it off the CPUs, summed over CPUs."
    ] = 0.0
    unsent: Annotated[int, "requests that were due and never sent."] = 0
    began: str = ""
    around: Annotated[
        MachineUse | None, "use of the tester's machine during the step; None when it was not read."
    ] = None
    throttled_periods: Annotated[_FIGURE, "part of the limit's periods in which it did."] = 0.0
    pods: Annotated[
        PodTroubles | None, "of the service's Deployment; None when they were not read."
    ] = None

    @property
    def key(self) -> int:
        """What tells it from other steps of its run."""
        return self.number
