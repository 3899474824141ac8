"""What a long command shows of its progress: rows of a terminal, lines of a log, and events."""

import errno
import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from scaletest.cli import progress_views
from scaletest.cli.live_rows import LiveRows
from scaletest.cli.progress_views import EventPrinter, json_line, plain_line, progress_rows
from scaletest.model.checks import escape_unprintable
from scaletest.model.run_progress import (
    BENCHMARK,
    LONGEST_LINE,
    ProgressChange,
    RunProgress,
    TimeLeft,
)
from scaletest.runs.folder import RESULT, RunFolder
from scaletest.runs.progress import Progress
from tests.unit.golden_files import golden
from tests.unit.told import telling
from tests.unit.valid import checked

STATE = RunProgress(
    "2026-01-01-a",
    "validation",
    "sleep 0.5",
    elapsed_s=20.0,
    done=2,
    steps=8,
    left_least_s=20.0,
    left_most_s=30.0,
    verdict="FAIL",
    line="4 workers: measuring, 7 done",
)


def left(least_s: float | None, most_s: float | None) -> dict[str, float | None]:
    """The fields of the time left."""
    return {"left_least_s": least_s, "left_most_s": most_s}


EVIL = "\x1b]0;PWNED\x07\x1b[2J\x9b31m\u202e\rWORD\nnext"
STEP = ProgressChange.STEP_MEASURED


@pytest.mark.parametrize(
    ("width", "first"),
    [
        (100, f"step 3 of 8  {'█' * 12}{'░' * 18}  40%  20 to 30 s left  so far FAIL"),
        (56, "step 3 of 8  ███▎░░░░  40%  20 to 30 s left  so far FAIL"),
        (46, "step 3 of 8  40%  20 to 30 s left  so far FAIL"),
        (33, "step 3 of 8  40%  20 to 30 s left"),
        (32, "step 3 of 8  20 to 30 s left"),
        (10, "20 to 30 s left"),
    ],
)
def test_a_narrow_terminal_keeps_the_time_left(width: int, first: str) -> None:
    assert list(progress_rows(STATE, width)) == [first, STATE.line]


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        (
            {**left(None, None), "verdict": ""},
            f"{'███████▌' + '░' * 22}  25%  20 s passed",
        ),
        (
            {**left(0.0, 0.0), "verdict": "PASS"},
            f"{'█' * 30}  100%  nearly done  so far PASS",
        ),
        ({**left(190.0, 200.0), "verdict": "RUNNING"}, None),
    ],
)
def test_what_is_known_is_shown(fields: dict[str, Any], first: str | None) -> None:
    (row, _) = progress_rows(replace(STATE, **fields), 100)
    if first is None:
        assert row.endswith("about 3 min 20 s left  no verdict yet")
    else:
        assert row == f"step 3 of 8  {first}"


def test_a_run_that_has_not_begun_has_no_bar() -> None:
    assert list(progress_rows(RunProgress("", "", ""), 80)) == ["0 s passed", "starting"]


@given(
    st.integers(39, 200),
    st.builds(
        RunProgress,
        st.just("r"),
        st.just("validation"),
        st.just("t"),
        elapsed_s=st.floats(0, 1e5),
        done=st.integers(0, 500),
        steps=st.integers(0, 500),
        unit=st.sampled_from(["step", BENCHMARK]),
        left_least_s=st.floats(0, 1e5),
        left_most_s=st.none() | st.floats(0, 1e5),
        verdict=st.sampled_from(["", "PASS", "FAIL", "INVALID", "RUNNING"]),
    ),
)
def test_the_first_row_fits_from_forty_columns_on(width: int, state: RunProgress) -> None:
    assert len(next(progress_rows(state, width))) <= width


def run_of(progress: Progress, folder: RunFolder, now: list[float]) -> None:
    """A run of two steps, after a warning, that passes."""
    progress.warn(["the machine is busy"])
    with folder.locked(), progress.of_run(folder, "sleep 0.5"):
        for number, workers in enumerate((1, 2)):
            progress.at(number, 2, left=TimeLeft(20.0 - now[0], 25.0 - now[0]))
            progress.phase(f"{workers} in flight: measuring")
            now[0] += 11.0
            progress.note(f"{workers} in flight: measuring, 20 done")
            now[0] += 1.0
            progress.step(f"{workers} in flight: {workers}.0 requests/s")
            progress.step_ended()
        folder.write(RESULT, {"verdict": {"kind": "PASS", "reason": "it does"}})


@pytest.fixture
def folder(tmp_path: Any) -> RunFolder:
    folder = RunFolder.create(tmp_path / "2026-01-01-a")
    folder.write("plan.json", {"kind": "validation"})
    return folder


def test_a_log_has_a_line_a_step(folder: RunFolder) -> None:
    lines: list[str] = []
    now = [0.0]
    run_of(telling(lines, clock=lambda: now[0]), folder, now)
    golden("progress-plain.txt", "\n".join((*lines, "")))


def test_events_fit_their_schema_and_tell_the_whole_run(folder: RunFolder) -> None:
    lines: list[str] = []
    now = [0.0]

    def show(change: ProgressChange, state: RunProgress, message: str) -> None:
        lines.append(json_line(change, state, message))

    run_of(Progress(show, lambda: now[0]), folder, now)
    events = [checked(json.loads(line), "progress-event") for line in lines]
    assert [(event["event"], event["done"], event["verdict"]) for event in events] == [
        ("message", 0, ""),
        ("start", 0, ""),
        ("step_begun", 0, ""),
        ("state", 0, ""),
        ("step_measured", 1, ""),
        ("step_begun", 1, ""),
        ("state", 1, ""),
        ("step_measured", 2, "PASS"),
        ("end", 2, "PASS"),
    ]
    assert (events[2]["left_least_s"], events[3]["left_most_s"]) == (20, 14)
    assert events[-1]["elapsed_s"] == 24


def test_a_verdict_that_is_not_clear_yet_is_running(folder: RunFolder) -> None:
    progress = telling([])
    with progress.of_run(folder, "t"):
        verdicts = []
        for kind in ("INVALID", "FAIL", "PASS"):
            folder.write(RESULT, {"verdict": {"kind": kind}})
            progress.step_ended()
            verdicts.append(progress.state().verdict)
        folder.write(RESULT, {"verdict": {"kind": "INVALID"}})
    assert (verdicts, progress.state().verdict) == (["RUNNING", "FAIL", "PASS"], "INVALID")


@pytest.mark.parametrize("change", ProgressChange)
def test_foreign_text_is_one_harmless_line(change: ProgressChange) -> None:
    state = replace(STATE, title=EVIL, run=EVIL)
    for line in (plain_line(change, state, EVIL), json_line(change, state, EVIL)):
        assert escape_unprintable(line) == line
    assert len(json.loads(json_line(change, STATE, "x" * 1000))["message"]) <= LONGEST_LINE


@pytest.fixture(autouse=True)
def _capable_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tests are started in."""
    monkeypatch.setenv("TERM", "xterm")


def terminal(width: int) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, force_terminal=True, width=width, legacy_windows=False), out


def test_foreign_text_in_live_rows_is_harmless_and_cut_to_the_width() -> None:
    console, out = terminal(40)
    with LiveRows(lambda width: ["漢" * 50 + EVIL, EVIL], console) as live:
        live.add_line(EVIL)
        live._live.refresh()
    text = out.getvalue()
    assert "PWNED\x07" not in text and "\x1b[2J" not in text and "\u202e" not in text
    drawn = [line for line in text.splitlines() if "漢" in line]
    assert drawn and all(cell_len(line.rpartition("\x1b[2K")[2]) <= 40 for line in drawn)


def test_a_terminal_without_such_letters_gets_others() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    console = Console(file=stream, force_terminal=True, width=60, legacy_windows=False)
    with LiveRows(lambda width: ["████░░ ±"], console) as live:
        live._live.refresh()
    stream.flush()
    assert b"??" in raw.getvalue()


def test_the_cursor_comes_back_after_an_error() -> None:
    console, out = terminal(60)
    with pytest.raises(KeyboardInterrupt), LiveRows(lambda width: ["row"], console):
        raise KeyboardInterrupt
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")


def test_a_reader_that_goes_away_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def gone(line: str, err: bool) -> None:
        asked.append(line)
        raise BrokenPipeError

    monkeypatch.setattr(progress_views, "echo", gone)
    show = EventPrinter(plain_line)
    for _ in range(3):
        show(STEP, STATE, "measured")
    assert asked == ["step 2 of 8: measured, 20 to 30 s left"]


def test_a_terminal_that_goes_away_ends_no_run() -> None:
    class Closed(io.StringIO):
        """A terminal that is gone once `is_gone`."""

        is_gone, refused = False, 0

        def write(self, text: str) -> int:
            if self.is_gone:
                self.refused += 1
                raise OSError(errno.EIO, "Input/output error")
            return super().write(text)

    out = Closed()
    console = Console(file=out, force_terminal=True, width=60, legacy_windows=False)
    with LiveRows(lambda width: ["row"], console, per_s=1) as live:
        out.is_gone = True
        live.add_line("step 1")
        live.add_line("step 2")
    assert out.refused >= 3


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({}, ["run r: validation of t"]),
        ({"form": "plain"}, ["run r: validation of t"]),
        ({"form": "none"}, []),
        ({"steps": False}, []),
    ],
)
def test_without_a_terminal(
    options: dict[str, Any],
    lines: list[str],
    tmp_path: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = RunFolder.create(tmp_path / "r")
    folder.write("plan.json", {"kind": "validation"})
    shown: Callable[..., Any] = progress_views.show_progress
    with shown(**options) as progress, progress.of_run(folder, "t"):
        pass
    assert capsys.readouterr().err.splitlines() == lines
