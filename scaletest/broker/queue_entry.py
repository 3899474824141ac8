"""The declarations of queues in Redis, read as data that anybody may have written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scaletest.model import checks
from scaletest.model.declared import Count, Document
from scaletest.model.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class QueueEntry(Document):
    """A queue's declaration."""

    document_name = "its entry"

    maximum: Count = 0  # waiting requests at most; 0 for any number
    note: str = ""
    owner: str = ""  # the client that declared it


def shown(name: bytes | str) -> str:
    """Return a printable name: control characters and invalid bytes are escaped, long names are
    cut.
    """
    text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
    return checks.cut(text, 200)


def sorted_out(rows: Any) -> tuple[dict[str, QueueEntry], dict[bytes, str]]:
    """Return queues by name, and by raw name the reason why another entry is not a queue."""
    queues: dict[str, QueueEntry] = {}
    foreign: dict[bytes, str] = {}
    for raw, value in rows.items():
        try:
            queues[checks.queue_name(raw.decode())] = QueueEntry.from_json(value)
        except UnicodeDecodeError:
            foreign[raw] = "its name is not UTF-8"
        except InvalidValue as error:
            foreign[raw] = error.message
    return queues, foreign


def text_of(value: bytes | str | None) -> str:
    """Return a text that anybody may have written; "" for none."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""
