"""The progress of a run that is being measured, as its command tells it to its viewers."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta

from scaletest.model.declared import VERSIONED, Count, flat
from scaletest.model.document import Document

# Lines of its log that are kept, the newest ones.
MOST_LINES = 50
# Characters of a line.
LONGEST_LINE = 300
STEP, BENCHMARK, WORKLOAD = "step", "benchmark", "workload"

Name = Annotated[str, Meta(max_length=255)]
Line = Annotated[str, Meta(max_length=LONGEST_LINE)]
Elapsed = Annotated[float, Meta(ge=0, le=1e9)]


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The seconds until the end of a run, as far as they can be told."""

    least_s: float
    most_s: float


def expect_alike(lengths_s: Sequence[float], count: int) -> TimeLeft | None:
    """Return the time of so many further parts of a run; None before the first has ended.

    lengths_s: of those before. Few show less of how they differ.
    """
    if not lengths_s:
        return None
    doubt = 1.0 + 1.0 / (1.0 + len(lengths_s))
    return TimeLeft(count * min(lengths_s) / doubt, count * max(lengths_s) * doubt)


@dataclass(frozen=True, slots=True)
class RunProgress(Document):
    """How far a run is, as it is shown, and kept in progress.json while it is measured."""

    document_name: ClassVar[str] = "the progress of a run"
    constants = VERSIONED

    run: Annotated[Name, "the name of its folder; empty where nothing is stored"]
    run_type: Annotated[str, Meta(max_length=40)]
    title: Annotated[Line, "what is measured"]
    elapsed_s: Elapsed = 0.0
    done: Annotated[Count, "how many steps are complete"] = 0
    steps: Annotated[Count, "how many there are; 0 where nobody knows"] = 0
    unit: Annotated[str, Meta(max_length=40), "what a step is called"] = STEP
    phase: Line = ""  # what is done now
    line: Line = ""  # the figures of the phase
    left_least_s: Annotated[
        Elapsed | None, "seconds until the end, at least; null where nobody knows"
    ] = None
    left_most_s: Annotated[Elapsed | None, "the same, at most"] = None
    log: Annotated[tuple[Line, ...], Meta(max_length=MOST_LINES)] = ()  # the newest last
    ended: bool = False  # whether the command has ended it, in order or not
    verdict: Annotated[
        str,
        Meta(max_length=10),
        "PASS, FAIL, or RUNNING while that is not clear; INVALID at the end only; empty where"
        " nothing is judged while it is measured",
    ] = ""

    @property
    def place(self) -> str:
        """Where in its plan the run is, in words; "" where that is unknown."""
        if not self.steps:
            return f"{self.unit} {self.done + 1}" if self.done or self.phase else ""
        if self.unit == WORKLOAD or self.done >= self.steps:
            return f"{self.done} of {self.steps} {self.unit}s"
        return f"{self.unit} {self.done + 1} of {self.steps}"

    @property
    def part(self) -> float | None:
        """The part of the run that is over, from 0 to 1; None where nobody knows."""
        if self.ended:
            return 1.0
        if self.left_most_s is not None:
            # by the later end, so that it never goes back
            return self.elapsed_s / ((self.elapsed_s + self.left_most_s) or 1.0)
        return min(1.0, self.done / self.steps) if self.steps else None


class ProgressChange(StrEnum):
    """The kinds of events of a run that its command shows."""

    START = "start"
    STEP_BEGUN = "step_begun"
    STEP_MEASURED = "step_measured"
    STATE = "state"
    MESSAGE = "message"
    END = "end"


@dataclass(frozen=True, slots=True)
class ProgressEvent(Document):
    """A line of --progress json."""

    document_name: ClassVar[str] = "an event of a run"
    constants = VERSIONED

    event: Annotated[
        ProgressChange,
        "state: how far the run is, where nothing else was told for 10 seconds; message: something"
        " to know, as a warning",
    ]
    progress: Annotated[
        RunProgress,
        flat(
            *("run", "run_type", "title", "elapsed_s", "done", "steps", "unit"),
            *("left_least_s", "left_most_s", "verdict"),
        ),
    ]
    message: Annotated[Line, "for people"] = ""
