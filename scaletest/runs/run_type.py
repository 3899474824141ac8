"""What a run type tells the rest of the product about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from scaletest.analysis.comparison import Contrast, Measure
from scaletest.model.verdict import Verdict
from scaletest.runs.folder import AnyPlan, Layout, RunFolder


class JudgedRun(Protocol):
    """A stored run, judged anew."""

    @property
    def name(self) -> str:
        """By which commands find it."""

    @property
    def folder(self) -> str:
        """Where it is."""

    @property
    def environment(self) -> Mapping[str, Any]:
        """Where and with what it was made."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""

    def while_running(self) -> Self:
        """A copy without a verdict, since more is still coming."""


class RunType(Protocol):
    """One run type. Its files, its plan, its judge and its measures; nothing else in the product
    lists types.
    """

    @property
    def name(self) -> str:
        """As plan.json names it."""

    @property
    def layout(self) -> Layout:
        """Its files."""

    def plan(self, document: dict[str, Any]) -> AnyPlan:
        """Read and check a plan; InvalidValue names the field."""

    def check(self, folder: RunFolder) -> None:
        """UsageError or InvalidValue unless the whole run can be read, in bounded memory."""

    def judge(self, folder: RunFolder) -> JudgedRun:
        """The run in a folder: the same folder gives the same verdict anywhere. UsageError when it
        cannot be read.
        """

    def measures(self, judged: Any) -> Sequence[Measure]:
        """The numbers of a run that `judge` gave."""

    def contrast(self, base: Any, candidate: Any) -> Contrast:
        """In what the plans of two such runs differ, and what one of them has not measured."""
