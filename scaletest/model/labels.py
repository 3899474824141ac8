"""What people call a run: its name and note."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scaletest.model.checks import cut, printable
from scaletest.model.errors import InvalidValue
from scaletest.model.wire import SCHEMA_VERSION

LATEST = "LAST"
RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
LONGEST_NOTE = 2000


def is_run_name(name: str) -> bool:
    """Whether a run can be called so."""
    return name != LATEST and RUN_NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Labels:
    """name: by which commands find the run besides the name of its folder; "" for none."""

    name: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        """InvalidValue for what is no name, or too long."""
        if self.name and not is_run_name(self.name):
            raise InvalidValue(
                f"{cut(self.name, 80)!a} cannot be the name of a run",
                hint="give one of letters, digits, '.', '_' and '-', and not LAST",
            )
        if len(self.note) > LONGEST_NOTE:
            raise InvalidValue(
                f"note too long: {len(self.note)} characters, limit {LONGEST_NOTE}",
                hint="shorten it",
            )

    @property
    def called(self) -> str:
        """The name in words; "" for none."""
        return f"called {self.name}" if self.name else ""

    def numbered(self, number: int) -> Labels:
        """The labels of one of several runs, whose name tells it from the others."""
        return replace(self, name=f"{self.name}-{number}") if self.name else self

    @classmethod
    def salvaged(cls, document: Mapping[str, Any]) -> Labels:
        """The labels in a document that may come from anywhere, without whatever is none."""
        name, note = document.get("name"), document.get("note")
        return cls(
            name if isinstance(name, str) and is_run_name(name) else "",
            printable(note[:LONGEST_NOTE], keep="\n") if isinstance(note, str) else "",
        )

    def to_dict(self) -> dict[str, Any]:
        """The content of labels.json."""
        return {"schema_version": SCHEMA_VERSION, "name": self.name, "note": self.note}


UNLABELLED = Labels()
