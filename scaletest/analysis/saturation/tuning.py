"""Which setting of a pod pays: throughput for what it asks for; who is pegged and who is idle. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.model.errors import InvalidValue

NAMES = ("cpu", "memory", "concurrency", "replicas")
MOST_SETTINGS = 200
PEGGED, IDLE = 0.9, 0.3
# What a GiB costs in cores, as cloud list prices have it.
CORES_A_GIB = 0.13


@dataclass(frozen=True, slots=True)
class TriedSetting:
    """A setting and what came of it. cpu, memory: cores and GiB of one pod, 0 when it does not say.

    used_cpu, used_memory: the mean over pods and samples, None when nobody tells.
    """

    setting: Mapping[str, str]
    per_s: float | None
    latency_s: float | None
    replicas: int
    cpu: float
    memory: float
    used_cpu: float | None = None
    used_memory: float | None = None
    trouble: str = ""

    @property
    def cost(self) -> float:
        """In cores, memory counted as its price in cores."""
        return self.replicas * (self.cpu + CORES_A_GIB * self.memory)

    @property
    def worth(self) -> float | None:
        """Requests a second for a core; None when either is unknown."""
        return self.per_s / self.cost if self.per_s is not None and self.cost > 0 else None

    @property
    def marks(self) -> list[str]:
        """pegged: uses 90 % of what it asks for or more; idle: under 30 %."""
        found = []
        for name, used, asked in (("CPU", self.used_cpu, self.cpu), ("memory", self.used_memory, self.memory)):
            if used is not None and asked > 0:
                share = used / asked
                if share >= PEGGED or share < IDLE:
                    found.append(f"{name} {'pegged' if share >= PEGGED else 'idle'} at {share:.0%}")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "setting": dict(self.setting),
            "saturation_per_s": self.per_s,
            "latency_s": self.latency_s,
            "replicas": self.replicas,
            "cpu": self.cpu,
            "memory_gib": self.memory,
            "used_cpu": self.used_cpu,
            "used_memory_gib": self.used_memory,
            "cost_cores": self.cost,
            "per_s_per_core": self.worth,
            "marks": self.marks,
            "trouble": self.trouble,
        }


def settings(texts: Sequence[str]) -> list[dict[str, str]]:
    """All combinations of NAME=V,V,...; InvalidValue for an unknown name, a name twice, or too many."""
    axes: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        found = [one.strip() for one in values.split(",") if one.strip()]
        if not equals or name not in NAMES or not found:
            raise InvalidValue(f"--tune {text[:60]!r}", hint=f"write NAME=V,V,... with NAME of {', '.join(NAMES)}")
        if name in axes:
            raise InvalidValue(f"--tune names {name} twice", hint="give all its values at once")
        for one in found:
            if name in ("concurrency", "replicas") and not (one.isascii() and one.isdigit() and 0 < int(one) <= 10_000):
                raise InvalidValue(f"{name} {one[:40]!r} is no number", hint="give whole numbers from 1")
        axes[name] = list(dict.fromkeys(found))
    made = [dict(zip(axes, row, strict=True)) for row in itertools.product(*axes.values())] if axes else []
    if len(made) > MOST_SETTINGS:
        raise InvalidValue(f"--tune makes {len(made)} settings", hint=f"give at most {MOST_SETTINGS}")
    return made


def ranked(tried: Sequence[TriedSetting]) -> list[TriedSetting]:
    """The most throughput for its cost first; without a cost the most throughput; what failed comes last."""
    return sorted(tried, key=lambda one: (one.per_s is None, -(one.worth or 0.0), -(one.per_s or 0.0)))
