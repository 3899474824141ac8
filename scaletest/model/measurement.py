"""Measurements of a step: its time and end, and what it used of the tester's machine."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from scaletest.model.activity import Activity
from scaletest.model.declared import VERSIONED, Count, Positive, Seconds
from scaletest.model.document import Document

Cores = Annotated[float, Meta(ge=0, le=1e6, extra={"digits": 4})]
MOST_ACTIVITIES = 8


@dataclass(frozen=True, slots=True)
class Measurement(Document):
    """A measurement of one step, whose records carry the same numbers of workers and repeat."""

    document_name = "the measurement"
    constants = VERSIONED

    workers: Annotated[
        Positive, "the step that was measured, and which of its measurements this is, from 0."
    ]
    repeat: Annotated[
        Count, "the step that was measured, and which of its measurements this is, from 0."
    ] = 0
    scale_s: Annotated[
        Seconds, "seconds from the request to scale until all workers served the queue."
    ] = 0.0
    measured_s: Annotated[Seconds, "seconds under load."] = 0.0
    stop: Annotated[str, "why it ended, a value of validation.judging.stopping.Stop."] = ""
    requests: Annotated[
        Count | None,
        "how many of its records were written, so that a lost record is noticed; null where "
        "they were not counted.",
    ] = None
    warm_at_s: Annotated[
        Annotated[float, Meta(ge=0, le=1e12)] | None,
        "when the warm-up ended, on Redis's clock, as the stopping rule found it; 0: it had "
        "none; null where the stopping rule found none, or where the plan sets the warm-up.",
    ] = None

    @property
    def key(self) -> tuple[int, int]:
        """Workers and repeat, by which its records are found."""
        return self.workers, self.repeat


@dataclass(frozen=True, slots=True)
class MachineUse(Document):
    """What used the cores of the tester's machine during a step: means, in cores."""

    document_name = "the use of the machine"

    cores: Annotated[Cores, "that the machine has."]
    busy: Annotated[Cores, "in use, including those that a hypervisor took away."]
    tester: Annotated[Cores, "used by the load generator's processes."]
    service: Annotated[
        Cores, "used by the service's processes, 0 when it is not on this machine."
    ] = 0.0
    waited: Annotated[
        Cores, "part of the time that the load generator's thread waited for a CPU."
    ] = 0.0
    activities: Annotated[
        tuple[Activity, ...],
        Meta(max_length=MOST_ACTIVITIES),
        "of the service's processes, each with the processes that it started; empty when the "
        "service is not on this machine, or its processes may not be read.",
    ] = ()

    @property
    def others(self) -> Cores:
        """Cores that other programs used."""
        return max(0.0, self.busy - self.tester - self.service)
