"""Generate the values of a field that a set varies.

Values are a list, or come from a generator: values, nodes, combinations, permutations or sample.
Generators nest: the source of one may be another. Nodes and the random generator are parameters.
"""

import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeGuard

from scaletest.model import checks, errors

MOST_VALUES = 100_000
MOST_LENGTH = 16  # of combinations and permutations


@dataclass(frozen=True, slots=True)
class Node:
    """A node that an executor can use, with its labels."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


Nodes = Callable[[], Sequence[Node]]


def generate(source: Any, field: str, nodes: Nodes, rng: random.Random) -> list[Any]:
    """Generate the values of a field.

    source: a list, or a map of one generator's name to its arguments. field: the field's name, for
    errors. Raises InvalidValue when there are too many values, or none: a sweep over no values
    would silently measure nothing.
    """
    values = list(itertools.islice(_generate_values(source, field, nodes, rng), MOST_VALUES + 1))
    checks.raise_first_mistake(
        (not values, f"{field} has no values", "give at least one, or leave it out"),
        (
            len(values) > MOST_VALUES,
            f"{field} has more than {MOST_VALUES} values",
            "take a sample",
        ),
    )
    return values


def _generate_values(source: Any, field: str, nodes: Nodes, rng: random.Random) -> Iterable[Any]:
    """Return a list as it is, or run the generator that the source names."""
    if isinstance(source, list | tuple):
        return source
    if not isinstance(source, Mapping) or len(source) != 1:
        raise errors.InvalidValue(
            f"{field} is neither a list nor one generator",
            hint=f"give a list, or one of: {', '.join(_GENERATORS)}",
        )
    ((name, arguments),) = source.items()
    checks.one_of(name, _GENERATORS, "generator")
    return _GENERATORS[name](arguments, f"{name} of {field}", nodes, rng)


def _node_names(arguments: Any, field: str, nodes: Nodes, rng: random.Random) -> Iterable[Any]:
    """List the names of the nodes that have the selector's labels, sorted."""
    selector = _check_arguments(arguments, field, {"selector"}).get("selector", {})
    checks.raise_first_mistake(
        (
            not isinstance(selector, Mapping),
            f"the selector of {field} is not a map of labels",
            "write e.g. {disktype: ssd}",
        )
    )
    labels = {label: str(text) for label, text in selector.items()}
    return sorted(node.name for node in nodes() if labels.items() <= node.labels.items())


def _choose_tuples(
    arguments: Any, field: str, nodes: Nodes, rng: random.Random, *, ordered: bool
) -> Iterable[Any]:
    """List permutations (ordered) or combinations of the source's values."""
    options = _check_arguments(arguments, field, {"length", "withReplacement", "source"})
    length, replacing = options.get("length", 2), options.get("withReplacement", False)
    checks.raise_first_mistake(
        (
            not _is_number(length, MOST_LENGTH),
            f"{field} has length {length!r}",
            f"give a length from 1 to {MOST_LENGTH}",
        ),
        (
            not isinstance(replacing, bool),
            f"{field} has withReplacement {replacing!r}",
            "give true or false",
        ),
    )
    values = generate(options.get("source"), f"the source of {field}", nodes, rng)
    if ordered and replacing:
        return map(list, itertools.product(values, repeat=length))
    choose = {
        (True, False): itertools.permutations,
        (False, True): itertools.combinations_with_replacement,
        (False, False): itertools.combinations,
    }[ordered, replacing]
    return map(list, choose(values, length))


def _draw_sample(arguments: Any, field: str, nodes: Nodes, rng: random.Random) -> Iterable[Any]:
    """Draw some of the source's values at random."""
    options = _check_arguments(arguments, field, {"size", "source"})
    values = generate(options.get("source"), f"the source of {field}", nodes, rng)
    size: Any = options.get("size")
    checks.raise_first_mistake(
        (
            not _is_number(size, len(values)),
            f"{field} has size {size!r}",
            f"give a size from 1 to {len(values)}",
        )
    )
    # in the order of the source, so that a sample of all values is the source itself
    return [values[index] for index in sorted(rng.sample(range(len(values)), size))]


def _is_number(number: Any, largest: int) -> TypeGuard[int]:
    """Check for an integer from 1 to `largest`; True and False are not numbers in YAML."""
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= largest


def _check_arguments(arguments: Any, field: str, known: set[str]) -> Mapping[str, Any]:
    """Return a generator's arguments. InvalidValue for any but the known ones."""
    options = {} if arguments is None else arguments
    checks.raise_first_mistake(
        (
            not isinstance(options, Mapping) or set(options) - known,
            f"{field} takes only {', '.join(sorted(known))}",
            "correct its arguments",
        )
    )
    return options


_GENERATORS: Mapping[str, Callable[[Any, str, Nodes, random.Random], Iterable[Any]]] = {
    "values": _generate_values,
    "nodes": _node_names,
    "combinations": partial(_choose_tuples, ordered=False),
    "permutations": partial(_choose_tuples, ordered=True),
    "sample": _draw_sample,
}
