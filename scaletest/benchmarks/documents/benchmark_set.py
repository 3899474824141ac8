"""Fields of a BenchmarkSet, which sweeps one benchmark over many values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from scaletest.benchmarks.kinds.spec import Spec
from scaletest.model import checks, declared

SERIAL, DISJOINT = "serial", "nodeDisjoint"
IN_SEQUENCE, RANDOM = "given", "random"


@dataclass(frozen=True, kw_only=True)
class Values(Spec):
    """Values of a set that vary."""

    product: Annotated[
        Mapping[str, Any],
        "Fields, each with a list of values or a generator: values, nodes, combinations,"
        " permutations or sample.",
    ] = field(default_factory=dict)
    explicit: Annotated[
        tuple[Mapping[str, Any], ...], "More maps of values, taken as they are."
    ] = ()


@dataclass(frozen=True, kw_only=True)
class SetSpec(Spec):
    """Spec of a set.

    kube-perftest has template, repetitions and permutations; its successor has matrix.
    """

    template: Annotated[Mapping[str, Any], "apiVersion, kind and spec: the fixed part."]
    repetitions: Annotated[int, Meta(ge=1, le=1000), "How often each permutation is measured."] = 1
    permutations: Annotated[
        Values, "What is merged into the template's spec. Lists replace, null unsets."
    ] = Values()
    matrix: Annotated[
        Values, "Values that strings of the template can use, e.g. '{{ p.streams }}'."
    ] = Values()
    order: Annotated[
        str,
        declared.choice((IN_SEQUENCE, RANDOM)),
        "given: repetitions of a permutation follow each other; random: blocks of all permutations,"
        " each shuffled.",
    ] = IN_SEQUENCE
    seed: Annotated[int, Meta(ge=0), "Seed of the random order and of samples."] = 0
    warm_up: Annotated[
        int,
        Meta(ge=0, le=1000),
        "Benchmarks of the first permutation that run before and do not count.",
    ] = 0
    on_failure: Annotated[
        str,
        declared.choice(("continue", "stop")),
        "After a failed benchmark: continue with the others, or stop.",
    ] = "continue"
    parallelism: Annotated[
        str,
        declared.choice((SERIAL, DISJOINT)),
        "serial: one at a time; nodeDisjoint: benchmarks that share no node run at the same time.",
    ] = SERIAL
    thresholds: Annotated[
        tuple[str, ...],
        "Conditions of a PASS, e.g. 'bandwidth>=5Gbit/s' or 'bandwidth(streams=8)>=9e9'.",
    ] = ()
    paused: Annotated[bool, "Do not start any benchmark until this is false."] = False

    def __post_init__(self) -> None:
        checks.raise_first_mistake(
            (
                self.has_matrix and (self.permutations.product or self.permutations.explicit),
                "permutations and matrix exclude each other",
                "leave one of them out",
            )
        )

    @property
    def has_matrix(self) -> bool:
        """Whether anything varies by the matrix."""
        return bool(self.matrix.product or self.matrix.explicit)
