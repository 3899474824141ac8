"""The one language of templates in documents: Jinja2, in an immutable sandbox without functions."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import yaml
from jinja2 import StrictUndefined, Template, TemplateError, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from scaletest.documents import reader
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, suggestion

MOST_CHARACTERS = 100_000
_WHOLE = re.compile(r"\s*\{\{((?!\{\{).)*\}\}\s*", re.DOTALL)
_MISTAKES = (
    *(TemplateError, TypeError, ValueError, LookupError, AttributeError),
    *(ArithmeticError, MemoryError, RecursionError),
)


class _Unknown(StrictUndefined):
    """A name that nothing fills: its error is the name alone."""

    @property
    def _undefined_message(self) -> str:
        return str(self._undefined_hint or self._undefined_name)


def to_yaml(value: object) -> str:
    """A value as YAML on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True)
    return text.removesuffix("...\n").strip()


_ENGINE = ImmutableSandboxedEnvironment(undefined=_Unknown, autoescape=False)
_ENGINE.filters["toyaml"] = to_yaml
_ENGINE.globals.clear()


@lru_cache(1000)
def _compiled(template: str) -> Template:
    return _ENGINE.from_string(template)


@lru_cache(1000)
def _value(text: str, name: str) -> Any:
    return reader.read(text, name)


def changed(document: Any, text: Callable[[str], Any], key: Callable[[str], Any]) -> Any:
    """A document with its texts and the keys of its tables changed by these functions."""
    if isinstance(document, Mapping):
        return {key(str(name)): changed(inner, text, key) for name, inner in document.items()}
    if isinstance(document, list | tuple):
        return [changed(inner, text, key) for inner in document]
    return text(document) if isinstance(document, str) else document


def fill(document: Any, values: Mapping[str, Any]) -> Any:
    """Fill in the {{ }} of all keys and texts of a document. Raises InvalidValue.

    A text that is one {{ }} and nothing else becomes the YAML value that its result stands for.
    """
    return changed(document, lambda text: _filled(text, values), lambda key: fill_text(key, values))


def _filled(template: str, values: Mapping[str, Any]) -> Any:
    text = fill_text(template, values)
    if _WHOLE.fullmatch(template):
        return copy.deepcopy(_value(text, f"what the template {checks.cut(template, 60)!r} makes"))
    return text


def fill_text(template: str, values: Mapping[str, Any]) -> str:
    """Fill in the {{ }} of a text. InvalidValue names the nearest for a name that is unknown."""
    if "{{" not in template:
        return template
    title = f"the template {checks.cut(template, 60)!r}"
    try:
        text = _compiled(template).render(values)
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
    checks.refuse(
        (
            len(text) > MOST_CHARACTERS,
            f"{title} makes more than {MOST_CHARACTERS} characters",
            "shorten it",
        )
    )
    return text
