"""The interface by which the rest of the product uses a run type."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, cast

from scaletest.model.verdict import Verdict, while_running
from scaletest.runs.folder import AnyPlan, RunFolder, TypedFolder
from scaletest.stats.comparison import Contrast
from scaletest.stats.measure import Measure


class JudgedRun(Protocol):
    """What every run has that is judged anew, whatever its type."""

    @property
    def folder(self) -> str:
        """The path of its folder."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""

    def while_running(self) -> Self:
        """Return a copy without a verdict, since more is still coming."""


@dataclass(frozen=True, slots=True)
class ResultOfRun:
    """A stored run with the result of judging it anew."""

    name: str  # by which commands find the run
    folder: str  # its path
    result: Any  # all that the judge found, the verdict among it
    environment: dict[str, Any] = field(default_factory=dict)  # whatever environment.json holds

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        return cast(Verdict, self.result.verdict)

    def while_running(self) -> Self:
        """Return a copy without a verdict, since more is still coming."""
        return replace(self, result=replace(self.result, verdict=while_running(self.verdict)))


def numbers_at(rows: object, *path: str) -> list[float]:
    """Return the finite numbers at that path of nested objects in a list that may hold anything."""
    numbers = []
    for row in rows if isinstance(rows, list) else ():
        number = row
        for name in path:
            number = number.get(name) if isinstance(number, dict) else None
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if is_number and abs(number) <= sys.float_info.max:
            numbers.append(float(number))
    return numbers


class RunType(ABC):
    """One run type: its files, its plan, its judge and its measures."""

    folder: type[TypedFolder[Any]]
    curve_title: str  # of the measure that `curve` gives
    curve_path: tuple[str, ...]  # the place of that measure in a step of result.json

    @property
    def name(self) -> str:
        """The name of the type, as in plan.json."""
        return self.folder.run_type

    def plan(self, document: dict[str, Any]) -> AnyPlan:
        """Read and check a plan; InvalidValue names the field."""
        return cast(AnyPlan, self.folder.plan_type.from_dict(document))

    def is_local(self, plan: Any) -> bool:
        """Return whether a plan is that of a validation of local workers."""
        return False

    def curve(self, folder: RunFolder, result: Mapping[str, Any]) -> list[float]:
        """Return the main measure of a run, step by step, for lists.

        It is read in bounded time from result.json; empty where that has nothing of it.
        """
        return numbers_at(result.get("steps"), *self.curve_path)

    def ideal_curve(self, result: Mapping[str, Any], curve: Sequence[float]) -> list[float]:
        """Return `curve` as it would be if it grew with the workers; empty without workers."""
        levels = numbers_at(result.get("steps"), "workers")
        if len(levels) != len(curve) or not all(levels):
            return []
        return [curve[0] / levels[0] * level for level in levels]

    @abstractmethod
    def judge(self, folder: RunFolder) -> JudgedRun:
        """Judge the run in a folder: the same folder gives the same verdict anywhere.

        UsageError when it cannot be read.
        """

    @abstractmethod
    def measures(self, judged: Any) -> Sequence[Measure]:
        """Return the numbers of a run that `judge` gave."""

    def cause(self, judged: Any) -> str:
        """Return what limits a run that `judge` gave, in a few words; "" where it does not say."""
        return ""

    @abstractmethod
    def contrast(self, base: Any, candidate: Any) -> Contrast:
        """Return how far the plans and the progress of two judged runs differ."""
