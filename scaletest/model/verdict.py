"""A verdict: PASS, FAIL or INVALID, always with the reason and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class VerdictKind(StrEnum):
    """PASS: the data support what was wanted. FAIL: they refute it. INVALID: they can do neither."""

    PASS = "PASS"
    FAIL = "FAIL"
    INVALID = "INVALID"

    @property
    def exit_code(self) -> int:
        """0 PASS, 3 FAIL, 4 INVALID."""
        return {"PASS": 0, "FAIL": 3, "INVALID": 4}[self.value]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a run: kind, reason in one line, and what to do next (empty for PASS)."""

    kind: VerdictKind
    reason: str
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: str(value) for name, value in asdict(self).items()}
