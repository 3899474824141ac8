"""Parser for the JSON result of our own commands, which has a verdict."""

from __future__ import annotations

from typing import Any

from scaletest.kinds import parsing
from scaletest.kinds.kind import BenchmarkFailed, Failure, ToolOutput

VERDICTS = {0: "PASS", 3: "FAIL", 4: "INVALID"}


def result(output: ToolOutput, kind: str) -> dict[str, Any]:
    """The result.

    Raises BenchmarkFailed without one, and for INVALID: then nothing was measured.
    """
    if output.exit_code not in VERDICTS:
        parsing.ended_well(output, f"scaletest {kind}")
    report = parsing.json_object(output.stdout, f"scaletest {kind}")
    verdict = parsing.at(report, "verdict", "kind")
    if report.get("kind") != kind or verdict not in VERDICTS.values():
        raise parsing.bad(f"this is not a result of scaletest {kind}", list(map(str, report)))
    if verdict != VERDICTS[output.exit_code]:
        raise parsing.bad(
            f"the verdict of scaletest {kind} is {verdict}, but its exit code {output.exit_code}"
        )
    if verdict == "INVALID":
        reason = str(parsing.at(report, "verdict", "reason") or "")
        remedy = str(parsing.at(report, "verdict", "remedy") or "")
        raise BenchmarkFailed(Failure.INVALID, f"the {kind} is INVALID: {reason}", remedy=remedy)
    return report


def notes(report: dict[str, Any]) -> tuple[str, ...]:
    """The verdict as a note, unless it is PASS: the measurement is valid all the same."""
    verdict = report["verdict"]
    if verdict["kind"] == "PASS":
        return ()
    return (f"{verdict['kind']}: {verdict.get('reason', '')}",)
