"""Write instances of dataclasses as documents: which members these have, and in what form.

    @dataclass
    class Step(Written):
        workers: Annotated[int, "workers that were alive"]
        scratch: Annotated[list[int], INNER]

        @property
        def is_first(self) -> Annotated[bool, "whether no step is smaller"]: ...

Step.to_dict() has the members `workers` and `is_first`: fields that are not INNER, and properties
whose type is declared.
"""

import dataclasses
import math
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

from scaletest.model import wire
from scaletest.model.declared import Declared, declaration_of, is_enum

# Values of these types are as JSON has them; a float may be infinite.
_PLAIN = frozenset((int, str, bool, type(None)))


@dataclasses.dataclass(frozen=True, slots=True)
class DocumentMember:
    """A member of a document: its names, its type, and where its value is."""

    name: str  # in documents
    attribute: str  # where its value is in the instance, as in growth.peak
    hint: Any  # its type, with declarations
    default: Any  # of the field; dataclasses.MISSING without one
    key: str  # its name in files that people write, empty where these cannot have it

    @property
    def rule(self) -> Declared:
        """The declarations of its type."""
        return declaration_of(self.hint)

    @property
    def usual(self) -> Any:
        """The default, as it is written; None where there is none."""
        return None if self.default is dataclasses.MISSING else to_plain(self.default)


def _members_of(class_: Any) -> tuple[DocumentMember, ...]:
    """Return the members of a class's documents, in their order."""
    members = []
    hints = field_hints(class_)
    for field in dataclasses.fields(class_):
        rule = declaration_of(hints[field.name])
        if "inner" in rule.extra:
            continue
        if "flat" in rule.extra:  # members of its own class stand in this document
            for member in document_members(rule.base):
                if not rule.extra["flat"] or member.name in rule.extra["flat"]:
                    attribute = f"{field.name}.{member.attribute}"
                    members.append(dataclasses.replace(member, attribute=attribute))
            continue
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        members.append(_member(class_, field.name, hints[field.name], default))
    # properties with a declared type are written, and never read
    for attribute, value in vars(class_).items():
        if isinstance(value, property):
            hint = get_type_hints(value.fget, include_extras=True).get("return")
            if get_origin(hint) is Annotated:
                members.append(_member(class_, attribute, hint, dataclasses.MISSING))
    return tuple(members)


# Cached, since a set may have a hundred thousand specs of one class. As a decorator, mypy would
# have the cache refuse classes of dataclasses that cannot be hashed.
document_members: Callable[[Any], tuple[DocumentMember, ...]] = cache(_members_of)


def _member(class_: type, attribute: str, hint: Any, default: Any) -> DocumentMember:
    """Return the member of an attribute, with the names that documents and files have for it."""
    name = attribute
    if getattr(class_, "camel_case", False):
        first, *others = attribute.split("_")
        name = first + "".join(map(str.capitalize, others))
    extra = declaration_of(hint).extra
    name = extra.get("name", name)
    return DocumentMember(name, attribute, hint, default, extra.get("key", name))


def field_hints(class_: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields, with their declarations."""
    hints = get_type_hints(class_, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(class_)}


class Written:
    """A class whose instances are written and described as documents, or as parts of them."""

    __slots__ = ()
    camel_case: ClassVar[bool] = False  # whether host_network is hostNetwork in documents
    constants: ClassVar[Mapping[str, Any]] = {}  # further members, as the version of the schema
    # None: write all members. Else leave out those that are empty, but for these.
    always: ClassVar[frozenset[str] | None] = None
    # of the class in schemas, unless a field of its type has one
    description: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is infinite is null."""
        document = {**self.constants, **_members_to_plain(self)}
        always = self.always
        if always is not None:
            document = {name: value for name, value in document.items() if value or name in always}
        return document

    def to_json(self) -> str:
        """Return one line of JSON."""
        return wire.dump(self.to_dict())


def to_plain(value: Any) -> Any:
    """Return a value as JSON writes it.

    An instance is written by the members of its class. What is infinite is null.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    # the exact class: members of enumerations that are texts or numbers come below
    if value.__class__ in _PLAIN:
        return value
    if isinstance(value, Written):
        return value.to_dict()
    if dataclasses.is_dataclass(value):
        return _members_to_plain(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(to_plain(key)): to_plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value


def _members_to_plain(instance: Any) -> dict[str, Any]:
    class_: Any = type(instance)
    names, get_values, writers = _writers(class_)
    document = dict(zip(names, get_values(instance), strict=True))
    for name, write in writers:
        document[name] = write(document[name])
    return document


@cache
def _writers(class_: Any) -> tuple[Sequence[str], Callable[[Any], Any], list[tuple[str, Any]]]:
    """Return the names of a class's members, a getter of their values, and writers by name.

    Only members whose values are not plain already have a writer: it is called for each request.
    """
    members = document_members(class_)
    writers: list[tuple[str, Any]] = []
    for member in members:
        rule = member.rule
        is_union = get_origin(rule.base) in (Union, types.UnionType)
        alternatives = set(get_args(rule.base)) if is_union else {rule.base}
        if "digits" in rule.extra:
            writers.append((member.name, partial(round, ndigits=rule.extra["digits"])))
        elif is_enum(rule.base) and not rule.optional:
            writers.append((member.name, attrgetter("value")))
        # a number with both limits cannot be infinite
        elif not (alternatives <= _PLAIN or {"ge", "le"} <= rule.limits.keys()):
            writers.append((member.name, to_plain))
    # attrgetter gives a tuple only for two or more: with the first one twice there always are
    members = (members[0], *members)
    get_values = attrgetter(*(member.attribute for member in members))
    return [member.name for member in members], get_values, writers
