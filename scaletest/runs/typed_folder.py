"""The folder of a run of one type, whose plan and lines are read as what they mean."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from scaletest.model.errors import InvalidValue, UsageError
from scaletest.runs.folder import PLAN, STEPS, AnyPlan, RunFolder

PlanT = TypeVar("PlanT", bound=AnyPlan)


class TypedFolder(RunFolder, Generic[PlanT]):
    """The folder of a run of one type."""

    run_type: ClassVar[str]  # its name
    plan_type: type[PlanT]
    readers: ClassVar[Mapping[str, Callable[[str], Any]]]  # of a line, by the file that has it
    expected: ClassVar[str] = "run"  # what is missing, when there is no run here
    remedy: ClassVar[str] = "see: scaletest runs list"  # where there is one

    def plan(self) -> PlanT:
        """Read the plan; UsageError when there is no run, or one of another type."""
        if not self.exists:
            raise UsageError(f"{self.path} holds no {self.expected}", hint=self.remedy)
        if self.kind != self.run_type:
            raise UsageError(
                f"run {self.name} is no {self.run_type}: it is a {self.kind} run",
                hint=f"see: scaletest report {self.name}",
            )
        return self.plan_type.from_dict(self.read(PLAN))

    def rows(self, name: str) -> Iterator[Any]:
        """Yield what the whole lines of a file say, each read when it is asked for."""
        yield from map(self.readers[name], self.lines(name))

    def steps(self) -> list[Any]:
        """Read the steps that are complete; InvalidValue when one is listed twice."""
        steps = list(self.rows(STEPS))
        if len({step.key for step in steps}) < len(steps):
            raise InvalidValue(f"{STEPS} of run {self.name} holds a step twice")
        return steps
