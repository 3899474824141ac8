"""How far a run is that is being measured, as its command tells it to whoever looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from scaletest.model.declared import VERSIONED, Count, Document

# Lines of its log that are kept, the newest ones, and their length.
MOST_LINES, LONGEST_LINE = 50, 300
STEP, BENCHMARK, WORKLOAD = "step", "benchmark", "workload"

Name = Annotated[str, Meta(max_length=255)]
Line = Annotated[str, Meta(max_length=LONGEST_LINE)]
Elapsed = Annotated[float, Meta(ge=0, le=1e9)]


@dataclass(frozen=True, slots=True)
class RunProgress(Document):
    """The state of a run.

    run: the name of its folder. title: what is measured. done: how many of its `steps` are
    complete; 0 steps where their number is unknown, and is_estimate where it may still change.
    unit: what a step is called. phase: what is done now; line: its figures. left_s: seconds until
    its end, None where nobody knows. log: what happened, the newest last. ended: whether the
    command has ended it, in order or not.
    """

    document_name: ClassVar[str] = "the progress of a run"
    constants = VERSIONED

    run: Name
    run_type: Annotated[str, Meta(max_length=40)]
    title: Line
    elapsed_s: Elapsed = 0.0
    done: Count = 0
    steps: Count = 0
    is_estimate: bool = False
    unit: Annotated[str, Meta(max_length=40)] = STEP
    phase: Line = ""
    line: Line = ""
    left_s: Elapsed | None = None
    log: Annotated[tuple[Line, ...], Meta(max_length=MOST_LINES)] = ()
    ended: bool = False

    @property
    def place(self) -> str:
        """Where in its plan the run is, in words; "" where that is unknown."""
        if not self.steps:
            return ""
        steps = f"{'about ' if self.is_estimate else ''}{self.steps}"
        if self._is_exceeded:
            return f"{self.unit} {self.done + 1}"
        if self.unit == WORKLOAD or self.done >= self.steps:
            return f"{self.done} of {steps} {self.unit}s"
        return f"{self.unit} {self.done + 1} of {steps}"

    @property
    def part(self) -> float | None:
        """The part of the run that is over, from 0 to 1; None where nobody knows."""
        if self.ended:
            return 1.0
        if self.left_s is not None:
            return self.elapsed_s / ((self.elapsed_s + self.left_s) or 1.0)
        if not self.steps or self._is_exceeded:
            return None
        return min(1.0, self.done / self.steps)

    @property
    def _is_exceeded(self) -> bool:
        """Whether it goes on after as many steps as were expected."""
        return self.is_estimate and self.done >= self.steps and not self.ended
