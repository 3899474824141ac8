"""Verdicts, each with its reason and remedy."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from scaletest.model.writing import Written


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
class Verdict(Written):
    """The answer of a run.

    Example:
        verdict = scaletest.load_run("LAST").verdict
        if verdict.kind != "PASS":
            print(verdict.reason, verdict.remedy)

    Raises: nothing
    """

    kind: Annotated[VerdictKind, "PASS, FAIL, INVALID, or RUNNING: a text of these letters."]
    reason: Annotated[str, "in one line"]
    remedy: Annotated[str, "what to do"] = ""


def while_running(verdict: Verdict) -> Verdict:
    """Return the verdict of a running measurement; it mentions a FAIL, which may still change."""
    reason = "it is still being measured"
    if verdict.kind is VerdictKind.FAIL:
        reason += f"; so far {verdict.kind}: {verdict.reason}"
    return Verdict(VerdictKind.RUNNING, reason, "look again when it has ended")
