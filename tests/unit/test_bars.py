"""The bars that are programs: they are there, and what they print decides."""

from __future__ import annotations

import importlib.util
import subprocess
from typing import Any

import pytest

from hack.benchmarks import laws
from hack.kubernetes import bars


def test_every_program_of_the_bars_exists() -> None:
    for name in bars.PROGRAMS:
        assert importlib.util.find_spec(bars.module_and_arguments(name)[0]) is not None
    assert not set(bars.PROGRAMS) & set(bars.BARS)


@pytest.mark.parametrize(
    ("code", "lines", "passed"),
    [
        (0, '{"met": true}\n{"met": true}\n', True),
        (0, '{"met": true}\n{"met": false}\n', False),
        (0, "", False),
        (1, '{"met": true}\n', False),
        (0, "no JSON", False),
    ],
)
def test_a_bar_passes_when_its_program_and_all_its_lines_say_so(
    code: int, lines: str, passed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(line: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(line, code, lines)

    monkeypatch.setattr(subprocess, "run", start)
    assert bars.run("lifecycle-clock")["passed"] is passed


@pytest.mark.parametrize(
    ("law", "verdict", "met"),
    [
        ({"name": "capped", "ceiling_per_s": 10.4, "contention": None}, "PASS", True),
        ({"name": "capped", "ceiling_per_s": 12.0, "contention": None}, "PASS", False),
        ({"name": "capped", "ceiling_per_s": 10.4, "contention": None}, "INVALID", False),
        ({"name": "amdahl", "ceiling_per_s": None, "contention": 0.1}, "PASS", False),
        (None, "PASS", False),
    ],
)
def test_a_law_is_found_when_name_value_and_verdict_are_right(
    law: Any, verdict: str, met: bool
) -> None:
    report = {
        "law": law,
        "peak": None,
        "verdict": {"kind": verdict, "reason": ""},
        "elapsed_s": 1.0,
    }
    assert laws.judge(laws.CASES["ceiling"], report)["met"] is met
