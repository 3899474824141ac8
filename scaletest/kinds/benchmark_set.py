"""BenchmarkSet: one benchmark over many values. Its fields; how it is expanded is the benchmarks room's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.kinds.fields import spec_field
from scaletest.model.errors import InvalidValue

_OBJECTS = {"items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
MOST = 100_000
SERIAL, DISJOINT = "serial", "nodeDisjoint"
GIVEN, RANDOM = "given", "random"


@dataclass(frozen=True, kw_only=True)
class Values:
    """What varies."""

    product: Mapping[str, Any] = spec_field(
        {}, "Field to list of values, or to a generator: values, nodes, combinations, permutations or sample."
    )
    explicit: tuple[Mapping[str, Any], ...] = spec_field((), "More maps of values, as they are.", schema=_OBJECTS)


@dataclass(frozen=True, kw_only=True)
class SetSpec:
    """template, repetitions, permutations are the original's, matrix its author's second attempt; the rest is ours."""

    template: Mapping[str, Any] = spec_field({}, "apiVersion, kind and spec: the fixed part.", required=True)
    repetitions: int = spec_field(1, "How often each permutation is measured.", minimum=1, maximum=1000)
    permutations: Values = spec_field(Values(), "What is merged into the template's spec. Lists replace, null unsets.")
    matrix: Values = spec_field(Values(), "What the template's strings can use, as in '{{ p.streams }}'.")
    order: str = spec_field(
        GIVEN,
        "given: repetitions of a permutation follow each other; random: blocks of all permutations, each shuffled.",
        choices=(GIVEN, RANDOM),
    )
    seed: int = spec_field(0, "Of the random order and of samples.", minimum=0)
    warm_up: int = spec_field(
        0, "Benchmarks of the first permutation that run before and do not count.", minimum=0, maximum=1000
    )
    on_failure: str = spec_field(
        "continue", "What a failed benchmark does to the others.", choices=("continue", "stop")
    )
    parallelism: str = spec_field(
        SERIAL, "serial: one at a time; nodeDisjoint: those that share no node at once.", choices=(SERIAL, DISJOINT)
    )
    thresholds: tuple[str, ...] = spec_field(
        (), "What must hold for a PASS, as in 'bandwidth>=5Gbit/s' or 'bandwidth(streams=8)>=9e9'."
    )
    paused: bool = spec_field(False, "Make everything ready, and start nothing until this is false.")

    def __post_init__(self) -> None:
        if self.varied(self.permutations) and self.varied(self.matrix):
            raise InvalidValue("permutations and matrix exclude each other", hint="leave one of them out")

    @staticmethod
    def varied(values: Values) -> bool:
        """Whether there is something in it."""
        return bool(values.product or values.explicit)
