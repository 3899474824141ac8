"""The labels that people give a run: its name and note."""

import re
from dataclasses import dataclass, replace
from typing import Annotated

from msgspec import Meta

from scaletest.model.checks import escape_unprintable
from scaletest.model.declared import VERSIONED
from scaletest.model.document import Document
from scaletest.model.errors import InvalidValue

LATEST = "LAST"
RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
LONGEST_NOTE = 2000


def _check_note(note: str) -> None:
    """Refuse what could control a terminal: runs may come from anywhere."""
    if escape_unprintable(note, keep="\n") != note:
        raise InvalidValue("the note has control characters", hint="leave them out")


@dataclass(frozen=True, slots=True)
class Labels(Document):
    """The labels of one run."""

    document_name = "the labels"
    constants = VERSIONED

    # commands find the run by it, as by the name of its folder; "" for none
    name: Annotated[
        str,
        Meta(
            pattern=rf"^((?!{LATEST}\Z){RUN_NAME.pattern})?\Z",
            title="the name of a run",
            extra={"hint": "give one of letters, digits, '.', '_' and '-', and not LAST"},
        ),
    ] = ""
    note: Annotated[str, Meta(max_length=LONGEST_NOTE, extra={"check": _check_note})] = ""

    @property
    def called(self) -> str:
        """The name in words; "" for none."""
        return f"called {self.name}" if self.name else ""

    def numbered(self, number: int) -> "Labels":
        """Return the labels of one of several runs, with its number at the end of the name."""
        return replace(self, name=f"{self.name}-{number}") if self.name else self


UNLABELLED = Labels()
