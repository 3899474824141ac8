"""What a long command shows of its progress, on standard error: live rows on a terminal, a line a
step elsewhere, or events for programs.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console

from scaletest.cli.live_rows import LiveRows
from scaletest.cli.output import echo
from scaletest.model.checks import cut_text
from scaletest.model.run_progress import (
    LONGEST_LINE,
    ProgressChange,
    ProgressEvent,
    RunProgress,
)
from scaletest.model.verdict import VerdictKind
from scaletest.render.bars import meter
from scaletest.render.numbers import format_percent
from scaletest.render.text import one_line
from scaletest.runs.folder import RunFolder
from scaletest.runs.progress import Progress, say_nothing, time_left

AUTO, PLAIN, JSON, NONE = "auto", "plain", "json", "none"
GAP = "  "
# Characters of a bar: where there is less room than the first, there is none.
LEAST_BAR, WIDEST_BAR = 8, 30
SO_FAR: Mapping[str, str] = {
    VerdictKind.PASS: "so far PASS",
    VerdictKind.FAIL: "so far FAIL",
    VerdictKind.RUNNING: "no verdict yet",
}


@contextmanager
def show_progress(
    form: str = AUTO,
    *,
    steps: bool = True,
    redis_url: str = "",
    begun: Callable[[RunFolder], str] = say_nothing,
) -> Iterator[Progress]:
    """Show the progress of the runs of a command in that form until the command has ended.

    steps: whether steps leave lines, or else only a terminal shows anything.
    redis_url, begun: see Progress.
    """
    console = Console(stderr=True, highlight=False)
    if form == AUTO and console.is_terminal and not console.is_dumb_terminal:
        lasting = (ProgressChange.STEP_MEASURED, ProgressChange.MESSAGE) if steps else ()

        def let_stay(change: ProgressChange, state: RunProgress, message: str) -> None:
            if message and change in lasting:
                live.add_line(message)

        progress = Progress(let_stay, redis_url=redis_url, begun=begun)
        with LiveRows(lambda width: list(rows(progress.state(), width)), console) as live:
            yield progress
        return
    line = None
    if form != NONE and steps:
        line = json_line if form == JSON else plain_line
    yield Progress(Lines(line), redis_url=redis_url, begun=begun)


class Lines:
    """Prints a line for an event. line: of an event, "" for none; None: nothing of any event."""

    def __init__(self, line: Callable[[ProgressChange, RunProgress, str], str] | None) -> None:
        self._line = line

    def __call__(self, change: ProgressChange, state: RunProgress, message: str) -> None:
        """Print the line; once nobody reads standard error any more, nothing."""
        try:
            if self._line is not None and (line := self._line(change, state, message)):
                echo(line, err=True)
        except OSError:
            # what is measured is worth more than who looks
            self._line = None


def plain_line(change: ProgressChange, state: RunProgress, message: str) -> str:
    """Word an event for a log; "" where it says nothing new."""
    if change is ProgressChange.START:
        run = f"run {state.run}: " if state.run else ""
        return one_line(f"{run}{state.run_type} of {state.title}")
    if change not in (ProgressChange.STEP_MEASURED, ProgressChange.STATE):
        return one_line(message)
    if change is ProgressChange.STEP_MEASURED:
        # where the run was until now
        state = replace(state, done=max(0, state.done - 1))
    place = ": ".join(filter(None, (state.place, message)))
    return one_line(", ".join(filter(None, (place, time_left(state)))))


def json_line(change: ProgressChange, state: RunProgress, message: str) -> str:
    """Word an event for programs: no character is left that a terminal would obey."""
    return json.dumps(
        ProgressEvent(change, state, cut_text(one_line(message), LONGEST_LINE)).to_dict()
    )


def rows(state: RunProgress, width: int) -> Iterator[str]:
    """Say where a run is, with bar, time left and verdict so far; and what happens now."""
    part = None if state.ended else state.part
    shares = [] if part is None else [format_percent(part, 0)]
    time = [time_left(state) or f"{state.elapsed_s:.0f} s passed"]
    so_far = list(filter(None, [SO_FAR.get(state.verdict)]))
    place = list(filter(None, [state.place]))
    # in a narrow terminal the time left is worth most, and the place is next
    choices = (place + shares + time + so_far, place + shares + time, place + time, time)
    texts = next((texts for texts in choices if len(GAP.join(texts)) <= width), choices[-1])
    room = width - len(GAP.join(texts)) - len(GAP)
    if part is not None and room >= LEAST_BAR:
        texts.insert(min(len(place), len(texts) - 1), meter(part, min(room, WIDEST_BAR)))
    yield GAP.join(texts)
    yield state.line or "starting"
