"""Use of the tester's machine during a step: who used its cores, and what the service did there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scaletest.model import checks, wire
from scaletest.model.activity import Activity

_MOST_CORES = 1e6
MOST_ACTIVITIES = 8


@dataclass(frozen=True, slots=True)
class MachineUse:
    """Means over a step, in cores.

    cores: that the machine has. busy: in use, including those that a hypervisor took away.
    tester: used by the tester's processes. service: used by the service's processes, 0 when it is
    not on this machine. waited: part of the time that the tester's thread waited for a CPU.
    activities: of the service's processes, each with the processes that it started; empty when the
    service is not on this machine, or its processes may not be read.
    """

    cores: float
    busy: float
    tester: float
    service: float = 0.0
    waited: float = 0.0
    activities: tuple[Activity, ...] = ()

    def __post_init__(self) -> None:
        for name in _FIGURES:
            checks.number(getattr(self, name), name, maximum=_MOST_CORES, zero=True)

    @property
    def others(self) -> float:
        """Cores that other programs used."""
        return max(0.0, self.busy - self.tester - self.service)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        figures = {name: round(getattr(self, name), 4) for name in _FIGURES}
        activities = [activity.to_dict() for activity in self.activities]
        return {**figures, "others": round(self.others, 4), "activities": activities}

    @classmethod
    def from_dict(cls, data: Any) -> MachineUse:
        """Read what `to_dict` wrote; InvalidValue on anything else."""
        number = (int, float)
        types: dict[str, type | tuple[type, ...]] = {
            **dict.fromkeys(_FIGURES, number),
            "activities": list,
        }
        fields = wire.take(data, "the use of the machine", types)
        activities = fields.get("activities", [])[:MOST_ACTIVITIES]
        fields["activities"] = tuple(map(Activity.from_dict, activities))
        return cls(**fields)


_FIGURES = ("cores", "busy", "tester", "service", "waited")
