"""Settings of a Deployment that are tried, and which of them is worth its cost.

A setting is worth its throughput for its resources, and their use.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import named_in_documents
from scaletest.model.errors import InvalidValue
from scaletest.model.writing import Written

NAMES = ("cpu", "memory", "replicas")
# A name in capitals is a variable of the environment, and one that begins with -- an argument.
_OF_PROGRAM = re.compile(r"[A-Z_][A-Z0-9_]*|--?[A-Za-z][A-Za-z0-9-]*")
MOST_SETTINGS = 200
# Parts of a requested resource whose use is worth a mark.
PEGGED, IDLE = 0.9, 0.3
# The price of a GiB in cores, by cloud list prices.
CORES_A_GIB = 0.13


@dataclass(frozen=True, slots=True)
class TriedSetting(Written):
    """A setting and its outcome."""

    setting: Mapping[str, str]
    per_s: Annotated[
        float | None, named_in_documents("saturation_per_s"), "at the saturation point"
    ]
    latency_s: Annotated[float | None, "mean at the operating point"]
    replicas: int
    cpu: Annotated[float, "cores of one pod, 0 when it requests none"]
    memory_gib: Annotated[float, "of one pod, 0 when it requests none"]
    used_cpu: Annotated[float | None, "mean over pods and samples, null when unknown"] = None
    used_memory_gib: Annotated[float | None, "the same"] = None
    trouble: Annotated[str, "why there are no figures"] = ""

    @property
    def cost_cores(self) -> Annotated[float, "the cost, memory counted as its price in cores"]:
        """The cost in cores, memory counted as its price in cores."""
        return self.replicas * (self.cpu + CORES_A_GIB * self.memory_gib)

    @property
    def per_s_per_core(self) -> Annotated[float | None, "null when either is unknown"]:
        """Requests a second for a core; None when either is unknown."""
        if self.per_s is None or self.cost_cores <= 0:
            return None
        return self.per_s / self.cost_cores

    @property
    def marks(self) -> Annotated[list[str], "what is pegged, and what idle"]:
        """Marks: pegged for 90 % or more of a requested resource, idle for under 30 %."""
        marks = []
        uses = {"CPU": (self.used_cpu, self.cpu), "memory": (self.used_memory_gib, self.memory_gib)}
        for name, (used, requested) in uses.items():
            share = used / requested if used is not None and requested > 0 else None
            if share is not None and share >= PEGGED:
                marks.append(f"{name} pegged at {share:.0%}")
            elif share is not None and share < IDLE:
                marks.append(f"{name} idle at {share:.0%}")
        return marks


def parse_settings(texts: Sequence[str]) -> list[dict[str, str]]:
    """Return all combinations of texts such as NAME=V,V,...

    InvalidValue for what cannot be read, for unknown or repeated names, or too many.
    """
    choices_by_name: dict[str, list[str]] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        choices = list(dict.fromkeys(filter(None, map(str.strip, listed.split(",")))))
        is_known = name in NAMES or _OF_PROGRAM.fullmatch(name)
        if not equals or not is_known or not choices:
            raise InvalidValue(
                f"<tune> {text[:60]!r}",
                hint=f"write NAME=V,V,... with NAME of {', '.join(NAMES)}, a VARIABLE, or an"
                " --argument of the program",
            )
        for choice in choices:
            if name == "replicas" and not (
                choice.isascii() and choice.isdigit() and 0 < int(choice) <= 10_000
            ):
                raise InvalidValue(
                    f"{name} {choice[:40]!r} is not a number",
                    hint="give whole numbers from 1 to 10000",
                )
        if name in choices_by_name:
            raise InvalidValue(f"<tune> names {name} twice", hint="give all its values at once")
        choices_by_name[name] = choices
    if not choices_by_name:
        return []
    products = itertools.product(*choices_by_name.values())
    combinations = [dict(zip(choices_by_name, product, strict=True)) for product in products]
    if len(combinations) > MOST_SETTINGS:
        raise InvalidValue(
            f"<tune> makes {len(combinations)} settings", hint=f"give at most {MOST_SETTINGS}"
        )
    return combinations


def rank_settings(tried: Sequence[TriedSetting]) -> list[TriedSetting]:
    """Return settings, most throughput for their cost first; failed ones come last."""

    def rank(setting: TriedSetting) -> tuple[bool, float, float]:
        return setting.per_s is None, -(setting.per_s_per_core or 0.0), -(setting.per_s or 0.0)

    return sorted(tried, key=rank)
