"""Progress of a run, of any type: one live line on a terminal, plain lines elsewhere; and its
state, for who looks from elsewhere.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

from rich.console import Console
from rich.text import Text

from scaletest.model.checks import cut
from scaletest.model.run_progress import LONGEST_LINE, MOST_LINES, STEP, RunProgress
from scaletest.render.text import clean
from scaletest.runs.folder import RunFolder
from scaletest.runs.progress_keeper import ProgressKeeper

PLAIN_EVERY_S = 10.0


TOLD_EVERY_S = 1.0


def _nothing(folder: RunFolder) -> str:
    """Nothing to say about a run that has begun."""
    return ""


def _nobody(state: RunProgress) -> None:
    """Nobody is told of a change."""


class Progress:
    """Shows what a run does, on standard error. Every call returns at once, from any thread."""

    def __init__(
        self,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        plain: bool = False,
        quiet: bool = False,
        redis_url: str = "",
        begun: Callable[[RunFolder], str] = _nothing,
        changed: Callable[[RunProgress], object] = _nobody,
    ) -> None:
        """plain: no live line, not even on a terminal. quiet: no line stays. redis_url: where the
        state of a run is published; "" for nowhere. begun: called with the folder of each run that
        begins; gives a line to show, "" for none. changed: called with the state after a change,
        in the thread of the run, for mere figures once a second; what it raises ends the run.
        """
        self._console = console or Console(stderr=True, highlight=False)
        self._clock, self._shown_s = clock, clock()
        self._quiet = quiet
        self._redis_url, self._begun, self._changed = redis_url, begun, changed
        self._changed_s = clock()
        self._lock = threading.Lock()
        self._state = RunProgress("", "", "")
        self._began_s, self._until_s = clock(), 0.0
        self._keeper: ProgressKeeper | None = None
        is_live = self._console.is_terminal and not plain
        self._live = self._console.status("starting", spinner="dots") if is_live else None
        if self._live:
            self._live.start()

    @contextmanager
    def of_run(self, folder: RunFolder, title: str) -> Iterator[None]:
        """Keep the state of this run, in its folder and in Redis, until it ends. title: what is
        measured.
        """
        self._began_s = self._clock()
        self._change(
            run=cut(folder.name, 255), run_type=folder.kind, title=_line(title), ended=False, done=0
        )
        self._keeper = ProgressKeeper(folder, self.state, self._redis_url)
        try:
            if line := self._begun(folder):
                self._print(line)
            yield
        except Exception as error:
            self._log(f"ended early: {error}")
            raise
        finally:
            self._change(ended=True, left_s=None, phase="", line="")
            self._keeper.close()
            self._keeper = None
        self._tell()

    def at(
        self,
        done: int,
        steps: int,
        *,
        left_s: float | None = None,
        is_estimate: bool = False,
        unit: str = STEP,
    ) -> None:
        """Where in its plan the run is; see RunProgress. left_s: from now on."""
        self._until_s = self._clock() + (left_s or 0.0)
        self._change(
            done=done, steps=max(done, steps), left_s=left_s, is_estimate=is_estimate, unit=unit
        )
        self._tell()

    def step_ended(self) -> None:
        """A step is on disk, and nothing is measured: time for what takes longer, as a report."""
        if self._keeper is not None:
            self._keeper.publish_report()

    def state(self) -> RunProgress:
        """The state now."""
        now, state = self._clock(), self._state
        left_s = None if state.left_s is None else max(0.0, round(self._until_s - now))
        return replace(state, elapsed_s=max(0.0, round(now - self._began_s)), left_s=left_s)

    def phase(self, line: str) -> None:
        """A step entered a phase, which a log shows too."""
        self._change(phase=_line(line), line="")
        self._tell()
        if self._live:
            self.note(line)
        else:
            self._print(line)

    def note(self, line: str) -> None:
        """What happens now: the live line. A log shows it after ten seconds without a line."""
        self._change(line=_line(line))
        if self._clock() - self._changed_s >= TOLD_EVERY_S:
            self._tell()
        if self._live:
            self._live.update(Text(clean(line)))
        elif self._clock() - self._shown_s >= PLAIN_EVERY_S:
            self._print(line)

    def step(self, line: str) -> None:
        """What stays: a step that is done, or something to know."""
        self._log(line)
        self._tell()
        if not self._quiet:
            self._print(line)

    def warn(self, lines: Iterable[str]) -> None:
        """What may be wrong with the run."""
        for line in lines:
            self.step(f"warning: {line}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Take the live line away."""
        if self._live:
            self._live.stop()

    def _print(self, line: str) -> None:
        self._shown_s = self._clock()
        self._console.print(Text(clean(line)), soft_wrap=True)

    def _tell(self) -> None:
        self._changed_s = self._clock()
        self._changed(self.state())

    def _log(self, line: str) -> None:
        with self._lock:
            log = (*self._state.log, _line(line))[-MOST_LINES:]
            self._state = replace(self._state, log=log)

    def _change(self, **fields: object) -> None:
        with self._lock:
            self._state = replace(self._state, **fields)  # type: ignore[arg-type]


def _line(text: str) -> str:
    return cut(clean(text).replace("\n", " "), LONGEST_LINE)
