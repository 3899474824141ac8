"""Documents in files that people write, with keys, units of time, aliases, and hints."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import msgspec

from scaletest.model import checks
from scaletest.model.declared import Declared, declaration_of
from scaletest.model.document import check_rules, explain_error
from scaletest.model.errors import InvalidValue, suggestion
from scaletest.model.quantities import SECONDS, in_base_units
from scaletest.model.writing import document_members, to_plain

T = TypeVar("T")


def read_members(
    class_: type, data: Any, label: str, warnings: list[str] | None = None
) -> dict[str, Any]:
    """Return the values of a document that a person wrote, by their attributes.

    What is null is as by default. InvalidValue names the key that is wrong.
    warnings: get a line for each value that is read as another.
    """
    if not isinstance(data, Mapping):
        raise InvalidValue(
            f"{label} is {checks.show_value(data)}, not a table of keys and values",
            hint="write it as {key: value}",
        )
    members = {member.key: member for member in document_members(class_) if member.key}
    values = {}
    for key, value in data.items():
        if key not in members:
            # people may write max-step as the command line does
            raise InvalidValue(
                f"unknown key {checks.show_value(key)} in {label}",
                hint=suggestion(str(key).replace("-", "_"), members),
            )
        member = members[key]
        if value is not None or member.rule.optional:
            values[member.attribute] = read_value(member.hint, value, key, label, warnings)
    # what is null or absent must have a default
    for key, member in members.items():
        if member.default is dataclasses.MISSING and member.attribute not in values:
            raise InvalidValue(f"{label} lacks {key}", hint=member.rule.description or "add it")
    return values


def file_values(instance: Any) -> dict[str, Any]:
    """Return plain values with the keys of files that people write; `read_members` reads them."""
    values = {}
    for member in document_members(type(instance)):
        if member.key:
            value = getattr(instance, member.attribute)
            if isinstance(value, tuple):
                value = [
                    file_values(item) if dataclasses.is_dataclass(item) else item for item in value
                ]
            values[member.key] = to_plain(value)
    return values


def read_file_document(
    class_: type[T], data: Any, label: str, warnings: list[str] | None = None
) -> T:
    """Return the instance of a document that a person wrote, as `read_members` does."""
    return class_(**read_members(class_, data, label, warnings))


def read_value(
    hint: Any, value: Any, name: str, label: str, warnings: list[str] | None = None
) -> Any:
    """Return a value that a person wrote under that name, read as its type declares.

    InvalidValue where it does not fit.
    """
    rule = declaration_of(hint)
    where = f"{name} in {label}"
    if isinstance(value, str):
        value = _read_text(rule, value, where, warnings)
    # documents within the document, one or a list, have keys of their own
    if dataclasses.is_dataclass(rule.base) and value is not None:
        class_: Any = rule.base
        return read_file_document(class_, value, where, warnings)
    (item_hint, *_) = get_args(rule.base) or (None,)
    if dataclasses.is_dataclass(declaration_of(item_hint).base) and isinstance(value, list | tuple):
        return tuple(
            read_value(item_hint, item, f"{name}[{number}]", label, warnings)
            for number, item in enumerate(value)
        )
    # anything else is msgspec's to read
    try:
        converted = msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        raise explain_error(error, hint, value, name, label) from error
    except UnicodeEncodeError as error:
        raise InvalidValue(f"{where} is not valid Unicode", hint="write it in UTF-8") from error
    check_rules(rule, converted, where)
    return converted


def _read_text(rule: Declared, text: str, where: str, warnings: list[str] | None) -> Any:
    """Return the value that a text stands for: seconds where it is a duration, or its alias."""
    if rule.is_duration:
        seconds = in_base_units(text, SECONDS)
        if seconds is None:
            raise InvalidValue(
                f"{where} is {checks.show_value(text)}, not a number, nor one with a unit of time",
                hint="write e.g. 2.5, 90s, 3m or 500ms",
            )
        return seconds
    if text in rule.extra.get("refused", ()):
        raise InvalidValue(
            f"{where} is {checks.show_value(text)}: {rule.extra['refused'][text]}",
            hint=f"use one of: {', '.join(rule.choices)}",
        )
    if text in rule.extra.get("aliases", ()):
        meant = rule.extra["aliases"][text]
        if warnings is not None:
            warnings.append(f"{where} is {checks.show_value(text)}, which is read as {meant}")
        return meant
    return text
