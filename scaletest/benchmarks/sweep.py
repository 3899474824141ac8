"""Expands a set into its benchmarks: values, merge or templates, repetitions, order.

Pure: nodes and the random generator are parameters. Maps merge; lists and other values replace;
null unsets. (kube-perftest appended lists, so no element of one could be removed.)
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from scaletest.benchmarks.generators import Nodes, generate
from scaletest.documents.templates import fill
from scaletest.kinds import benchmark, fields
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.benchmark_set import DISJOINT, MOST, RANDOM, SetSpec, Values
from scaletest.kinds.crd import MOST_NAME
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.kinds.registry import API_VERSION
from scaletest.model.errors import InvalidValue


def plan_of(
    document: Any, nodes: Nodes, chance: random.Random | None = None
) -> tuple[BenchmarkPlan, list[str]]:
    """Build the plan of a set or of a single benchmark, and list warnings.

    chance: for tests; by default a generator from the set's seed. Raises InvalidValue, which names
    the permutation at fault.
    """
    if not benchmark.is_set(document):
        single = benchmark.read(document)
        plan = BenchmarkPlan(
            single.name, (single,), ({},), dict(document), paused=single.spec.paused
        )
        return plan, list(single.warnings)
    body, warnings = benchmark.envelope(document), list[str]()
    spec = fields.read(SetSpec, body.get("spec") or {}, "the spec of BenchmarkSet", warnings)
    name = benchmark.name_of(body, "benchmark-set")
    chance = chance or random.Random(spec.seed)
    permutations = _permutations(spec, nodes, chance)
    count = len(permutations) * spec.repetitions
    if count > MOST:
        raise InvalidValue(
            f"the set has {count} benchmarks, more than {MOST}",
            hint="measure less, or take a sample",
        )
    distinct = [
        _benchmark(spec, name, number, values) for number, values in enumerate(permutations)
    ]
    for member in distinct:
        warnings += [line for line in member.warnings if line not in warnings]
    warnings += _repeated_permutation(permutations)
    plan = BenchmarkPlan(
        name=name,
        benchmarks=tuple(_ordered(spec, name, distinct, chance)),
        permutations=tuple(permutations),
        document=dict(document),
        repetitions=spec.repetitions,
        stop_on_failure=spec.on_failure == "stop",
        disjoint=spec.parallelism == DISJOINT,
        paused=spec.paused or any(member.spec.paused for member in distinct),
        thresholds=spec.thresholds,
    )
    plan.check_thresholds()  # now, rather than after everything has been measured
    return plan, warnings


def merged(base: Any, change: Any) -> Any:
    """Merge a change into the base: maps merge, None unsets, anything else replaces."""
    if not (isinstance(base, Mapping) and isinstance(change, Mapping)):
        return change
    union = dict(base)
    for key, replacement in change.items():
        if replacement is None:
            union.pop(key, None)
        else:
            union[key] = merged(union.get(key), replacement)
    return union


def padded(number: int, count: int) -> str:
    """Write a number from 1 to `count`, padded with zeros to the width of `count`."""
    return str(number).zfill(len(str(count)))


def _permutations(spec: SetSpec, nodes: Nodes, chance: random.Random) -> list[Mapping[str, Any]]:
    values = spec.matrix if SetSpec.varied(spec.matrix) else spec.permutations
    lists = {
        key: generate(source, f"{key} of product", nodes, chance)
        for key, source in values.product.items()
    }
    if math.prod(map(len, lists.values())) > MOST:
        raise InvalidValue(
            f"the product has more than {MOST} permutations", hint="measure less, or take a sample"
        )
    permutations: list[Mapping[str, Any]] = []
    if lists:
        permutations += [
            dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())
        ]
    permutations += values.explicit
    return permutations or _template_alone(values)


def _repeated_permutation(permutations: list[Mapping[str, Any]]) -> list[str]:
    """Warn of the first permutation that equals an earlier one."""
    numbers: dict[str, int] = {}
    for number, values in enumerate(permutations):
        first = numbers.setdefault(repr(sorted(values.items())), number)
        if first != number:
            return [
                f"permutation {number + 1} is the same as permutation {first + 1}; "
                "set repetitions to measure a permutation several times"
            ]
    return []


def _template_alone(values: Values) -> list[Mapping[str, Any]]:
    """Return one permutation without values: the set's only benchmark is the template itself."""
    assert not values.product and not values.explicit
    return [{}]


def _benchmark(spec: SetSpec, name: str, number: int, values: Mapping[str, Any]) -> Benchmark:
    template = {"apiVersion": API_VERSION, **spec.template}
    body = template.get("spec") or {}
    try:
        by_template = SetSpec.varied(spec.matrix)
        filled = fill(body, {"p": dict(values)}) if by_template else merged(body, values)
        document = {
            "apiVersion": template["apiVersion"],
            "kind": template.get("kind"),
            "spec": filled,
        }
        return replace(benchmark.read({**document, "metadata": {"name": name}}), permutation=number)
    except InvalidValue as error:
        raise InvalidValue(
            f"permutation {number + 1} {fields.as_yaml(dict(values))}: {error.message}",
            hint=error.hint,
        ) from error


def stem(name: str, longest: str) -> str:
    """Shorten a set's name so that it can begin the names of its benchmarks.

    The longest suffix must fit. A checksum replaces the end that is cut off, so that two sets never
    produce the same names.
    """
    if len(name) + len(longest) <= MOST_NAME:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: MOST_NAME - len(longest) - len(mark) - 1].rstrip('-.')}-{mark}"


def _ordered(
    spec: SetSpec, name: str, distinct: list[Benchmark], chance: random.Random
) -> list[Benchmark]:
    """List warm-ups, then all repetitions of the benchmarks, in order and with their own names."""
    total = len(distinct) * spec.repetitions
    suffixes = [f"-{total}", f"-warm-up-{spec.warm_up}" if spec.warm_up else ""]
    name = stem(name, max(suffixes, key=len))
    ordered = [
        replace(distinct[0], name=f"{name}-warm-up-{index + 1}", repetition=-1)
        for index in range(spec.warm_up)
    ]
    for member, repetition in _order(spec, distinct, chance):
        number = member.permutation * spec.repetitions + repetition + 1
        ordered.append(
            replace(member, name=f"{name}-{padded(number, total)}", repetition=repetition)
        )
    return ordered


def _order(
    spec: SetSpec, distinct: list[Benchmark], chance: random.Random
) -> Iterator[tuple[Benchmark, int]]:
    """Yield each benchmark and its repetition from 0 on, in the order of measuring."""
    if spec.order != RANDOM:
        yield from itertools.product(distinct, range(spec.repetitions))
        return
    # shuffled in blocks of one repetition each, so that a drift affects all permutations alike
    for repetition in range(spec.repetitions):
        for member in chance.sample(distinct, len(distinct)):
            yield member, repetition
