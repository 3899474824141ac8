"""A verdict: PASS, FAIL or INVALID, always with the reason and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class VerdictKind(StrEnum):
    """PASS: the data support what was wanted. FAIL: they refute it. INVALID: they can do neither.

    RUNNING: more data are still coming. A run is only shown so, never judged so.
    """

    PASS = "PASS"
    FAIL = "FAIL"
    INVALID = "INVALID"
    RUNNING = "RUNNING"

    @property
    def exit_code(self) -> int:
        """0 PASS, 3 FAIL, 4 INVALID, and as long as there is no verdict."""
        return {"PASS": 0, "FAIL": 3, "INVALID": 4, "RUNNING": 4}[self.value]


# What a run, a step or a threshold can be judged as.
JUDGEMENTS = (VerdictKind.PASS, VerdictKind.FAIL, VerdictKind.INVALID)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a run: kind, reason in one line, and what to do next (empty for PASS)."""

    kind: VerdictKind
    reason: str
    remedy: str = ""

    def while_running(self) -> Verdict:
        """What is shown while it is measured. Of a verdict so far a FAIL is told, which more data may change."""
        refuted = f"; so far {self.kind}: {self.reason}" if self.kind is VerdictKind.FAIL else ""
        return Verdict(VerdictKind.RUNNING, f"it is still being measured{refuted}", "look again when it has ended")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: str(value) for name, value in asdict(self).items()}
