"""Measurements of a step: its time and end, the machine of the tester, and samples of nodes.

A sample of a node is the use of its resources and devices in one interval, read by one of its
workers. A resource is "cpu", "memory", "pressure", "container", or a disk, a network or a device:
"disk:sda", "network:eth0", "device:/dev/dri/renderD128". Its figures are rates over the interval or
levels at its end, so that a lost sample changes nothing. Only energy is a counter, because the
energy of a step is the difference of two readings.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from scaletest.model.declared import VERSIONED, Count, Positive, Seconds
from scaletest.model.document import Document


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
    stop: Annotated[str, "why it ended, a value of analysis.stopping.Stop."] = ""
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
        """Workers and repeat, which the records carry too."""
        return self.workers, self.repeat
