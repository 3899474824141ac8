"""Parse entries of scaletest:queues; foreign entries, which anybody may write, must not raise."""

from __future__ import annotations

import json
from dataclasses import dataclass

from scaletest.model import checks
from scaletest.model.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A queue's declaration. maximum: of waiting requests, 0 for none. owner: declaring client."""

    maximum: int = 0
    note: str = ""
    owner: str = ""


def shown(name: bytes | str) -> str:
    """A printable name: control characters and invalid bytes are escaped, long names are cut."""
    text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
    return checks.cut(text, 200)


def read_entry(value: bytes | str) -> QueueEntry:
    """Parse the entry of a queue; InvalidValue when scaletest did not write it."""
    try:
        row = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"its entry is not JSON: {checks.cut(str(error), 100)}") from error
    if not isinstance(row, dict):
        raise InvalidValue("its entry is not a JSON object")
    note, owner = row.get("note", ""), row.get("owner", "")
    if not isinstance(note, str) or not isinstance(owner, str):
        raise InvalidValue("note and owner in its entry must be text")
    return QueueEntry(checks.count(row.get("maximum", 0), "the maximum in its entry"), note, owner)


def sorted_out(rows: dict[bytes, bytes]) -> tuple[dict[str, QueueEntry], dict[bytes, str]]:
    """Queues by name, and by raw name the reason why another entry is not a queue."""
    queues: dict[str, QueueEntry] = {}
    foreign: dict[bytes, str] = {}
    for raw, value in rows.items():
        try:
            queues[checks.queue_name(raw.decode())] = read_entry(value)
        except UnicodeDecodeError:
            foreign[raw] = "its name is not UTF-8"
        except InvalidValue as error:
            foreign[raw] = error.message
    return queues, foreign
