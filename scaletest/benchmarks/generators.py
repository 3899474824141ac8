"""Generates the values of a sweep: lists, nodes, combinations, permutations and samples.

Generators nest: the source of one may be another. An empty list is an error that names the list,
since a sweep over no values would silently measure nothing.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from scaletest.benchmarks.executor import Node
from scaletest.kinds.benchmark_set import MOST
from scaletest.model import checks
from scaletest.model.errors import InvalidValue

Nodes = Callable[[], Sequence[Node]]


def generate(source: Any, field: str, nodes: Nodes, chance: random.Random) -> list[Any]:
    """Generate the values. Raises InvalidValue when there are none, or too many.

    source: a list, or a map of one generator's name to its arguments. field: the field's name, for
    errors.
    """
    values = list(itertools.islice(_any(source, field, nodes, chance), MOST + 1))
    if not values:
        raise InvalidValue(f"{field} has no values", hint="give at least one, or leave it out")
    if len(values) > MOST:
        raise InvalidValue(f"{field} has more than {MOST} values", hint="take a sample")
    return values


def _any(source: Any, field: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    if isinstance(source, list | tuple):
        return source
    names = ", ".join(_GENERATORS)
    if not isinstance(source, Mapping) or len(source) != 1:
        raise InvalidValue(
            f"{field} is neither a list nor one generator", hint=f"give a list, or one of: {names}"
        )
    ((name, arguments),) = source.items()
    checks.one_of(name, _GENERATORS, "generator")
    return _GENERATORS[name](arguments, f"{name} of {field}", nodes, chance)


def _values(arguments: Any, field: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    return _any(arguments, field, nodes, chance)


def _nodes(arguments: Any, field: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    """List the names of the nodes that have the selector's labels, sorted."""
    selector = _take(arguments, field, {"selector"}).get("selector", {})
    if not isinstance(selector, Mapping):
        raise InvalidValue(
            f"the selector of {field} is not a map of labels", hint="write it as in {disktype: ssd}"
        )
    fitting = [node.name for node in nodes() if _matches(node, selector)]
    if not fitting:
        raise InvalidValue(
            f"{field}: no node has the labels {dict(selector)}",
            hint="look at the labels of the nodes",
        )
    return sorted(fitting)


def _matches(node: Node, selector: Mapping[str, Any]) -> bool:
    return all(node.labels.get(label) == str(text) for label, text in selector.items())


def _combinations(arguments: Any, field: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    return _tuples(arguments, field, nodes, chance, ordered=False)


def _permutations(arguments: Any, field: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    return _tuples(arguments, field, nodes, chance, ordered=True)


def _tuples(
    arguments: Any, field: str, nodes: Nodes, chance: random.Random, *, ordered: bool
) -> Iterable[Any]:
    options = _take(arguments, field, {"length", "withReplacement", "source"})
    length, replacing = options.get("length", 2), options.get("withReplacement", False)
    if not _is_number(length, 16):
        raise InvalidValue(f"{field} has length {length!r}", hint="give a length from 1 to 16")
    if not isinstance(replacing, bool):
        raise InvalidValue(f"{field} has withReplacement {replacing!r}", hint="give true or false")
    values = generate(options.get("source"), f"the source of {field}", nodes, chance)
    return map(list, _choose(values, length, ordered, replacing))


def _choose(
    values: list[Any], length: int, ordered: bool, replacing: bool
) -> Iterable[tuple[Any, ...]]:
    if ordered and replacing:
        return itertools.product(values, repeat=length)
    if ordered:
        return itertools.permutations(values, length)
    if replacing:
        return itertools.combinations_with_replacement(values, length)
    return itertools.combinations(values, length)


def _sample(arguments: Any, field: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    options = _take(arguments, field, {"size", "source"})
    values = generate(options.get("source"), f"the source of {field}", nodes, chance)
    size = options.get("size")
    if not _is_number(size, len(values)):
        raise InvalidValue(
            f"{field} has size {size!r}", hint=f"give a size from 1 to {len(values)}"
        )
    # in the order of the source, so that a sample of all values is the source itself
    return [values[index] for index in sorted(chance.sample(range(len(values)), size))]


def _is_number(number: Any, largest: int) -> TypeGuard[int]:
    """Check for an integer from 1 to `largest`; True and False are not numbers in YAML."""
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= largest


def _take(arguments: Any, field: str, known: set[str]) -> Mapping[str, Any]:
    options = {} if arguments is None else arguments
    if not isinstance(options, Mapping) or set(options) - known:
        raise InvalidValue(
            f"{field} takes {', '.join(sorted(known))} and nothing else",
            hint="correct its arguments",
        )
    return options


_Generator = Callable[[Any, str, Nodes, random.Random], Iterable[Any]]
_GENERATORS: Mapping[str, _Generator] = {
    "values": _values,
    "nodes": _nodes,
    "combinations": _combinations,
    "permutations": _permutations,
    "sample": _sample,
}
