"""Progress of a run, of any type: its command shows it, and keeps it where others look."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock

from scaletest.model.checks import cut_text
from scaletest.model.errors import ScaletestError
from scaletest.model.run_progress import (
    LONGEST_LINE,
    MOST_LINES,
    STEP,
    WORKLOAD,
    ProgressChange,
    RunProgress,
    TimeLeft,
)
from scaletest.model.verdict import VerdictKind
from scaletest.model.wording import as_options
from scaletest.processes.periodic import Periodic
from scaletest.render.numbers import duration_range
from scaletest.render.text import clean_text
from scaletest.runs.folder import PROGRESS, RunFolder

logger = logging.getLogger("scaletest.runs")

# The page of a run (--ui) is served at most so long after the end of its run.
LONGEST_PAGE_S = 20.0
# The header with which the command asks for that page itself: browsers do not send it.
FROM_COMMAND = "X-Command"

# Shows an event of a run, with the state at that time and a line for people, which may be foreign
# text and may be empty. It returns at once.
ShowEvent = Callable[[ProgressChange, RunProgress, str], None]


class Progress:
    """Takes note of what a run does. Every call returns at once, from any thread."""

    def __init__(
        self,
        show: ShowEvent,
        clock: Callable[[], float] = time.monotonic,
        *,
        begun: Callable[[RunFolder], str] | None = None,
        every_s: float = 10.0,
    ) -> None:
        """Begin without a run.

        begun: called with the folder of each run that begins; gives a line to show, "" for none.
        every_s: how often the state is shown when nothing else is.
        """
        self._show_event = show
        self._begun = begun
        self._every_s = every_s
        self._lock = Lock()
        self._state = RunProgress("", "", "")
        self._measured_line = ""  # of a step that is not shown yet
        self._begun_step = 0  # the last step whose begin was shown, from 1
        self._folder: RunFolder | None = None
        self._keeper: ProgressKeeper | None = None
        # times of this clock: when the run began, when something was shown last
        self._clock = clock
        self._began_s = self._shown_s = clock()
        self._expected_end: ExpectedEnd | None = None

    @contextmanager
    def of_run(self, folder: RunFolder, title: str) -> Iterator[None]:
        """Show the progress of this run, and keep it in its folder, until it ends.

        title: what is measured.
        """
        self._folder = folder
        self._begin(folder.kind, title, folder.name)
        self._keeper = ProgressKeeper(folder, self.state)
        try:
            self._show(ProgressChange.START)
            if self._begun is not None and (line := self._begun(folder)):
                self._show(ProgressChange.MESSAGE, line)
            yield
        except Exception as error:
            # whoever looks from elsewhere does not see the command's error
            self._log(as_options(f"ended early: {error}"))
            raise
        finally:
            self._judge(is_final=True)
            self._end()

    @contextmanager
    def of_work(self, kind: str, title: str) -> Iterator[None]:
        """Show the progress of work that is stored nowhere, until it ends."""
        self._begin(kind, title)
        try:
            self._show(ProgressChange.START)
            yield
        finally:
            self._end()

    def at(
        self,
        done: int,
        steps: int,
        *,
        left: TimeLeft | None = None,
        unit: str = STEP,
    ) -> None:
        """Take note of where in its plan the run is; see RunProgress. left: from now on."""
        if left is not None:
            self._expected_end = narrow_end(self._expected_end, left, self._clock())
        self._change(done=done, steps=steps, unit=unit)
        self._show_measured()
        if unit != WORKLOAD and self._begun_step <= done and (done < steps or not steps):
            self._begun_step = done + 1
            self._show(ProgressChange.STEP_BEGUN)

    def step_ended(self) -> None:
        """Take over the verdict so far, since a step is on disk."""
        if self._keeper is not None:
            self._judge()

    def state(self) -> RunProgress:
        """Return how far the run is now, with the seconds since it began and until its end."""
        now_s = self._clock()
        state = replace(self._state, elapsed_s=max(0.0, round(now_s - self._began_s)))
        if self._expected_end is None or state.ended:
            return state
        # one that is over has moved: nobody knows by how much
        earliest_s = max(now_s, self._expected_end.earliest_s)
        latest_s = max(earliest_s, self._expected_end.latest_s)
        return replace(
            state, left_least_s=round(earliest_s - now_s), left_most_s=round(latest_s - now_s)
        )

    def phase(self, line: str) -> None:
        """Take note that a step entered a phase."""
        self._change(phase=_cut_line(line))
        self.note(line)

    def note(self, line: str) -> None:
        """Take note of what happens now. A log shows it after ten seconds without a line."""
        self._change(line=_cut_line(line))
        if self._clock() - self._shown_s >= self._every_s:
            self._show(ProgressChange.STATE, line)

    def step(self, line: str) -> None:
        """Show that a step is measured, with the time left after it, and keep the line."""
        self._show_measured()
        self._log(line)
        done = self._state.done + 1
        if self._state.steps:
            done = min(done, self._state.steps)
        self._change(done=done)
        self._measured_line = line

    def message(self, line: str) -> None:
        """Show a message, and keep it in the log."""
        self._show_measured()
        self._log(line)
        self._show(ProgressChange.MESSAGE, line)

    def warn(self, lines: Iterable[str]) -> None:
        """Show and keep warnings about the run."""
        for line in lines:
            self.message(as_options(f"warning: {line}"))

    def _judge(self, *, is_final: bool = False) -> None:
        """Take over the verdict that is stored with the run."""
        assert self._folder is not None  # a run has begun
        kind = self._folder.stored_verdict
        # before the end, an INVALID says only that more must be measured
        if kind == VerdictKind.INVALID and not is_final:
            kind = str(VerdictKind.RUNNING)
        self._change(verdict=cut_text(kind, limit=10))

    def _begin(self, kind: str, title: str, run: str = "") -> None:
        """Forget the run before, if there was one."""
        self._began_s = self._clock()
        self._begun_step = 0
        self._expected_end = None
        self._state = RunProgress(cut_text(run, limit=255), kind, _cut_line(title))

    def _end(self) -> None:
        """Show that the run has ended, and store its final state."""
        self._show_measured()
        self._change(ended=True, phase="", line="")
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None
        self._show(ProgressChange.END)

    def _show_measured(self) -> None:
        """Show the step that was measured last, unless it was shown."""
        # taken first: whoever is shown it may raise, and it is shown once
        line, self._measured_line = self._measured_line, ""
        if line:
            self._show(ProgressChange.STEP_MEASURED, line)

    def _show(self, change: ProgressChange, message: str = "") -> None:
        self._shown_s = self._clock()
        self._show_event(change, self.state(), message)

    def _log(self, line: str) -> None:
        with self._lock:
            log = (*self._state.log, _cut_line(line))[-MOST_LINES:]
            self._state = replace(self._state, log=log)

    def _change(self, **fields: object) -> None:
        with self._lock:
            self._state = replace(self._state, **fields)  # type: ignore[arg-type]


def _cut_line(text: str) -> str:
    return cut_text(clean_text(text).replace("\n", " "), LONGEST_LINE)


@dataclass(frozen=True, slots=True)
class ExpectedEnd:
    """The times of a clock between which a run is expected to end."""

    earliest_s: float
    latest_s: float


def narrow_end(before: ExpectedEnd | None, left: TimeLeft, now_s: float) -> ExpectedEnd:
    """Return when a run ends, by what was expected before and by a new estimate.

    What was expected is only narrowed, so that nobody is told that the end has moved away, unless
    the estimate leaves it altogether: then it was wrong.
    """
    end = ExpectedEnd(now_s + left.least_s, now_s + left.most_s)
    if before is None or end.earliest_s > before.latest_s or end.latest_s < before.earliest_s:
        return end
    return ExpectedEnd(max(before.earliest_s, end.earliest_s), min(before.latest_s, end.latest_s))


def time_left(state: RunProgress) -> str:
    """Write the time left in words, a range where it is one; "" where nobody knows it."""
    least_s, most_s = state.left_least_s, state.left_most_s
    if least_s is None or most_s is None:
        return ""
    if most_s < 1:
        return "nearly done"
    return f"{duration_range(least_s, most_s)} left"


class ProgressKeeper:
    """Keeps the state of a run in its folder, where others find it, until closed.

    A thread writes once a second, so that whoever measures never waits. What cannot be written is
    left out: progress is no part of a run, and nothing of a run rests on it.
    """

    def __init__(self, folder: RunFolder, state: Callable[[], RunProgress]) -> None:
        """Begin to write. state: gives the state, from any thread."""
        self._folder = folder
        self._state = state
        self._keep()
        self._thread = Periodic("progress", self._keep, 1.0)
        self._thread.start()

    def close(self) -> None:
        """Stop writing, after the last state."""
        self._thread.close()
        self._keep()

    def _keep(self) -> None:
        state = self._state()
        try:
            self._folder.replace(PROGRESS, [state.to_json()], durable=False)
        except (ScaletestError, OSError) as error:
            logger.debug("the progress of run %s is not written: %s", state.run, error)
