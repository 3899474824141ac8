"""Documents that are declared once: reader, checks, writer and JSON Schema follow from a class.

A field's type says what it is, and `Annotated` its range, its name for people, and its description:

    limit: Annotated[int, Meta(ge=1, le=100, title="limit"), "the largest number of workers"] = 8

msgspec reads and checks by these types; values that are made in code pass the same checks. What
scaletest wrote may have members that only newer versions know; what people write may not.
"""

import dataclasses
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Meta

from scaletest.model import checks, wire

# Declares that a field is not written.
INNER = Meta(extra={"inner": True})

# The limits of a value, as msgspec names them.
_LIMITS = ("ge", "gt", "le", "lt", "multiple_of", "pattern", "max_length")
# A number that may be infinite or NaN, which documents write as null.
Unbounded = Annotated[float, Meta(extra={"schema": {"type": ["number", "null"]}})]
VERSIONED = {"schema_version": wire.SCHEMA_VERSION}
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Positive = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Seconds = Annotated[float, Meta(ge=0, le=checks.MAX_TIME_LIMIT_S, extra={"unit": "s"})]
PositiveSeconds = Annotated[float, Meta(gt=0, le=checks.MAX_TIME_LIMIT_S, extra={"unit": "s"})]
Fraction = Annotated[float, Meta(gt=0, lt=1, extra={"hint": "give a fraction, e.g. 0.02 for 2 %"})]
QueueName = Annotated[str, Meta(extra={"check": checks.queue_name})]
RequestId = Annotated[str, Meta(extra={"check": checks.request_id})]
Arguments = Annotated[tuple[str, ...], Meta(extra={"check": checks.arguments})]
# Declares that a field decides what runs, or where files are written: not everybody may set it.
TRUSTED = Meta(extra={"trusted": True})


def flat(*names: str) -> Meta:
    """Declare that members of the field's class stand in the document itself.

    names: of these members; all of them without any.
    """
    return Meta(extra={"flat": names})


def named_in_documents(name: str) -> Meta:
    """Declare another name for documents than the attribute's."""
    return Meta(extra={"name": name})


def named_in_files(name: str) -> Meta:
    """Declare the name in files that people write; "" for a field that they cannot set."""
    return Meta(extra={"key": name})


def choice(names: Iterable[str], title: str = "") -> Meta:
    """Declare that a text is one of these names; `title` says what they are names of."""
    return Meta(title=title or None, extra={"choices": tuple(names)})


def text(pattern: str, example: str) -> Meta:
    """Declare that the whole of a text fits a pattern; `example` says so to people."""
    # with $ a text might end in a line feed
    return Meta(pattern=rf"^({pattern})\Z", extra={"hint": f"write {example}"})


def text_aliases(texts: Mapping[str, str]) -> Meta:
    """Declare texts that are read as another value, with a warning to their author."""
    return Meta(extra={"aliases": texts})


def refused_texts(reasons: Mapping[str, str]) -> Meta:
    """Declare texts that cannot work, each with the reason."""
    return Meta(extra={"refused": reasons})


def parsed_by(function: Callable[[str], Any]) -> Meta:
    """Declare how a word becomes the value; the function raises InvalidValue."""
    return Meta(extra={"parse": function})


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """A type, and all that its declarations say of it."""

    base: Any
    optional: bool  # whether a value may be None
    title: str
    description: str
    limits: Mapping[str, Any]  # by msgspec's names
    choices: Sequence[str]  # the texts that are allowed, none where any is
    extra: Mapping[str, Any]  # declarations that msgspec does not know

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


def is_enum(hint: Any) -> bool:
    """Return whether a type is an enumeration."""
    return isinstance(hint, type) and issubclass(hint, Enum)


@cache
def declaration_of(hint: Any) -> Declared:
    """Return a type without its declarations, and all that they say of it.

    Where two declarations contradict each other, the outermost counts.
    """
    base, *metas = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    title = description = ""
    limits: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    # of `X | None` the declarations of X hold
    optional = get_origin(base) in (Union, types.UnionType) and type(None) in get_args(base)
    alternatives = [part for part in get_args(base) if part is not type(None)]
    if optional and len(alternatives) == 1:
        inner = declaration_of(alternatives[0])
        base, title, limits, extra = inner.base, inner.title, {**inner.limits}, {**inner.extra}
    for meta in metas:
        if isinstance(meta, str):
            description = meta
            continue
        title = meta.title or title
        extra |= meta.extra or {}
        limits |= {name: getattr(meta, name) for name in _LIMITS if getattr(meta, name) is not None}
    # what may be chosen: as it is declared, or as the type has it
    values: Iterable[Any] = get_args(base) if get_origin(base) is Literal else ()
    if is_enum(base):
        values = [member.value for member in base]
    choices = tuple(map(str, extra.get("choices", values)))
    return Declared(base, optional, title, description, limits, choices, extra)
