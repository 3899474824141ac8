"""What people see is compared with files; look at them when they change (--regenerate writes them anew)."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from scaletest.analysis.judge import judge, summarise
from scaletest.model import Outcome, Plan, Reason, Record, Reply
from scaletest.report import progress
from scaletest.report.terminal import seconds, summary
from scaletest.validation import Result
from tests.unit.test_analysis import step_of

GOLDEN = Path(__file__).parent / "golden"


def result_of(steps: dict[int, list[Record]], plan: Plan, interrupted: str = "") -> Result:
    rows = summarise(plan, steps)
    errors = (
        {"ffmpeg returned error code 1: no such file": 3} if any(not r.ok for s in steps.values() for r in s) else {}
    )
    return Result(plan, rows, judge(plan, rows, interrupted), 25.4, errors)


def failed() -> Record:
    return Record("q", 1, Reply("r", Outcome.FAILED, Reason.EXIT, worker="w0", ended_s=1.0), 0.1)


CASES = {
    "pass": result_of({n: step_of(n, 0.501, 12) for n in (1, 2, 4, 8)}, Plan(limit=8, seconds=0.5)),
    "fail": result_of(
        {1: step_of(1, 0.2, 30), 2: step_of(2, 0.2, 30, noise=0.1), 4: step_of(4, 0.4, 30, noise=0.1)},
        Plan(limit=4, command=("ffmpeg", "-i", "in.mkv", "-f", "null", "-")),
    ),
    "failures": result_of({1: [*step_of(1, 0.2, 30), failed()]}, Plan(limit=1, command=("ffmpeg",))),
    "interrupted": result_of({1: step_of(1, 0.5, 12), 2: []}, Plan(limit=2), "Ctrl-C"),
}


@pytest.mark.parametrize("name", CASES)
def test_summary_is_as_agreed(name: str) -> None:
    out = io.StringIO()
    summary(CASES[name], Console(file=out, width=80, color_system=None), "/runs/1")
    text = out.getvalue()
    path = GOLDEN / f"summary-{name}.txt"
    if os.environ.get("REGENERATE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
    assert len(text.splitlines()) < 25
    assert all(ord(c) >= 32 or c == "\n" for c in text)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (12e-6, "12 us"), (0.0123, "12.3 ms"), (1.234, "1.23 s"), (4321, "4321 s")]
)
def test_durations_are_short(value: float, text: str) -> None:
    assert seconds(value) == text


def test_plain_progress_tells_phases_and_every_ten_seconds() -> None:
    now = [0.0]
    out = io.StringIO()
    teller = progress.choose(Console(file=out), plain=False)
    assert type(teller) is progress.PlainProgress
    teller = progress.PlainProgress(Console(file=out), lambda: now[0])
    teller.phase(2, "measuring")
    for now[0] in (1.0, 9.0, 10.5, 11.0):
        teller.tick(2, now[0], 20.0, 7, 1)
    teller.step("2 workers: done")
    teller.close()
    assert out.getvalue().splitlines() == [
        "2 workers: measuring",
        "2 workers: measuring, 7 done, 1 failed, 10 s left",
        "2 workers: done",
    ]
