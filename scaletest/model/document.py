"""Documents that are read and checked as their class declares."""

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Self, TypeVar

import msgspec

from scaletest.model import wire
from scaletest.model.conversion_errors import check_rules, explain_error
from scaletest.model.declared import Declared, declared
from scaletest.model.errors import InvalidValue
from scaletest.model.writing import Written, field_hints

T = TypeVar("T")


class Document(Written):
    """A class whose instances are also read, and checked when they are made."""

    __slots__ = ()
    # what it is in messages, as in "the plan"
    document_name: ClassVar[str] = "the document"

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what `to_dict` wrote; InvalidValue on anything else."""
        return read(cls, data, cls.document_name)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote; InvalidValue on anything else."""
        return cls.from_dict(wire.load(text, cls.document_name))


def read(kind: type[T], data: Any, label: str) -> T:
    """Return the instance that plain values stand for; InvalidValue names the field that is wrong.

    label: names the values in messages, as in "the plan".
    """
    if not isinstance(data, Mapping):
        raise InvalidValue(f"{label} is not a JSON object")
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise explain_error(error, kind, data, "", label) from error
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"{label} holds text that is not valid Unicode", hint="write it in UTF-8"
        ) from error
    except RecursionError as error:
        raise InvalidValue(f"{label} is nested too deeply") from error


def check(instance: Any) -> None:
    """Raise InvalidValue, unless all fields are as they are declared."""
    kind: Any = type(instance)
    twin, rules = _twin(kind)
    try:
        msgspec.convert(instance, twin, from_attributes=True)
    except msgspec.ValidationError as error:
        raise explain_error(error, kind, instance, "", "") from error
    for attribute, rule in rules:
        check_rules(rule, getattr(instance, attribute), rule.title or attribute)


@cache
def _twin(kind: type) -> tuple[type, list[tuple[str, Declared]]]:
    """Return a class with the same fields, into which msgspec converts instances to check them; and
    the rules that msgspec does not know.
    """
    hints = field_hints(kind)
    rules = [(name, declared(hint)) for name, hint in hints.items()]
    checked = [(name, rule) for name, rule in rules if {"choices", "check"} & rule.extra.keys()]
    return msgspec.defstruct(kind.__name__, list(hints.items())), checked
