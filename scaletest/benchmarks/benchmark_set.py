"""A set of benchmarks, one benchmark over many values: its fields, thresholds and plan.

`benchmarks` expands it. The plan has all benchmarks with their values, in the order of their start.

Thresholds are the conditions of a PASS: METRIC[(KEY=VALUE, ...)] OP VALUE[UNIT].

    bandwidth>=5Gbit/s    bandwidth(streams=8)>=9e9    minimumLatency<20us    lost<1%

METRIC is a headline of the kind. Without KEY=VALUE it is about every permutation, else about those
with these values. `analysis` decides whether it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from scaletest.benchmarks import benchmark
from scaletest.benchmarks.benchmark import Benchmark
from scaletest.benchmarks.kinds.kind import Headline, Spec
from scaletest.model import checks
from scaletest.model.declared import VERSIONED, choice
from scaletest.model.document import read
from scaletest.model.errors import InvalidValue
from scaletest.model.texts import as_yaml
from scaletest.model.threshold import ANY, Measurable, MeasureTable, Threshold, parse
from scaletest.model.writing import Written
from scaletest.render.numbers import plural

MOST = 100_000
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
        Values, "Values that strings of the template can use, as in '{{ p.streams }}'."
    ] = Values()
    order: Annotated[
        str,
        choice((IN_SEQUENCE, RANDOM)),
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
        choice(("continue", "stop")),
        "After a failed benchmark: continue with the others, or stop.",
    ] = "continue"
    parallelism: Annotated[
        str,
        choice((SERIAL, DISJOINT)),
        "serial: one at a time; nodeDisjoint: benchmarks that share no node run at the same time.",
    ] = SERIAL
    thresholds: Annotated[
        tuple[str, ...],
        "Conditions of a PASS, as in 'bandwidth>=5Gbit/s' or 'bandwidth(streams=8)>=9e9'.",
    ] = ()
    paused: Annotated[bool, "Do not start any benchmark until this is false."] = False

    def __post_init__(self) -> None:
        checks.refuse(
            (
                self.varied(self.permutations) and self.varied(self.matrix),
                "permutations and matrix exclude each other",
                "leave one of them out",
            )
        )

    @staticmethod
    def varied(values: Values) -> bool:
        """Whether anything varies."""
        return bool(values.product or values.explicit)


def table_of(headlines: Iterable[Headline]) -> MeasureTable:
    """What thresholds may be about: the numbers that are measured, at any permutation."""
    return {headline.name: Measurable(headline.unit, ANY) for headline in headlines}


def place_of(values: Mapping[str, Any]) -> dict[str, str]:
    """The values of a permutation as thresholds write them: as YAML does."""
    return {key: as_yaml(value) for key, value in values.items()}


def parse_all(
    texts: Sequence[str], table: MeasureTable, permutations: Iterable[Mapping[str, Any]]
) -> tuple[Threshold, ...]:
    """Parse all of them. InvalidValue also for one that is about no permutation."""
    thresholds, known = tuple(parse(text, table, EXAMPLE) for text in texts), list(permutations)
    for threshold in thresholds:
        if not any(map(threshold.about, map(place_of, known))):
            shown = ", ".join(f"{name}={text}" for name, text in threshold.where)
            hint = f"the first has {checks.cut(as_yaml(dict(known[0])), 80)}" if known else ""
            raise InvalidValue(
                f"threshold '{threshold}' is about {shown}, which no permutation has", hint=hint
            )
    return thresholds


KIND = "benchmark"
EXAMPLE = "'bandwidth(streams=8)>=5Gbit/s'"


@dataclass(frozen=True, slots=True)
class BenchmarkPlan(Written):
    """The plan of a set.

    name: of the set. permutations: values of each, also those that samples chose. document: as
    the user wrote it. stop_on_failure, disjoint, paused, thresholds: as in the set's spec.
    """

    name: str
    benchmarks: tuple[Benchmark, ...]
    permutations: tuple[Mapping[str, Any], ...]
    document: Mapping[str, Any]
    repetitions: int = 1
    stop_on_failure: bool = False
    disjoint: bool = False
    paused: bool = False
    thresholds: tuple[str, ...] = ()
    constants: ClassVar = {**VERSIONED, "kind": KIND}
    # a run of benchmarks has none
    steps: ClassVar[tuple[int, ...]] = ()

    @property
    def workload(self) -> str:
        """Short text of what is measured, for lists of runs."""
        return f"{', '.join(self.kinds)}: {len(self.permutations)} x {self.repetitions}"

    @property
    def kinds(self) -> list[str]:
        """Names of the kinds that are measured."""
        return sorted({benchmark.kind.name for benchmark in self.benchmarks})

    @property
    def described(self) -> str:
        """Kinds, and how often they are measured, in words."""
        parts = [", ".join(self.kinds)]
        if len(self.permutations) > 1:
            parts.append(plural(len(self.permutations), "permutation"))
        if self.repetitions > 1:
            parts.append(plural(self.repetitions, "repetition"))
        return " · ".join(parts)

    @property
    def judged(self) -> tuple[Threshold, ...]:
        """The parsed thresholds. InvalidValue for one that cannot be parsed."""
        kinds = {benchmark.kind.name: benchmark.kind for benchmark in self.benchmarks}
        headlines = chain.from_iterable(kind.headlines for kind in kinds.values())
        return parse_all(self.thresholds, table_of(headlines), self.permutations)

    def check_thresholds(self) -> None:
        """Raises InvalidValue for thresholds that cannot be parsed, or are not measured."""
        for threshold in self.judged:
            for planned in self.benchmarks:
                name = threshold.measure
                why = planned.kind.absent(planned.spec).get(name)
                checks.refuse(
                    (
                        why and threshold.about(place_of(self.permutations[planned.permutation])),
                        f"threshold '{threshold}' is about a number that cannot be measured: {why}",
                        "leave it out, or restrict it to permutations with the number:"
                        f" {name}(KEY=VALUE)",
                    )
                )

    @property
    def counted(self) -> int:
        """Number of benchmarks without warm-ups."""
        return sum(not benchmark.warm_up for benchmark in self.benchmarks)

    @classmethod
    def from_dict(cls, data: Any) -> BenchmarkPlan:
        """Read what `to_dict` wrote; InvalidValue for anything else."""
        if isinstance(data, Mapping) and isinstance(data.get("benchmarks"), list):
            data = {**data, "benchmarks": list(map(_benchmark, data["benchmarks"]))}
        return read(cls, data, "the plan")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a benchmark stands in its set."""

    permutation: int
    repetition: int


def _benchmark(stored: Any) -> Benchmark:
    place = read(_Place, stored, "a benchmark of the plan")
    document = {**stored}
    del document["permutation"], document["repetition"]
    read_again = benchmark.read(document)
    return replace(read_again, permutation=place.permutation, repetition=place.repetition)
