"""What people call a run: its name, tags and note."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated

from msgspec import Meta

from scaletest.model.checks import printable
from scaletest.model.declared import VERSIONED, Document, check
from scaletest.model.errors import InvalidValue

LATEST = "LAST"
RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/=+-]{0,63}")
MOST_TAGS, LONGEST_NOTE = 32, 2000


def is_run_name(name: str) -> bool:
    """Whether a run can be called so."""
    return name != LATEST and RUN_NAME.fullmatch(name) is not None


_NAME_HINT = "give one of letters, digits, '.', '_' and '-', and not LAST"
_TAG_HINT = "give up to 64 letters, digits and any of . _ : / = + -"


def _check_note(note: str) -> None:
    """Refuse what could control a terminal: runs may come from anywhere."""
    if printable(note, keep="\n") != note:
        raise InvalidValue("the note has control characters", hint="leave them out")


@dataclass(frozen=True, slots=True)
class Labels(Document):
    """name: by which commands find the run besides the name of its folder; "" for none."""

    document_name = "the labels"
    constants = VERSIONED

    name: Annotated[
        str,
        Meta(
            pattern=rf"^((?!{LATEST}\Z){RUN_NAME.pattern})?\Z",
            title="the name of a run",
            extra={"hint": _NAME_HINT},
        ),
    ] = ""
    tags: Annotated[
        tuple[Annotated[str, Meta(pattern=rf"^{TAG.pattern}\Z", extra={"hint": _TAG_HINT})], ...],
        Meta(max_length=MOST_TAGS),
    ] = ()
    note: Annotated[str, Meta(max_length=LONGEST_NOTE, extra={"check": _check_note})] = ""

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "tags", tuple(dict.fromkeys(self.tags)))

    @property
    def parts(self) -> list[str]:
        """Name and tags in words."""
        called = [f"called {self.name}"] if self.name else []
        return [*called, *([f"tags {', '.join(self.tags)}"] if self.tags else [])]

    def numbered(self, number: int) -> Labels:
        """The labels of one of several runs, whose name tells it from the others."""
        return replace(self, name=f"{self.name}-{number}") if self.name else self


UNLABELLED = Labels()
