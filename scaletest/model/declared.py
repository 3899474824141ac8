"""Documents that are declared once: reader, checks, writer and JSON Schema follow from a class.

A field's type says what it is, and `Annotated` its range, its name for people, and its description:

    limit: Annotated[int, Meta(ge=1, le=100, title="limit"), "the largest number of workers"] = 8

msgspec reads by these types. Here its errors become messages that name the field and what it takes,
and values that are made in code pass the same checks. The members of a document are the fields that
are not INNER, and the properties whose return type is `Annotated`. Members that only newer versions
know are ignored.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from typing import (
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta

from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue

T = TypeVar("T")

# Declares that a field is not written.
INNER = Meta(extra={"inner": True})

# Values of these types are as JSON has them; a float may be infinite.
_PLAIN = frozenset((int, str, bool, type(None)))
# as msgspec names them
_LIMITS = ("ge", "gt", "le", "lt", "multiple_of", "pattern", "max_length")
_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
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


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """A type, and what is declared of it.

    limits: by msgspec's names. extra: declarations that msgspec does not know.
    """

    base: Any
    title: str
    description: str
    limits: Mapping[str, Any]
    extra: Mapping[str, Any]

    @property
    def choices(self) -> Sequence[str]:
        """The texts that are allowed; none where any is."""
        if "choices" not in self.extra and is_enum(self.base):
            return [kind.value for kind in self.base]
        return [str(name) for name in self.extra.get("choices", ())]


@dataclasses.dataclass(frozen=True, slots=True)
class DocumentMember:
    """A member of a document. name: there; attribute: where its value is, as in growth.peak.

    key: its name in files that people write, empty where these cannot have it. digits: decimals
    that are written, None for all.
    """

    name: str
    attribute: str
    hint: Any
    default: Any
    key: str
    digits: int | None = None


class Written:
    """A class whose instances are written and described as documents, or as parts of them.

    constants: members with a value that is always the same, the version among them. always: members
    that are written even when they are empty, in documents that leave out the empty ones.
    description: of the class in schemas, unless a field of its type has one.
    """

    __slots__ = ()
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


def is_duration(hint: Any) -> bool:
    """Whether a type is of numbers of seconds."""
    return declared(hint).extra.get("unit") == "s"


@cache
def declared(hint: Any) -> Declared:
    """The type without its declarations, and these; the last one wins, which is the outermost."""
    base, *metas = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    title = description = ""
    limits: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for meta in metas:
        if isinstance(meta, str):
            description = meta
            continue
        title = meta.title or title
        extra |= meta.extra or {}
        limits |= {name: getattr(meta, name) for name in _LIMITS if getattr(meta, name) is not None}
    return Declared(base, title, description, limits, extra)


@cache
def members(kind: type) -> tuple[DocumentMember, ...]:
    """The members of a class's documents, in their order."""
    return tuple(_members(kind))


def _members(kind: type) -> Iterator[DocumentMember]:
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
            yield _member(field.name, hints[field.name], field.default)
    for attribute, part in vars(kind).items():
        if isinstance(part, property):
            hint = get_type_hints(part.fget, include_extras=True).get("return")
            if get_origin(hint) is Annotated:
                yield _member(attribute, hint, dataclasses.MISSING)


def _member(attribute: str, hint: Any, default: Any) -> DocumentMember:
    extra = declared(hint).extra
    name = extra.get("name", attribute)
    in_files = extra.get("key", name)
    return DocumentMember(name, attribute, hint, default, in_files, extra.get("digits"))


def read(kind: type[T], data: Any, label: str) -> T:
    """The instance that plain values stand for; InvalidValue names the field that is wrong.

    label: names the values in messages, as in "the plan".
    """
    if not isinstance(data, Mapping):
        raise InvalidValue(f"{label} is not a JSON object")
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise _explained(str(error), kind, data, label) from error
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"{label} holds text that is not valid Unicode", hint="write it in UTF-8"
        ) from error
    except RecursionError as error:
        raise InvalidValue(f"{label} is nested too deeply") from error


def read_row(kind: type[T], data: Any, label: str) -> T:
    """The named tuple whose fields are the members of an object; InvalidValue as `read` does."""
    document_class, values = _row_class(cast("Any", kind))
    return kind(*values(read(document_class, data, label)))


@cache
def _row_class(kind: Any) -> tuple[type, Callable[[Any], Any]]:
    """A class with the fields of a named tuple, which stands in JSON as an object and not as an
    array, and a function that gets their values.
    """
    hints, defaults = get_type_hints(kind, include_extras=True), kind._field_defaults
    optional = {name: dataclasses.field(default=default) for name, default in defaults.items()}
    fields = [(name, hints[name], optional.get(name, dataclasses.field())) for name in kind._fields]
    return dataclasses.make_dataclass(kind.__name__, fields), attrgetter(*kind._fields)


def _explained(message: str, kind: type, data: Mapping[str, Any], label: str) -> InvalidValue:
    """The error of msgspec in words of ours."""
    problem, _, place = message.partition(" - at ")
    path = place.removeprefix("`key` in ").strip("`").removeprefix("$").removeprefix(".")
    where = f"{path} of {label}" if path else label
    if missing := re.fullmatch(r"Object missing required field `(.*)`", problem):
        return InvalidValue(f"{where} lacks {missing[1]}", hint="add it")
    if wrong := re.fullmatch(r"Expected `(.*)`, got `(.*)`", problem):
        expected = " or ".join(_EXPECTED.get(name, name) for name in wrong[1].split(" | "))
        return InvalidValue(
            f"field {path!r} of {label} has the wrong type: {wrong[2]}", hint=f"give {expected}"
        )
    try:
        _check_plain(kind, data)
    except InvalidValue as error:
        return error
    return InvalidValue(f"{where} cannot be read: {problem}")


def check(instance: Any) -> None:
    """Raise InvalidValue, unless all fields are as they are declared."""
    kind: Any = type(instance)
    for get, holds, rows in _checked(kind):
        # there are many requests: what is surely right is not looked at one by one
        if not holds(get(instance)):
            for attribute, label, hint in rows:
                check_value(hint, getattr(instance, attribute), label)


CheckedRows = list[tuple[str, str, Any]]


@cache
def _checked(kind: Any) -> list[tuple[Any, Any, CheckedRows]]:
    """Fields of a class of which something can be wrong, numbers of one range together.

    Of each: a function that gets its value, one that tells whether that is surely right, and
    attribute, name for people and type.
    """
    numbers: dict[Any, CheckedRows] = {}
    checked: list[tuple[Any, Any, CheckedRows]] = []
    for name, hint in _field_hints(kind).items():
        rule = declared(hint)
        row = name, rule.title or name, hint
        if holds := _range_test(rule):
            numbers.setdefault((rule.base, *rule.limits.values()), []).append(row)
        elif _has_rules(hint):
            checked.append((attrgetter(name), _quick_test(rule), [row]))
    for rows in numbers.values():
        # with the first name twice it is a tuple also where there is one name
        names = [name for name, _, _ in rows]
        holds = _range_test(declared(rows[0][2]))
        checked.append((attrgetter(names[0], *names), holds, rows))
    return checked


def _range_test(rule: Declared) -> Callable[[Collection[Any]], bool] | None:
    """A test of numbers, all of which are of the type and in its range; None for other types."""
    low, high = rule.limits.get("ge", -1), rule.limits.get("le", math.inf)
    if rule.base not in (int, float) or low < 0:
        return None
    kinds = {rule.base}
    # a sum of numbers of which one is none is none
    return lambda values: (
        kinds.issuperset(map(type, values)) and min(values) >= low and sum(values) <= high
    )


def _quick_test(rule: Declared) -> Callable[[Any], Any]:
    """A test of a value that is true only where it is surely right."""
    arguments = get_args(rule.base)
    if "check" in rule.extra:
        test: Callable[[Any], Any] = rule.extra["check"]
        return test
    if get_origin(rule.base) in (dict, Mapping) and (holds := _range_test(declared(arguments[1]))):
        return lambda table: not table or holds(table.values())
    if "max_length" in rule.limits and not any(map(_has_rules, arguments)):
        return lambda parts: len(parts) <= rule.limits["max_length"]
    if "max_length" in rule.limits and get_origin(rule.base) in (dict, Mapping):
        holds_part = _quick_test(declared(arguments[1]))
        return lambda table: (
            len(table) <= rule.limits["max_length"] and all(map(holds_part, table.values()))
        )
    return lambda value: False


def _field_hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _has_rules(hint: Any) -> bool:
    rule = declared(hint)
    is_checked = bool(rule.limits) or not {"choices", "check"}.isdisjoint(rule.extra)
    return is_checked or any(map(_has_rules, get_args(rule.base)))


def _check_plain(kind: Any, data: Mapping[str, Any]) -> None:
    """Check plain values as `check` does instances; types are msgspec's matter."""
    for member in members(kind):
        if member.name in data:
            label = declared(member.hint).title or member.name
            check_value(member.hint, data[member.name], label)


def check_value(hint: Any, value: Any, label: str) -> None:
    """Raise InvalidValue, which calls the value `label`, unless it is as its type declares."""
    rule = declared(hint)
    if value is None and type(None) in get_args(rule.base):
        return
    if isinstance(value, Mapping) and dataclasses.is_dataclass(rule.base):
        _check_plain(rule.base, value)
    for inner, part in _parts(rule.base, value):
        check_value(inner, part, label)
    if rule.base in (int, float) and rule.limits:
        try:
            _check_number(rule, value, label)
        except InvalidValue as error:
            raise InvalidValue(error.message, hint=rule.extra.get("hint", error.hint)) from error
    if choices := rule.choices:
        checks.one_of(value, [name for name in choices if name or not value], label)
    if isinstance(value, str | list | tuple | Mapping):
        _check_length(rule, value, label)


def _check_length(rule: Declared, value: Any, label: str) -> None:
    if len(value) > rule.limits.get("max_length", math.inf):
        most = rule.limits["max_length"]
        raise InvalidValue(f"{label} has {len(value)} members", hint=f"give {most} at most")
    if "check" in rule.extra:
        rule.extra["check"](value)


def _parts(base: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """The values within a value, with their types."""
    origin, arguments = get_origin(base), get_args(base)
    if origin in (Union, types.UnionType):
        yield next(inner for inner in arguments if inner is not type(None)), value
    elif isinstance(value, Mapping) and len(arguments) == 2:
        yield from ((arguments[1], part) for part in value.values())
    elif isinstance(value, list | tuple) and arguments:
        yield from ((arguments[0], part) for part in value)


def _check_number(rule: Declared, value: Any, label: str) -> None:
    low, high = rule.limits.get("ge", 0), rule.limits.get("le", math.inf)
    if "lt" in rule.limits:
        high = math.nextafter(rule.limits["lt"], low)
    above_zero = "gt" in rule.limits
    if rule.base is int:
        checks.count(value, label, minimum=low, maximum=high)
    elif rule.extra.get("unit") == "s":
        checks.seconds(value, label, maximum=high, zero=not above_zero)
    else:
        checks.number(value, label, minimum=low, maximum=high, zero=not above_zero)


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
    rule = declared(member.hint)
    if member.digits is not None:
        return partial(round, ndigits=member.digits)
    alternatives = {rule.base}
    if get_origin(rule.base) in (Union, types.UnionType):
        alternatives = set(get_args(rule.base))
    if alternatives <= _PLAIN or {"ge", "le"} <= rule.limits.keys():
        return None
    return attrgetter("value") if is_enum(rule.base) else plain
