"""Times that pods report, and which setting of a pod is worth its cost.

Times stand beside those of the client: the difference is queues and networks. A setting is worth
its throughput for its resources, and their use.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from scaletest.model.attempt import Attempt
from scaletest.model.declared import called
from scaletest.model.errors import InvalidValue
from scaletest.model.writing import Written


@dataclass(frozen=True, slots=True)
class PodTimes(Written):
    """Times of one pod in s."""

    pod: str
    count: int
    mean_s: float
    fastest_s: float
    slowest_s: float
    queueing: Annotated[
        float | None,
        called("queueing_share"),
        "part of the client's mean latency that is not the pod's, None if unknown.",
    ]

    def __str__(self) -> str:
        share = f", queueing {self.queueing:.0%}" if self.queueing is not None else ""
        times = (
            f"mean {1e3 * self.mean_s:.4g} ms, {1e3 * self.fastest_s:.4g} to"
            f" {1e3 * self.slowest_s:.4g} ms"
        )
        return f"pod {self.pod or 'unknown'}: {self.count} requests, {times}{share}"


def times_of_pods(samples: Sequence[Attempt]) -> list[PodTimes]:
    """The times that the service measured, of each pod that is known; [] when it measured none."""
    own: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for attempt in samples:
        if attempt.ok and attempt.server_s is not None:
            own[attempt.pod].append((attempt.server_s, attempt.latency_s))
    rows_of_pods = []
    for pod, rows in sorted(own.items()):
        latency_s = sum(latency for _, latency in rows) / len(rows)
        values = [server for server, _ in rows]
        mean_s = sum(values) / len(values)
        queueing = max(0.0, 1.0 - mean_s / latency_s) if latency_s else None
        times = PodTimes(pod, len(values), mean_s, min(values), max(values), queueing)
        rows_of_pods.append(times)
    return rows_of_pods


# A name in capitals is a variable of the environment, and one that begins with -- an argument.
NAMES = ("cpu", "memory", "replicas")
_OF_PROGRAM = re.compile(r"[A-Z_][A-Z0-9_]*|--?[A-Za-z][A-Za-z0-9-]*")
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
            raise InvalidValue(f"<tune> names {name} twice", hint="give all its values at once")
        axes[name] = choices
    if not axes:
        return []
    products = itertools.product(*axes.values())
    combinations = [dict(zip(axes, combination, strict=True)) for combination in products]
    if len(combinations) > MOST_SETTINGS:
        raise InvalidValue(
            f"<tune> makes {len(combinations)} settings", hint=f"give at most {MOST_SETTINGS}"
        )
    return combinations


def _axis(text: str) -> tuple[str, list[str]]:
    """The name and the choices of NAME=V,V,...; InvalidValue for what cannot be read."""
    name, equals, listed = text.partition("=")
    choices = list(dict.fromkeys(filter(None, map(str.strip, listed.split(",")))))
    known = name in NAMES or _OF_PROGRAM.fullmatch(name)
    if not equals or not known or not choices:
        raise InvalidValue(
            f"<tune> {text[:60]!r}",
            hint=f"write NAME=V,V,... with NAME of {', '.join(NAMES)}, a VARIABLE, or an"
            " --argument of the program",
        )
    if name == "replicas":
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
