"""The progress of a long command on standard error.

It is live rows on a terminal, a line a step elsewhere, or events for programs.
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
from scaletest.render.bars import draw_meter
from scaletest.render.numbers import format_percent
from scaletest.render.text import one_line
from scaletest.runs.folder import RunFolder
from scaletest.runs.progress import Progress, time_left

AUTO, JSON, NONE = "auto", "json", "none"
GAP = "  "
# Characters of a bar: where there is less room than the first, there is none.
LEAST_BAR = 8
WIDEST_BAR = 30
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
    begun: Callable[[RunFolder], str] | None = None,
) -> Iterator[Progress]:
    """Show the progress of the runs of a command in that form until the command has ended.

    steps: whether steps leave lines; without, only a terminal shows anything.
    begun: see Progress.
    """
    console = Console(stderr=True, highlight=False)
    if form == AUTO and console.is_terminal and not console.is_dumb_terminal:
        lasting = (ProgressChange.STEP_MEASURED, ProgressChange.MESSAGE) if steps else ()

        def add_lasting_line(change: ProgressChange, state: RunProgress, message: str) -> None:
            if message and change in lasting:
                live.add_line(message)

        progress = Progress(add_lasting_line, begun=begun)
        with LiveRows(lambda width: list(progress_rows(progress.state(), width)), console) as live:
            yield progress
        return
    word_event = json_line if form == JSON else plain_line
    printer = EventPrinter(word_event if steps and form != NONE else None)
    yield Progress(printer, begun=begun)


class EventPrinter:
    """Prints a line for each event, until nobody reads standard error any more."""

    def __init__(
        self, word_event: Callable[[ProgressChange, RunProgress, str], str] | None
    ) -> None:
        """Set how an event is worded, "" where it leaves no line. None prints nothing at all."""
        self._word_event = word_event

    def __call__(self, change: ProgressChange, state: RunProgress, message: str) -> None:
        """Print the line of an event."""
        try:
            if self._word_event is not None and (line := self._word_event(change, state, message)):
                echo(line, err=True)
        except OSError:
            # a reader who went away must not end the run that is measured
            self._word_event = None


def plain_line(change: ProgressChange, state: RunProgress, message: str) -> str:
    """Describe an event for a log; "" where it says nothing new."""
    if change is ProgressChange.START:
        run = f"run {state.run}: " if state.run else ""
        return one_line(f"{run}{state.run_type} of {state.title}")
    if change is ProgressChange.STEP_MEASURED:
        # the state is that of the next step, the line about the one before
        state = replace(state, done=max(0, state.done - 1))
    elif change is not ProgressChange.STATE:
        return one_line(message)
    place = ": ".join(filter(None, (state.place, message)))
    return one_line(", ".join(filter(None, (place, time_left(state)))))


def json_line(change: ProgressChange, state: RunProgress, message: str) -> str:
    """Write an event for programs, without a character that a terminal would obey."""
    event = ProgressEvent(change, state, cut_text(one_line(message), LONGEST_LINE))
    return json.dumps(event.to_dict())


def progress_rows(state: RunProgress, width: int) -> Iterator[str]:
    """Yield where a run is, with bar, time left and verdict so far; then what happens now."""
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
        texts.insert(min(len(place), len(texts) - 1), draw_meter(part, min(room, WIDEST_BAR)))
    yield GAP.join(texts)
    yield state.line or "starting"
