"""Fields of a BenchmarkSet: one benchmark over many values. `benchmarks` expands it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.kinds.fields import spec_field
from scaletest.model.errors import InvalidValue

_OBJECTS = {"items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
MOST = 100_000
SERIAL, DISJOINT = "serial", "nodeDisjoint"
IN_SEQUENCE, RANDOM = "given", "random"


@dataclass(frozen=True, kw_only=True)
class Values:
    """Values of a set that vary."""

    product: Mapping[str, Any] = spec_field(
        {},
        "Fields, each with a list of values or a generator: values, nodes, combinations,"
        " permutations or sample.",
    )
    explicit: tuple[Mapping[str, Any], ...] = spec_field(
        (), "More maps of values, taken as they are.", schema=_OBJECTS
    )


@dataclass(frozen=True, kw_only=True)
class SetSpec:
    """Spec of a set.

    kube-perftest has template, repetitions and permutations; its successor has matrix.
    """

    template: Mapping[str, Any] = spec_field(
        {}, "apiVersion, kind and spec: the fixed part.", required=True
    )
    repetitions: int = spec_field(
        1, "How often each permutation is measured.", minimum=1, maximum=1000
    )
    permutations: Values = spec_field(
        Values(), "What is merged into the template's spec. Lists replace, null unsets."
    )
    matrix: Values = spec_field(
        Values(), "Values that strings of the template can use, as in '{{ p.streams }}'."
    )
    order: str = spec_field(
        IN_SEQUENCE,
        "given: repetitions of a permutation follow each other; random: blocks of all permutations,"
        " each shuffled.",
        choices=(IN_SEQUENCE, RANDOM),
    )
    seed: int = spec_field(0, "Seed of the random order and of samples.", minimum=0)
    warm_up: int = spec_field(
        0,
        "Benchmarks of the first permutation that run before and do not count.",
        minimum=0,
        maximum=1000,
    )
    on_failure: str = spec_field(
        "continue",
        "After a failed benchmark: continue with the others, or stop.",
        choices=("continue", "stop"),
    )
    parallelism: str = spec_field(
        SERIAL,
        "serial: one at a time; nodeDisjoint: benchmarks that share no node run at the same time.",
        choices=(SERIAL, DISJOINT),
    )
    thresholds: tuple[str, ...] = spec_field(
        (), "Conditions of a PASS, as in 'bandwidth>=5Gbit/s' or 'bandwidth(streams=8)>=9e9'."
    )
    paused: bool = spec_field(False, "Do not start any benchmark until this is false.")

    def __post_init__(self) -> None:
        if self.varied(self.permutations) and self.varied(self.matrix):
            raise InvalidValue(
                "permutations and matrix exclude each other", hint="leave one of them out"
            )

    @staticmethod
    def varied(values: Values) -> bool:
        """Whether anything varies."""
        return bool(values.product or values.explicit)
