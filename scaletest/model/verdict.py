"""A verdict: PASS, FAIL or INVALID, always with the reason and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class VerdictKind(StrEnum):
    """PASS: the data confirm what was required. FAIL: they refute it. INVALID: they do neither.

    RUNNING: the run is not over. It is shown for a running run, and is never a final verdict.
    """

    PASS = "PASS"
    FAIL = "FAIL"
    INVALID = "INVALID"
    RUNNING = "RUNNING"

    @property
    def exit_code(self) -> int:
        """0 for PASS, 3 for FAIL, 4 for INVALID and as long as there is no verdict."""
        return {"PASS": 0, "FAIL": 3, "INVALID": 4, "RUNNING": 4}[self.value]


# Verdicts of a run, a step or a threshold.
JUDGEMENTS = (VerdictKind.PASS, VerdictKind.FAIL, VerdictKind.INVALID)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a run: kind, reason in one line, and what to do next (empty for PASS)."""

    kind: VerdictKind
    reason: str
    remedy: str = ""

    def while_running(self) -> Verdict:
        """The verdict of a running measurement; it mentions a FAIL, which may still change."""
        refuted = f"; so far {self.kind}: {self.reason}" if self.kind is VerdictKind.FAIL else ""
        return Verdict(
            VerdictKind.RUNNING,
            f"it is still being measured{refuted}",
            "look again when it has ended",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: str(value) for name, value in asdict(self).items()}
