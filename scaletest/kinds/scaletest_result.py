"""Reading the JSON result of our own commands, whose verdict is a part of what was measured."""

from __future__ import annotations

from typing import Any

from scaletest.kinds import parsing
from scaletest.kinds.kind import BenchmarkFailed, Failure, ToolOutput

VERDICTS = {0: "PASS", 3: "FAIL", 4: "INVALID"}


def result(output: ToolOutput, kind: str) -> dict[str, Any]:
    """The result with its verdict. Raises Failed when there is none, or it is INVALID: then nothing was measured."""
    if output.exit_code not in VERDICTS:
        parsing.ended_well(output, f"scaletest {kind}")
    data = parsing.json_object(output.stdout, f"scaletest {kind}")
    said = parsing.at(data, "verdict", "kind")
    if data.get("kind") != kind or said not in VERDICTS.values():
        raise parsing.bad(f"this is no result of scaletest {kind}", list(map(str, data)))
    if said != VERDICTS[output.exit_code]:
        raise parsing.bad(f"scaletest {kind} says {said}, and returned {output.exit_code}")
    if said == "INVALID":
        reason, remedy = (str(parsing.at(data, "verdict", name) or "") for name in ("reason", "remedy"))
        raise BenchmarkFailed(Failure.INVALID, f"the {kind} is INVALID: {reason}", remedy=remedy)
    return data


def notes(data: dict[str, Any]) -> tuple[str, ...]:
    """The verdict where it is not PASS: it was measured, and is not what was wanted."""
    said = data["verdict"]
    return () if said["kind"] == "PASS" else (f"{said['kind']}: {said.get('reason', '')}",)
