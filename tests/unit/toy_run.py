"""A run type that is made for tests: one folder with its plan, judge, measures and report."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from scaletest.model import Verdict, VerdictKind
from scaletest.model.document import read_document
from scaletest.model.threshold import Measurable, MeasureTable, parse_threshold
from scaletest.model.verdict import while_running
from scaletest.render.axis import Axis
from scaletest.render.blocks import Block, Charts, Facts, Table
from scaletest.render.chart import Chart
from scaletest.render.contents import Case, Head, Report, Section, Sheet
from scaletest.runs.folder import ENVIRONMENT, PLAN, RECORDS, RESULT, RunFolder
from scaletest.runs.run_type import RunType
from scaletest.stats.comparison import Contrast
from scaletest.stats.measure import WHOLE_RUN, Measure
from scaletest.stats.repetitions import mean_estimate
from scaletest.stats.thresholds import Measured, ThresholdResult, ground_of, judge_threshold
from scaletest.stats.verdict_order import Ground, Rank, verdict_of_grounds

KIND = "toy"
MEASURES: MeasureTable = {"jump": Measurable("s"), "height": Measurable("B")}


@dataclass(frozen=True)
class ToyPlan:
    """How often the toy jumps, and what must hold."""

    jumps: int = 3
    thresholds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for text in self.thresholds:
            parse_threshold(text, MEASURES, "'jump<2s'")

    @property
    def workload(self) -> str:
        """Short text of what is measured."""
        return f"{self.jumps} jumps"

    @property
    def steps(self) -> tuple[int, ...]:
        """No step."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "schema_version": 1,
            "kind": KIND,
            "jumps": self.jumps,
            "thresholds": [*self.thresholds],
        }


@dataclass(frozen=True)
class ToyRun:
    """A judged run."""

    name: str
    folder: str
    plan: ToyPlan
    environment: Mapping[str, Any]
    seconds: Sequence[float]
    measures: Sequence[Measure]
    thresholds: Sequence[ThresholdResult]
    verdict: Verdict

    def while_running(self) -> Self:
        """A copy without a verdict."""
        return replace(self, verdict=while_running(self.verdict))


class ToyType(RunType):
    """What the product asks about toys."""

    name = KIND

    def plan(self, document: dict[str, Any]) -> ToyPlan:
        """Read and check a plan."""
        return read_document(ToyPlan, document, "the plan")

    def check(self, folder: RunFolder) -> None:
        """Read all of it."""
        self.judge(folder)

    def judge(self, folder: RunFolder) -> ToyRun:
        """The run in a folder."""
        with folder.readable():
            plan = self.plan(folder.read(PLAN))
            seconds = [json.loads(line)["s"] for line in folder.lines(RECORDS)]
            environment = folder.read(ENVIRONMENT)
        jump = Measure("jump", WHOLE_RUN, mean_estimate(seconds), "s", False, seconds, decides=True)
        thresholds = [parse_threshold(text, MEASURES, "") for text in plan.thresholds]
        results = [
            judge_threshold(threshold, [Measured(jump.estimate)]) for threshold in thresholds
        ]
        grounds = [
            ground_of(results, Rank.REFUTED),
            ground_of(results, Rank.OPEN),
            Ground(Rank.MET, "the toy jumped"),
        ]
        verdict = verdict_of_grounds(grounds)
        return ToyRun(
            folder.name, str(folder.path), plan, environment, seconds, [jump], results, verdict
        )

    curve_title = "seconds of each jump"

    def curve(self, folder: RunFolder, result: Mapping[str, Any]) -> list[float]:
        """Nothing, since a toy has no steps."""
        return []

    def ideal_curve(self, result: Mapping[str, Any], curve: Sequence[float]) -> list[float]:
        """Nothing either."""
        return []

    def measures(self, judged: ToyRun) -> Sequence[Measure]:
        """Its numbers."""
        return judged.measures

    def contrast(self, base: ToyRun, candidate: ToyRun) -> Contrast:
        """Toys differ in nothing."""
        return Contrast()


RUN_TYPE = ToyType()


def toy_report(run: ToyRun) -> Report:
    """The report of a toy."""
    rows = [[str(number), f"{seconds:g} s"] for number, seconds in enumerate(run.seconds)]
    blocks: list[Block] = [Table(["jump", "time"], rows), Facts([("jumps", str(run.plan.jumps))])]

    def sections() -> list[Section]:
        chart = Chart("jumps", "Jumps", "", Axis("jump", 0.0, 3.0), Axis("s", 0.0, 3.0))
        chart.line([(float(x), y) for x, y in enumerate(run.seconds)], "c-data")
        return [Section("Jumps", [*blocks, Charts([chart])])]

    return Report(
        Head(
            run.plan.workload,
            run.verdict,
            run.folder,
            run.name,
            thresholds=run.thresholds,
        ),
        summary=lambda: blocks,
        comment=lambda: blocks,
        sections=sections,
        sheet=lambda: Sheet(["jump", "s"], [*enumerate(run.seconds)]),
        cases=lambda: [Case("jumps", VerdictKind.PASS, "", sum(run.seconds))],
        data=lambda: {"kind": KIND, "verdict": run.verdict.to_dict(), "seconds": [*run.seconds]},
    )


def write(folder: RunFolder, seconds: Sequence[float], thresholds: tuple[str, ...] = ()) -> None:
    """A measured toy."""
    plan = ToyPlan(len(seconds), thresholds)
    folder.begin(plan, {"began": "2026-01-01T00:00:00Z"})
    folder.append(RECORDS, [json.dumps({"s": each}) for each in seconds])
    verdict = RUN_TYPE.judge(folder).verdict
    folder.write(RESULT, {"verdict": verdict.to_dict()})
