"""Documents that are declared once: reader, checks, writer and JSON Schema follow from a class.

A field's type says what it is, and `Annotated` its range, its name for people, and its description:

    limit: Annotated[int, Meta(ge=1, le=100, title="limit"), "the largest number of workers"] = 8

msgspec reads and checks by these types. Here its errors become messages that name the field and
what it takes, and values that are made in code pass the same checks. The members of a document are
the fields that are not INNER, and the properties whose return type is `Annotated`. What scaletest
wrote may have members that only newer versions know; what people write may not.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta

from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue, suggestion
from scaletest.model.texts import SECONDS, in_base_units

T = TypeVar("T")

# Declares that a field is not written.
INNER = Meta(extra={"inner": True})

# Values of these types are as JSON has them; a float may be infinite.
_PLAIN = frozenset((int, str, bool, type(None)))
# as msgspec names them
_LIMITS = ("ge", "gt", "le", "lt", "multiple_of", "pattern", "max_length")
# what msgspec expects, in words, and how to write it
_EXPECTED = {
    "int": ("a whole number", "write it as in 8"),
    "float": ("a number", "write it as in 2.5"),
    "str": ("text", 'put it in quotes, as in "1"'),
    "bool": ("true or false", "write true or false"),
    "array": ("a list", "write it as in [a, b]"),
    "object": ("a table of keys and values", "write it as in {key: value}"),
}


def flat(*names: str) -> Meta:
    """Declare that these members of the field's class stand in the document; all without names."""
    return Meta(extra={"flat": names})


def called(name: str) -> Meta:
    """Declare another name for documents than the attribute's."""
    return Meta(extra={"name": name})


def key(name: str) -> Meta:
    """Declare the name in files that people write; empty: these cannot have it."""
    return Meta(extra={"key": name})


def choice(names: Iterable[str], title: str = "") -> Meta:
    """Declare that a text is one of these names; `title` says what they are names of."""
    return Meta(title=title or None, extra={"choices": tuple(names)})


def text(pattern: str, example: str) -> Meta:
    """Declare that the whole of a text fits a pattern; `example` says so to people."""
    # with $ a text might end in a line feed
    return Meta(pattern=rf"^({pattern})\Z", extra={"hint": f"write {example}"})


def aliases(texts: Mapping[str, str]) -> Meta:
    """Declare texts that people may write for another value; they are warned."""
    return Meta(extra={"aliases": texts})


def refused(reasons: Mapping[str, str]) -> Meta:
    """Declare texts that cannot work, each with the reason."""
    return Meta(extra={"refused": reasons})


def parsed(function: Callable[[str], Any]) -> Meta:
    """Declare how a word becomes the value; the function raises InvalidValue."""
    return Meta(extra={"parse": function})


# A number that may be infinite, or none, which documents write as null.
Unbounded = Annotated[float, Meta(extra={"schema": {"type": ["number", "null"]}})]
VERSIONED = {"schema_version": wire.SCHEMA_VERSION}
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Positive = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Seconds = Annotated[float, Meta(ge=0, le=checks.MAX_TIME_LIMIT_S, extra={"unit": "s"})]
PositiveSeconds = Annotated[float, Meta(gt=0, le=checks.MAX_TIME_LIMIT_S, extra={"unit": "s"})]
Fraction = Annotated[
    float, Meta(gt=0, lt=1, extra={"hint": "give a part of 1, as in 0.02 for 2 %"})
]
QueueName = Annotated[str, Meta(extra={"check": checks.queue_name})]
RequestId = Annotated[str, Meta(extra={"check": checks.request_id})]
Arguments = Annotated[tuple[str, ...], Meta(extra={"check": checks.arguments})]
# Declares that a field decides what runs, or where files are written: not everybody may set it.
TRUSTED = Meta(extra={"trusted": True})


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """A type, and what is declared of it.

    optional: whether a value may be None. limits: by msgspec's names. choices: the texts that are
    allowed, none where any is. extra: declarations that msgspec does not know.
    """

    base: Any
    optional: bool
    title: str
    description: str
    limits: Mapping[str, Any]
    choices: Sequence[str]
    extra: Mapping[str, Any]

    @property
    def allowed(self) -> str:
        """The choices or the range in a sentence; "" where there are none."""
        low, high = self.limits.get("ge"), self.limits.get("le")
        if self.choices:
            return f"One of {', '.join(self.choices)}."
        if low is None:
            return ""
        return f"From {low}." if high is None else f"{low} to {high}."

    @property
    def is_duration(self) -> bool:
        """Whether values are numbers of seconds."""
        return self.extra.get("unit") == "s"


@dataclasses.dataclass(frozen=True, slots=True)
class DocumentMember:
    """A member of a document. name: there; attribute: where its value is, as in growth.peak.

    key: its name in files that people write, empty where these cannot have it.
    """

    name: str
    attribute: str
    hint: Any
    default: Any
    key: str

    @property
    def rule(self) -> Declared:
        """What is declared of it."""
        return declared(self.hint)

    @property
    def usual(self) -> Any:
        """The default as documents have it; None where there is none."""
        return None if self.default is dataclasses.MISSING else plain(self.default)


class Written:
    """A class whose instances are written and described as documents, or as parts of them.

    constants: members with a value that is always the same, the version among them. always: members
    that are written even when they are empty, in documents that leave out the empty ones.
    description: of the class in schemas, unless a field of its type has one. camel_case: whether
    host_network is hostNetwork there.
    """

    __slots__ = ()
    camel_case: ClassVar[bool] = False
    constants: ClassVar[Mapping[str, Any]] = {}
    always: ClassVar[frozenset[str] | None] = None
    description: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is infinite is null."""
        written = {**self.constants, **_written(self)}
        always = self.always
        if always is None:
            return written
        return {name: value for name, value in written.items() if value or name in always}

    def to_json(self) -> str:
        """One line of JSON."""
        return wire.dump(self.to_dict())


class Document(Written):
    """A class whose instances are also read, and checked when they are made.

    document_name: what it is in messages, as in "the plan".
    """

    __slots__ = ()
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


def is_enum(kind: Any) -> bool:
    """Whether a type is an enumeration."""
    return isinstance(kind, type) and issubclass(kind, Enum)


@cache
def declared(hint: Any) -> Declared:
    """The type without its declarations, and these; the last one wins, which is the outermost."""
    base, *metas = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    title = description = ""
    limits: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    optional = get_origin(base) in (Union, types.UnionType) and type(None) in get_args(base)
    alternatives = [part for part in get_args(base) if part is not type(None)]
    if optional and len(alternatives) == 1:
        inner = declared(alternatives[0])
        base, title, limits, extra = inner.base, inner.title, {**inner.limits}, {**inner.extra}
    for meta in metas:
        if isinstance(meta, str):
            description = meta
            continue
        title = meta.title or title
        extra |= meta.extra or {}
        limits |= {name: getattr(meta, name) for name in _LIMITS if getattr(meta, name) is not None}
    names: Iterable[Any] = get_args(base) if get_origin(base) is Literal else ()
    if is_enum(base):
        names = [kind.value for kind in base]
    choices = tuple(map(str, extra.get("choices", names)))
    return Declared(base, optional, title, description, limits, choices, extra)


def members(kind: Any) -> tuple[DocumentMember, ...]:
    """The members of a class's documents, in their order."""
    return _members(kind)


# a cache, since a set may have a hundred thousand specs of one class
@cache
def _members(kind: Any) -> tuple[DocumentMember, ...]:
    return tuple(_each_member(kind))


def _each_member(kind: Any) -> Iterator[DocumentMember]:
    hints = _field_hints(kind)
    for field in dataclasses.fields(kind):
        rule = declared(hints[field.name])
        if "flat" in rule.extra:
            names = rule.extra["flat"]
            for member in members(rule.base):
                if not names or member.name in names:
                    place = f"{field.name}.{member.attribute}"
                    yield dataclasses.replace(member, attribute=place)
        elif "inner" not in rule.extra:
            default = field.default
            if field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            yield _member(kind, field.name, hints[field.name], default)
    for attribute, part in vars(kind).items():
        if isinstance(part, property):
            hint = get_type_hints(part.fget, include_extras=True).get("return")
            if get_origin(hint) is Annotated:
                yield _member(kind, attribute, hint, dataclasses.MISSING)


def _member(kind: type, attribute: str, hint: Any, default: Any) -> DocumentMember:
    name = attribute
    if getattr(kind, "camel_case", False):
        first, *rest = attribute.split("_")
        name = first + "".join(map(str.capitalize, rest))
    extra = declared(hint).extra
    name = extra.get("name", name)
    return DocumentMember(name, attribute, hint, default, extra.get("key", name))


def read(kind: type[T], data: Any, label: str) -> T:
    """The instance that plain values stand for; InvalidValue names the field that is wrong.

    label: names the values in messages, as in "the plan".
    """
    if not isinstance(data, Mapping):
        raise InvalidValue(f"{label} is not a JSON object")
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise explained(error, kind, data, "", label) from error
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"{label} holds text that is not valid Unicode", hint="write it in UTF-8"
        ) from error
    except RecursionError as error:
        raise InvalidValue(f"{label} is nested too deeply") from error


def read_members(
    kind: type, data: Any, label: str, warnings: list[str] | None = None
) -> dict[str, Any]:
    """The values of a document that a person wrote, by their attributes; InvalidValue names the key
    that is wrong. What is null is as by default.

    warnings: get a line for each value that is read as another.
    """
    if not isinstance(data, Mapping):
        raise InvalidValue(
            f"{label} is {checks.shown(data)}, not a table of keys and values",
            hint="write it as {key: value}",
        )
    known = {member.key: member for member in members(kind) if member.key}
    values = {}
    for name, value in data.items():
        member = known_key(name, known, label)
        if value is not None or member.rule.optional:
            values[member.attribute] = read_value(member.hint, value, name, label, warnings)
    for name, member in known.items():
        if member.default is dataclasses.MISSING and member.attribute not in values:
            raise InvalidValue(f"{label} lacks {name}", hint=member.rule.description or "add it")
    return values


def file_values(instance: Any) -> dict[str, Any]:
    """Plain values with the keys of files that people write; `read_members` reads them."""
    values = {}
    for member in members(type(instance)):
        if member.key:
            value = getattr(instance, member.attribute)
            if isinstance(value, tuple):
                value = [
                    file_values(part) if dataclasses.is_dataclass(part) else part for part in value
                ]
            values[member.key] = plain(value)
    return values


def read_written(kind: type[T], data: Any, label: str, warnings: list[str] | None = None) -> T:
    """The instance of a document that a person wrote, as `read_members` does."""
    return kind(**read_members(kind, data, label, warnings))


def known_key(key: Any, known: Mapping[str, T], label: str) -> T:
    """What is known by that key; InvalidValue suggests the nearest key where nothing is."""
    if isinstance(key, str) and key in known:
        return known[key]
    raise InvalidValue(
        f"unknown key {checks.shown(key)} in {label}",
        hint=suggestion(str(key).replace("-", "_"), known),
    )


def read_value(
    hint: Any, value: Any, name: str, label: str, warnings: list[str] | None = None
) -> Any:
    """A value that a person wrote under that name, as its type declares; InvalidValue otherwise."""
    rule = declared(hint)
    where = f"{name} in {label}"
    if isinstance(value, str):
        value = _read_text(rule, value, where, warnings)
    (item, *_) = get_args(rule.base) or (None,)
    if dataclasses.is_dataclass(rule.base) and value is not None:
        kind: Any = rule.base
        return read_written(kind, value, where, warnings)
    if dataclasses.is_dataclass(declared(item).base) and isinstance(value, list):
        rows = enumerate(value)
        return tuple(read_value(item, part, f"{name}[{n}]", label, warnings) for n, part in rows)
    try:
        converted = msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        raise explained(error, hint, value, name, label) from error
    except UnicodeEncodeError as error:
        raise InvalidValue(f"{where} is not valid Unicode", hint="write it in UTF-8") from error
    _check_rules(rule, converted, where)
    return converted


def _read_text(rule: Declared, text: str, where: str, warnings: list[str] | None) -> Any:
    """The value that a text stands for: a number where it has a unit of time, or its alias."""
    if rule.is_duration:
        seconds = in_base_units(text, SECONDS)
        if seconds is None:
            raise InvalidValue(
                f"{where} is {checks.shown(text)}, not a number, nor one with a unit of time",
                hint="write it as in 2.5, 90s, 3m or 500ms",
            )
        return seconds
    if text in rule.extra.get("refused", ()):
        raise InvalidValue(
            f"{where} is {checks.shown(text)}: {rule.extra['refused'][text]}",
            hint=f"use one of: {', '.join(rule.choices)}",
        )
    if text in rule.extra.get("aliases", ()):
        meant = rule.extra["aliases"][text]
        if warnings is not None:
            warnings.append(f"{where} is {checks.shown(text)}, which is read as {meant}")
        return meant
    return text


def explained(
    error: msgspec.ValidationError, hint: Any, value: Any, name: str, label: str
) -> InvalidValue:
    """The error of msgspec in words of ours.

    value: what was read as `hint`, the value of this name in `label`; either may be empty.
    """
    problem, _, place = str(error).partition(" - at ")
    for attribute, index in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", place):
        base = declared(hint).base
        if attribute:
            hint = get_type_hints(base, include_extras=True)[attribute]
            if isinstance(value, Mapping):
                value = value.get(attribute)
            else:
                value = getattr(value, attribute)
                attribute = declared(hint).title or attribute
            name = f"{name}.{attribute}" if name else attribute
        elif index == "...":
            # msgspec does not tell which
            hint = get_args(base)[1]
            key, value = next(row for row in value.items() if not _fits(row[1], hint))
            name = f"{name}[{checks.cut(str(key), 60)}]"
        else:
            hint, value = get_args(base)[0], value[int(index)]
            name = f"{name}[{index}]"
    rule = declared(hint)
    where = " in ".join(part for part in (name, label) if part)
    if place.startswith("`key`"):
        return InvalidValue(f"{where} has a wrong key: {problem}", hint="correct it")
    if missing := re.fullmatch(r"Object missing required field `(.*)`", problem):
        return InvalidValue(f"{where} lacks {missing[1]}", hint="add it")
    shown = f"{where} is {checks.shown(value)}"
    if wrong := re.fullmatch(r"Expected `(.*)`, got `.*`", problem):
        kinds = [_EXPECTED.get(kind, (kind, "")) for kind in wrong[1].split(" | ")]
        expected = " or ".join(words for words, _ in kinds)
        return InvalidValue(f"{shown}, not {expected}", hint=kinds[0][1])
    if "max_length" in rule.limits:
        limit = rule.limits["max_length"]
        return InvalidValue(f"{where} too long: {len(value)}, limit {limit}", hint="shorten it")
    return InvalidValue(f"{shown}{' s' * rule.is_duration}", hint=_hint_of(rule, value))


def _fits(value: Any, hint: Any) -> bool:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError:
        return False
    return True


def _hint_of(rule: Declared, value: Any) -> str:
    """What a value may be, for one that is of the right type."""
    limits = rule.limits
    if "hint" in rule.extra:
        return str(rule.extra["hint"])
    if rule.choices:
        return suggestion(value, rule.choices)
    if "multiple_of" in limits and value % limits["multiple_of"]:
        return f"give a multiple of {limits['multiple_of']}"
    low, high = limits.get("gt", limits.get("ge", 0)), limits.get("lt", limits.get("le"))
    what = "seconds" if rule.is_duration else "a number"
    first = f"{'above' if 'gt' in limits else 'from'} {_number(low)}"
    return f"give {what} {first}" + ("" if high is None else f" to {_number(high)}")


def _number(limit: float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


def check(instance: Any) -> None:
    """Raise InvalidValue, unless all fields are as they are declared."""
    kind: Any = type(instance)
    twin, rules = _twin(kind)
    try:
        msgspec.convert(instance, twin, from_attributes=True)
    except msgspec.ValidationError as error:
        raise explained(error, kind, instance, "", "") from error
    for attribute, rule in rules:
        _check_rules(rule, getattr(instance, attribute), rule.title or attribute)


@cache
def _twin(kind: type) -> tuple[type, list[tuple[str, Declared]]]:
    """A class with the same fields, into which msgspec converts instances to check them; and the
    rules that msgspec does not know.
    """
    hints = _field_hints(kind)
    rules = [(name, declared(hint)) for name, hint in hints.items()]
    own = [(name, rule) for name, rule in rules if {"choices", "check"} & rule.extra.keys()]
    return msgspec.defstruct(kind.__name__, list(hints.items())), own


def _check_rules(rule: Declared, value: Any, where: str) -> None:
    """Check what msgspec does not know of."""
    if rule.choices and value not in rule.choices and value is not None:
        raise InvalidValue(
            f"{where} is {checks.shown(value)}",
            hint=suggestion(value, filter(None, rule.choices)),
        )
    if "check" in rule.extra:
        rule.extra["check"](value)


def _field_hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def plain(value: Any) -> Any:
    """A value as JSON writes it: an instance by the members of its class, what is infinite null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value.__class__ in _PLAIN:
        return value
    if isinstance(value, Written):
        return value.to_dict()
    if dataclasses.is_dataclass(value):
        return _written(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


def _written(instance: Any) -> dict[str, Any]:
    kind: Any = type(instance)
    names, get, writers = _writers(kind)
    document = dict(zip(names, get(instance), strict=True))
    for name, write in writers:
        document[name] = write(document[name])
    return document


@cache
def _writers(kind: Any) -> tuple[Sequence[str], Callable[[Any], Any], list[tuple[str, Any]]]:
    """The names of a class's members, a function that gets their values, and one for each member
    whose value is not plain already: there are many requests.
    """
    first, *others = members(kind)
    # with the first one twice they are a tuple also where there is one
    rows = [first, first, *others]
    writers = [(row.name, write) for row in (first, *others) if (write := _writer(row))]
    return [row.name for row in rows], attrgetter(*(row.attribute for row in rows)), writers


def _writer(member: DocumentMember) -> Callable[[Any], Any] | None:
    """A function that makes a value of the member plain; None where it is."""
    rule = member.rule
    if "digits" in rule.extra:
        return partial(round, ndigits=rule.extra["digits"])
    alternatives = {rule.base}
    if get_origin(rule.base) in (Union, types.UnionType):
        alternatives = set(get_args(rule.base))
    if alternatives <= _PLAIN or {"ge", "le"} <= rule.limits.keys():
        return None
    return attrgetter("value") if is_enum(rule.base) and not rule.optional else plain
