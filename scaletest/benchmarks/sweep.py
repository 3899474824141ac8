"""Expands a set into its benchmarks: generated values, merge or templates, repetitions, order.

Pure: nodes and the random generator are parameters. Maps merge; lists and other values replace;
null unsets. kube-perftest appends lists, so those of its documents are joined before.

Values are lists, nodes, combinations, permutations and samples. Generators nest: the source of one
may be another. An empty list is an error that names the list, since a sweep over no values would
silently measure nothing.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeGuard

from scaletest.benchmarks import benchmark
from scaletest.benchmarks.benchmark import Benchmark
from scaletest.benchmarks.benchmark_set import DISJOINT, MOST, RANDOM, BenchmarkPlan, SetSpec
from scaletest.benchmarks.document_schemas import MOST_NAME
from scaletest.benchmarks.kinds.registry import API_VERSION
from scaletest.benchmarks.measure.runner import Node
from scaletest.documents.templates import fill
from scaletest.model import checks
from scaletest.model.errors import InvalidValue
from scaletest.model.file_documents import read_written
from scaletest.model.texts import as_yaml

Nodes = Callable[[], Sequence[Node]]


def generate(source: Any, field: str, nodes: Nodes, chance: random.Random) -> list[Any]:
    """Generate the values. Raises InvalidValue when there are none, or too many.

    source: a list, or a map of one generator's name to its arguments. field: the field's name, for
    errors.
    """
    values = list(itertools.islice(_any(source, field, nodes, chance), MOST + 1))
    checks.refuse(
        (not values, f"{field} has no values", "give at least one, or leave it out"),
        (len(values) > MOST, f"{field} has more than {MOST} values", "take a sample"),
    )
    return values


def _any(source: Any, field: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    if isinstance(source, list | tuple):
        return source
    if not isinstance(source, Mapping) or len(source) != 1:
        raise InvalidValue(
            f"{field} is neither a list nor one generator",
            hint=f"give a list, or one of: {', '.join(_GENERATORS)}",
        )
    ((name, arguments),) = source.items()
    checks.one_of(name, _GENERATORS, "generator")
    return _GENERATORS[name](arguments, f"{name} of {field}", nodes, chance)


def _nodes(arguments: Any, field: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    """List the names of the nodes that have the selector's labels, sorted."""
    selector = _take(arguments, field, {"selector"}).get("selector", {})
    checks.refuse(
        (
            not isinstance(selector, Mapping),
            f"the selector of {field} is not a map of labels",
            "write it as in {disktype: ssd}",
        )
    )
    wanted = {label: str(text) for label, text in selector.items()}
    fitting = [node.name for node in nodes() if wanted.items() <= node.labels.items()]
    checks.refuse(
        (
            not fitting,
            f"{field}: no node has the labels {dict(selector)}",
            "look at the labels of the nodes",
        )
    )
    return sorted(fitting)


def _tuples(
    arguments: Any, field: str, nodes: Nodes, chance: random.Random, *, ordered: bool
) -> Iterable[Any]:
    options = _take(arguments, field, {"length", "withReplacement", "source"})
    length, replacing = options.get("length", 2), options.get("withReplacement", False)
    checks.refuse(
        (
            not _is_number(length, 16),
            f"{field} has length {length!r}",
            "give a length from 1 to 16",
        ),
        (
            not isinstance(replacing, bool),
            f"{field} has withReplacement {replacing!r}",
            "give true or false",
        ),
    )
    values = generate(options.get("source"), f"the source of {field}", nodes, chance)
    if ordered and replacing:
        return map(list, itertools.product(values, repeat=length))
    choose = {
        (True, False): itertools.permutations,
        (False, True): itertools.combinations_with_replacement,
        (False, False): itertools.combinations,
    }[ordered, replacing]
    return map(list, choose(values, length))


def _sample(arguments: Any, field: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    options = _take(arguments, field, {"size", "source"})
    values = generate(options.get("source"), f"the source of {field}", nodes, chance)
    size: Any = options.get("size")
    checks.refuse(
        (
            not _is_number(size, len(values)),
            f"{field} has size {size!r}",
            f"give a size from 1 to {len(values)}",
        )
    )
    # in the order of the source, so that a sample of all values is the source itself
    return [values[index] for index in sorted(chance.sample(range(len(values)), size))]


def _is_number(number: Any, largest: int) -> TypeGuard[int]:
    """Check for an integer from 1 to `largest`; True and False are not numbers in YAML."""
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= largest


def _take(arguments: Any, field: str, known: set[str]) -> Mapping[str, Any]:
    options = {} if arguments is None else arguments
    checks.refuse(
        (
            not isinstance(options, Mapping) or set(options) - known,
            f"{field} takes {', '.join(sorted(known))} and nothing else",
            "correct its arguments",
        )
    )
    return options


_GENERATORS: Mapping[str, Callable[[Any, str, Nodes, random.Random], Iterable[Any]]] = {
    "values": _any,
    "nodes": _nodes,
    "combinations": partial(_tuples, ordered=False),
    "permutations": partial(_tuples, ordered=True),
    "sample": _sample,
}


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
    warnings = list[str]()
    body = benchmark.envelope(document, warnings)
    spec = read_written(SetSpec, body["spec"], "the spec of BenchmarkSet", warnings)
    name = benchmark.name_of(body, "benchmark-set")
    chance = chance or random.Random(spec.seed)
    permutations = _permutations(spec, nodes, chance)
    count = len(permutations) * spec.repetitions
    checks.refuse(
        (
            count > MOST,
            f"the set has {count} benchmarks, more than {MOST}",
            "measure less, or take a sample",
        )
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
    checks.refuse(
        (
            math.prod(map(len, lists.values())) > MOST,
            f"the product has more than {MOST} permutations",
            "measure less, or take a sample",
        )
    )
    permutations = [
        dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())
    ]
    # without a product only what is explicit; without both the template alone is measured
    if values.explicit and not lists:
        permutations = []
    return [*permutations, *values.explicit]


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


def _benchmark(spec: SetSpec, name: str, number: int, values: Mapping[str, Any]) -> Benchmark:
    template = {"apiVersion": API_VERSION, **spec.template}
    body = template.get("spec") or {}
    try:
        filled = (
            fill(body, {"p": dict(values)}) if SetSpec.varied(spec.matrix) else merged(body, values)
        )
        document = {
            "apiVersion": template["apiVersion"],
            "kind": template.get("kind"),
            "spec": filled,
        }
        return replace(benchmark.read({**document, "metadata": {"name": name}}), permutation=number)
    except InvalidValue as error:
        raise InvalidValue(
            f"permutation {number + 1} {as_yaml(dict(values))}: {error.message}",
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
        number = padded(member.permutation * spec.repetitions + repetition + 1, total)
        ordered.append(replace(member, name=f"{name}-{number}", repetition=repetition))
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
