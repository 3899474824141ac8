"""Which setting of a pod is worth its cost: throughput for its resources, and their use."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.model.errors import InvalidValue

NAMES = ("cpu", "memory", "concurrency", "replicas")
MOST_SETTINGS = 200
PEGGED, IDLE = 0.9, 0.3
# The price of a GiB in cores, by cloud list prices.
CORES_A_GIB = 0.13


@dataclass(frozen=True, slots=True)
class TriedSetting:
    """A setting and its outcome.

    cpu, memory: cores and GiB of one pod, 0 when it requests none. used_cpu, used_memory: the mean
    over pods and samples, None when unknown.
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
        """The cost in cores, memory counted as its price in cores."""
        return self.replicas * (self.cpu + CORES_A_GIB * self.memory)

    @property
    def worth(self) -> float | None:
        """Requests a second for a core; None when either is unknown."""
        return self.per_s / self.cost if self.per_s is not None and self.cost > 0 else None

    @property
    def marks(self) -> list[str]:
        """Marks: pegged for 90 % or more of a requested resource, idle for under 30 %."""
        marks = []
        for name, used, asked in (
            ("CPU", self.used_cpu, self.cpu),
            ("memory", self.used_memory, self.memory),
        ):
            if used is not None and asked > 0:
                share = used / asked
                if share >= PEGGED:
                    marks.append(f"{name} pegged at {share:.0%}")
                elif share < IDLE:
                    marks.append(f"{name} idle at {share:.0%}")
        return marks

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
    """All combinations of NAME=V,V,...; InvalidValue for unknown or repeated names, or too many."""
    axes: dict[str, list[str]] = {}
    for text in texts:
        name, choices = _axis(text)
        if name in axes:
            raise InvalidValue(f"--tune names {name} twice", hint="give all its values at once")
        axes[name] = choices
    if not axes:
        return []
    products = itertools.product(*axes.values())
    combinations = [dict(zip(axes, combination, strict=True)) for combination in products]
    if len(combinations) > MOST_SETTINGS:
        raise InvalidValue(
            f"--tune makes {len(combinations)} settings", hint=f"give at most {MOST_SETTINGS}"
        )
    return combinations


def _axis(text: str) -> tuple[str, list[str]]:
    """The name and the choices of NAME=V,V,...; InvalidValue for what cannot be read."""
    name, equals, listed = text.partition("=")
    choices = list(dict.fromkeys(filter(None, map(str.strip, listed.split(",")))))
    if not equals or name not in NAMES or not choices:
        raise InvalidValue(
            f"--tune {text[:60]!r}", hint=f"write NAME=V,V,... with NAME of {', '.join(NAMES)}"
        )
    if name in ("concurrency", "replicas"):
        for choice in choices:
            if not (choice.isascii() and choice.isdigit() and 0 < int(choice) <= 10_000):
                raise InvalidValue(
                    f"{name} {choice[:40]!r} is not a number",
                    hint="give whole numbers from 1 to 10000",
                )
    return name, choices


def ranked(tried: Sequence[TriedSetting]) -> list[TriedSetting]:
    """Settings with the most throughput for their cost first; failed ones come last."""
    return sorted(
        tried,
        key=lambda setting: (
            setting.per_s is None,
            -(setting.worth or 0.0),
            -(setting.per_s or 0.0),
        ),
    )
