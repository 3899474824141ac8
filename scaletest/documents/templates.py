"""The one language of templates in documents: names, attributes, a few filters, arithmetic.

It is written as Jinja2 and rendered by it. The operator renders templates of anybody who may make a
BenchmarkSet, so nothing here may take long or grow: what is not listed is refused before anything
is rendered, numbers stay small, and texts are put together piece by piece up to a bound.
"""

import copy
import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import yaml
from jinja2 import StrictUndefined, Template, TemplateError, UndefinedError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from scaletest.documents import reader
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, suggestion

# Of a template, and of the text that it makes.
MOST_CHARACTERS = 100_000
# No number that is computed lies beyond this, so that each step of arithmetic is one of 64 bits.
MOST_NUMBER = 2**63
# Levels of a template. Jinja2 writes them as parentheses, and Python's parser takes exponential
# time for deeply nested ones.
MOST_DEPTH = 20
# Calls, loops, powers, `~` and everything else that may grow are not among them.
ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.If),
    *(nodes.Getattr, nodes.Getitem, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair),
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos),
    *(nodes.And, nodes.Or, nodes.Not, nodes.Compare, nodes.Operand, nodes.CondExpr),
    *(nodes.Filter, nodes.Test),
)
FILTERS = (
    *("toyaml", "default", "d", "string", "int", "float", "round", "abs"),
    *("length", "first", "last", "lower", "upper", "trim"),
)
# With arguments `round` computes a power.
WITH_ARGUMENTS = ("default", "d")
TESTS = ("defined", "undefined", "none")
_WHOLE = re.compile(r"\s*\{\{((?!\{\{).)*\}\}\s*", re.DOTALL)
_MISTAKES = (
    *(TemplateError, TypeError, ValueError, LookupError, AttributeError),
    # Python's own of a number that only looks like one, and YAML's of what it cannot write
    *(ArithmeticError, MemoryError, RecursionError, SyntaxError, yaml.YAMLError),
)


class _Unknown(StrictUndefined):
    """A name that nothing fills: its error is the name alone."""

    @property
    def _undefined_message(self) -> str:
        return str(self._undefined_hint or self._undefined_name)


def to_yaml(value: object) -> str:
    """Return a value as YAML on one line."""
    return str(yaml.safe_dump(value, default_flow_style=True)).removesuffix("...\n").strip()


class _Engine(ImmutableSandboxedEnvironment):
    """Jinja2 without functions, and with arithmetic of small numbers alone."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%"))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute with two numbers. TypeError for anything else, such as a text times a number."""
        for value in (left, right):
            if not isinstance(value, int | float) or abs(value) > MOST_NUMBER:
                raise TypeError(f"{checks.cut_text(repr(value), 40)} is not a number")
        result = super().call_binop(context, operator, left, right)
        if not math.isfinite(result) or abs(result) > MOST_NUMBER:
            raise OverflowError("the result is too large")
        return result


_ENGINE = _Engine(undefined=_Unknown, autoescape=False)
_ENGINE.filters["toyaml"] = to_yaml
_ENGINE.globals.clear()


@lru_cache(1000)
def _compile(template: str) -> Template:
    """Compile a template in which nothing is refused. Raises TemplateError."""
    tree = _ENGINE.parse(template)
    level: list[nodes.Node] = [tree]
    for _ in range(MOST_DEPTH):
        level = [child for node in level for child in node.iter_child_nodes()]
    if level:
        raise TemplateError(f"more than {MOST_DEPTH} levels are nested")
    for node in tree.find_all(nodes.Node):
        title = type(node).__name__.lower()
        is_allowed = isinstance(node, ALLOWED)
        if isinstance(node, nodes.Filter):
            has_arguments = node.args or node.kwargs
            allowed = WITH_ARGUMENTS if has_arguments else FILTERS
            title = f"the filter {node.name}" + (" with arguments" if has_arguments else "")
            # one that does not exist has an error of its own
            is_allowed = node.name in allowed or node.name not in _ENGINE.filters
        elif isinstance(node, nodes.Test):
            title = f"the test {node.name}"
            is_allowed = node.name in TESTS
        elif isinstance(node, nodes.Const) and isinstance(node.value, float):
            title = "a number without end"
            is_allowed = math.isfinite(node.value)
        if not is_allowed:
            raise TemplateError(f"{title} is not allowed")
    return _ENGINE.from_string(tree)


_read_cached = lru_cache(1000)(reader.read)


def change_texts(
    document: Any, change_text: Callable[[str], Any], change_key: Callable[[str], Any]
) -> Any:
    """Return a document with its texts and the keys of its tables changed by these functions."""
    if isinstance(document, Mapping):
        return {
            change_key(str(key)): change_texts(value, change_text, change_key)
            for key, value in document.items()
        }
    if isinstance(document, list | tuple):
        return [change_texts(item, change_text, change_key) for item in document]
    return change_text(document) if isinstance(document, str) else document


def fill_templates(document: Any, values: Mapping[str, Any]) -> Any:
    """Fill in the {{ }} of all keys and texts of a document. Raises InvalidValue.

    A text that is one {{ }} and nothing else becomes the YAML value that its result stands for.
    """

    def fill_value(template: str) -> Any:
        text = fill_text(template, values)
        if not _WHOLE.fullmatch(template):
            return text
        return copy.deepcopy(
            _read_cached(text, f"what the template {checks.cut_text(template, 60)!r} makes")
        )

    return change_texts(document, fill_value, lambda key: fill_text(key, values))


def fill_text(template: str, values: Mapping[str, Any]) -> str:
    """Fill in the {{ }} of a text. InvalidValue names the nearest for a name that is unknown."""
    if "{{" not in template:
        return template
    title = f"the template {checks.cut_text(template, 60)!r}"
    too_long = InvalidValue(
        f"{title} makes more than {MOST_CHARACTERS} characters", hint="shorten it"
    )
    if len(template) > MOST_CHARACTERS:
        raise too_long
    # piece by piece, so that a text beyond the bound is never put together
    text = ""
    try:
        for piece in _compile(template).generate(values):
            text += piece
            if len(text) > MOST_CHARACTERS:
                raise too_long
    except UndefinedError as error:
        raise InvalidValue(
            f"{title} asks for {str(error)!r}, which nothing fills",
            hint=suggestion(error, [*values, *values.get("p", ())]),
        ) from error
    except _MISTAKES as error:
        raise InvalidValue(
            f"{title} cannot be filled in: {error}",
            hint="write {{ NAME }}, and {% raw %} around braces of your own",
        ) from error
    return text
