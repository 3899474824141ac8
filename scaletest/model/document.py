"""Documents that are read and checked as their class declares, with errors in words of ours."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Self, TypeVar, get_args, get_type_hints

import msgspec

from scaletest.model import checks, wire
from scaletest.model.declared import Declared, declaration_of
from scaletest.model.errors import InvalidValue, suggestion
from scaletest.model.writing import Written, field_hints

# The types that msgspec's errors name, in words, and how to write their values.
_EXPECTED = {
    "int": ("a whole number", "write e.g. 8"),
    "float": ("a number", "write e.g. 2.5"),
    "str": ("text", 'put it in quotes, e.g. "1"'),
    "bool": ("true or false", "write true or false"),
    "array": ("a list", "write e.g. [a, b]"),
    "object": ("a table of keys and values", "write e.g. {key: value}"),
}

T = TypeVar("T")


class Document(Written):
    """A class whose instances are also read, and checked when they are made."""

    __slots__ = ()
    # as messages call it, such as "the plan"
    document_name: ClassVar[str] = "the document"

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what `to_dict` wrote; InvalidValue on anything else."""
        return read_document(cls, data, cls.document_name)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote; InvalidValue on anything else."""
        return cls.from_dict(wire.load(text, cls.document_name))


def read_document(class_: type[T], data: Any, label: str) -> T:
    """Return the instance that plain values stand for; InvalidValue names the field that is wrong.

    label: names the values in messages, as in "the plan".
    """
    if not isinstance(data, Mapping):
        raise InvalidValue(f"{label} is not a JSON object")
    try:
        return msgspec.convert(data, class_)
    except msgspec.ValidationError as error:
        raise explain_error(error, class_, data, "", label) from error
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"{label} holds text that is not valid Unicode", hint="write it in UTF-8"
        ) from error
    except RecursionError as error:
        raise InvalidValue(f"{label} is nested too deeply") from error


def check_fields(instance: Any) -> None:
    """Raise InvalidValue, unless all fields are as they are declared."""
    class_: Any = type(instance)
    twin, rules = _checking_twin(class_)
    try:
        msgspec.convert(instance, twin, from_attributes=True)
    except msgspec.ValidationError as error:
        raise explain_error(error, class_, instance, "", "") from error
    for attribute, rule in rules:
        check_rules(rule, getattr(instance, attribute), rule.title or attribute)


@cache
def _checking_twin(class_: type) -> tuple[type, list[tuple[str, Declared]]]:
    """Return a class with the same fields, and the rules of fields that msgspec does not know.

    msgspec checks an instance by converting it into the twin: it does not check what it did not
    make.
    """
    hints = field_hints(class_)
    rules = [(name, declaration_of(hint)) for name, hint in hints.items()]
    further_rules = [row for row in rules if {"choices", "check"} & row[1].extra.keys()]
    return msgspec.defstruct(class_.__name__, list(hints.items())), further_rules


def explain_error(
    error: msgspec.ValidationError, hint: Any, value: Any, name: str, label: str
) -> InvalidValue:
    """Return the error of msgspec in words of ours.

    value: what was read as `hint`, the value of this name in `label`; either may be empty.
    """
    problem, _, place = str(error).partition(" - at ")
    # follow msgspec's path, as in $.steps[2].limit, to the value that is wrong
    for attribute, index in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", place):
        base = declaration_of(hint).base
        if attribute:
            hint = get_type_hints(base, include_extras=True)[attribute]
            if isinstance(value, Mapping):
                value = value.get(attribute)
            else:
                value = getattr(value, attribute)
                attribute = declaration_of(hint).title or attribute
            name = f"{name}.{attribute}" if name else attribute
        elif index == "...":
            # msgspec does not tell which value of a mapping: look for it
            hint = get_args(base)[1]
            key, value = next(row for row in value.items() if not _fits(row[1], hint))
            name = f"{name}[{checks.cut_text(str(key), 60)}]"
        else:
            hint, value = get_args(base)[0], value[int(index)]
            name = f"{name}[{index}]"
    # say what is wrong with it
    rule = declaration_of(hint)
    where = " in ".join(filter(None, (name, label)))
    if place.startswith("`key`"):
        return InvalidValue(f"{where} has a wrong key: {problem}", hint="correct it")
    if missing := re.fullmatch(r"Object missing required field `(.*)`", problem):
        return InvalidValue(f"{where} lacks {missing[1]}", hint="add it")
    message = f"{where} is {checks.show_value(value)}"
    if wrong_type := re.fullmatch(r"Expected `(.*)`, got `.*`", problem):
        expected = [_EXPECTED.get(name, (name, "")) for name in wrong_type[1].split(" | ")]
        words = " or ".join(words for words, _ in expected)
        return InvalidValue(f"{message}, not {words}", hint=expected[0][1])
    if "max_length" in rule.limits:
        return InvalidValue(
            f"{where} too long: {len(value)}, limit {rule.limits['max_length']}", hint="shorten it"
        )
    return InvalidValue(f"{message}{' s' * rule.is_duration}", hint=_hint_of(rule, value))


def _fits(value: Any, hint: Any) -> bool:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError:
        return False
    return True


def _hint_of(rule: Declared, value: Any) -> str:
    """Return a hint for a value that is of the right type, and still not allowed."""
    limits = rule.limits
    if "hint" in rule.extra:
        return str(rule.extra["hint"])
    if rule.choices:
        return suggestion(value, rule.choices)
    if "multiple_of" in limits and value % limits["multiple_of"]:
        return f"give a multiple of {limits['multiple_of']}"
    low, high = limits.get("gt", limits.get("ge", 0)), limits.get("lt", limits.get("le"))
    quantity = "seconds" if rule.is_duration else "a number"
    first = f"{'above' if 'gt' in limits else 'from'} {_limit_text(low)}"
    return f"give {quantity} {first}" + ("" if high is None else f" to {_limit_text(high)}")


def _limit_text(limit: float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


def check_rules(rule: Declared, value: Any, where: str) -> None:
    """Check the rules that msgspec does not know. where: names the value in messages."""
    if rule.choices and value not in rule.choices and value is not None:
        raise InvalidValue(
            f"{where} is {checks.show_value(value)}",
            hint=suggestion(value, filter(None, rule.choices)),
        )
    if "check" in rule.extra:
        rule.extra["check"](value)
