"""What a step used of the tester's machine."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from scaletest.model.activity import Activity
from scaletest.model.document import Document

Cores = Annotated[float, Meta(ge=0, le=1e6, extra={"digits": 4})]
MOST_ACTIVITIES = 8


@dataclass(frozen=True, slots=True)
class MachineUse(Document):
    """Means over a step, in cores."""

    document_name = "the use of the machine"

    cores: Annotated[Cores, "that the machine has."]
    busy: Annotated[Cores, "in use, including those that a hypervisor took away."]
    tester: Annotated[Cores, "used by the tester's processes."]
    service: Annotated[
        Cores, "used by the service's processes, 0 when it is not on this machine."
    ] = 0.0
    waited: Annotated[Cores, "part of the time that the tester's thread waited for a CPU."] = 0.0
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
