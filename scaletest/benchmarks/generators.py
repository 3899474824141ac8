"""Lists of values for a sweep, from a description: values, nodes by selector, combinations, permutations, samples.

Generators nest: the source of one may be another. A list that is empty is an error that says which, since a sweep over
nothing would measure nothing and never say so.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from scaletest.benchmarks.executor import Node
from scaletest.kinds.benchmark_set import MOST
from scaletest.model.errors import InvalidValue

Nodes = Callable[[], Sequence[Node]]


def generate(source: Any, what: str, nodes: Nodes, chance: random.Random) -> list[Any]:
    """The values. source: a list, or one generator's name with its arguments. InvalidValue when there are none."""
    found = list(itertools.islice(_any(source, what, nodes, chance), MOST + 1))
    if not found:
        raise InvalidValue(f"{what} has no values", hint="give one at least, or leave it out")
    if len(found) > MOST:
        raise InvalidValue(f"{what} has more than {MOST} values", hint="take a sample")
    return found


def _any(source: Any, what: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    if isinstance(source, list | tuple):
        return source
    names = ", ".join(_GENERATORS)
    if not isinstance(source, Mapping) or len(source) != 1:
        raise InvalidValue(f"{what} is neither a list nor one generator", hint=f"give a list, or one of: {names}")
    ((name, arguments),) = source.items()
    if name not in _GENERATORS:
        raise InvalidValue(f"{what} does not know the generator {str(name)[:60]!r}", hint=f"there are {names}")
    return _GENERATORS[name](arguments, f"{name} of {what}", nodes, chance)


def _values(arguments: Any, what: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    return _any(arguments, what, nodes, chance)


def _nodes(arguments: Any, what: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    """Names of nodes whose labels are those of the selector, in order."""
    selector = _take(arguments, what, {"selector"}).get("selector", {})
    if not isinstance(selector, Mapping):
        raise InvalidValue(f"the selector of {what} is no map of labels", hint="write it as in {disktype: ssd}")
    fitting = [
        node.name for node in nodes() if all(node.labels.get(key) == str(value) for key, value in selector.items())
    ]
    if not fitting:
        raise InvalidValue(f"{what}: no node has the labels {dict(selector)}", hint="look at the labels of the nodes")
    return sorted(fitting)


def _combinations(arguments: Any, what: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    return _tuples(arguments, what, nodes, chance, ordered=False)


def _permutations(arguments: Any, what: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    return _tuples(arguments, what, nodes, chance, ordered=True)


def _tuples(arguments: Any, what: str, nodes: Nodes, chance: random.Random, *, ordered: bool) -> Iterable[Any]:
    given = _take(arguments, what, {"length", "withReplacement", "source"})
    length, again = given.get("length", 2), given.get("withReplacement", False)
    if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= 16 or not isinstance(again, bool):
        raise InvalidValue(f"{what} has length {length!r}", hint="give a length from 1 to 16")
    values = generate(given.get("source"), f"the source of {what}", nodes, chance)
    made: Iterable[tuple[Any, ...]]
    if ordered:
        made = itertools.product(values, repeat=length) if again else itertools.permutations(values, length)
    else:
        made = (itertools.combinations_with_replacement if again else itertools.combinations)(values, length)
    return map(list, made)


def _sample(arguments: Any, what: str, nodes: Nodes, chance: random.Random) -> Iterable[Any]:
    given = _take(arguments, what, {"size", "source"})
    values, size = generate(given.get("source"), f"the source of {what}", nodes, chance), given.get("size")
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= len(values):
        raise InvalidValue(f"{what} has size {size!r}", hint=f"give a size from 1 to {len(values)}")
    # in the order of the source, so that a sample of everything changes nothing
    return [values[index] for index in sorted(chance.sample(range(len(values)), size))]


def _take(arguments: Any, what: str, known: set[str]) -> Mapping[str, Any]:
    found = {} if arguments is None else arguments
    if not isinstance(found, Mapping) or set(found) - known:
        raise InvalidValue(f"{what} takes {', '.join(sorted(known))} and nothing else", hint="correct its arguments")
    return found


_Generator = Callable[[Any, str, Nodes, random.Random], Iterable[Any]]
_GENERATORS: Mapping[str, _Generator] = {
    "values": _values,
    "nodes": _nodes,
    "combinations": _combinations,
    "permutations": _permutations,
    "sample": _sample,
}
