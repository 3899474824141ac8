"""The run types. A new one is a package with a module `run_type`, and one line here.

Reports are built by a layer above, which the line names: who shows a run needs it, who judges one
does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import cast

from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue, ScaletestError, UsageError
from scaletest.model.json_schema import Schema
from scaletest.model.verdict import VerdictKind
from scaletest.render.contents import Report
from scaletest.runs.folder import ENVIRONMENT, FILES, PLAN, RESULT, RunFolder
from scaletest.runs.run_type import JudgedRun, RunType
from scaletest.stats.comparison import Comparison, Side
from scaletest.stats.comparison import compare as compare_sides

# Runs with more in their files are not judged anew for a list, since that takes half a second each.
MOST_LISTED_BYTES = 8 * 1024**2


@dataclass(frozen=True, slots=True)
class Registered:
    """Where a run type is defined; it is imported when a run of it is met.

    report: what makes the report of a judged run, as MODULE:FUNCTION. schemas: the module with the
    JSON Schemas of its documents.
    """

    module: str
    report: str
    schemas: str


TYPES: dict[str, Registered] = {
    "validation": Registered(
        "scaletest.validation.run_type",
        "scaletest.validation.report.report:validation_report",
        "scaletest.validation.schemas",
    ),
    "saturation": Registered(
        "scaletest.saturation.run_type",
        "scaletest.saturation.report.report:saturation_report",
        "scaletest.saturation.schemas",
    ),
    "benchmark": Registered(
        "scaletest.benchmarks.run_type",
        "scaletest.benchmarks.report:benchmark_report",
        "scaletest.benchmarks.documents.json_schema",
    ),
    "lifecycle": Registered(
        "scaletest.lifecycle.run_type",
        "scaletest.lifecycle.report.report:lifecycle_report",
        "scaletest.lifecycle.schemas",
    ),
}


def run_type(name: str) -> RunType:
    """The run type of that name; InvalidValue when there is none."""
    if name not in TYPES:
        raise InvalidValue(
            f"there is no run type {cut(repr(name), 40)}", hint=f"there are {', '.join(TYPES)}"
        )
    return cast(RunType, import_module(TYPES[name].module).RUN_TYPE)


def schemas(name: str) -> Mapping[str, Callable[[], Schema]]:
    """What makes the schemas of a run type's documents, by the document's name."""
    return cast(Mapping[str, Callable[[], Schema]], import_module(TYPES[name].schemas).DOCUMENTS)


def type_of(folder: RunFolder) -> RunType:
    """The run type of a stored run; InvalidValue when it is unknown."""
    return run_type(folder.kind)


def judge(folder: RunFolder, *, is_final: bool = False) -> JudgedRun:
    """A stored run of any type, judged anew; without a verdict while it is still measured.

    is_final: all of it is on disk, although somebody holds it.
    """
    # looked at first: who ends while we read has written more than we read
    running = folder.in_use and not is_final
    judged = type_of(folder).judge(folder)
    return judged.while_running() if running else judged


def report(folder: RunFolder, *, is_final: bool = False) -> Report:
    """The report of a stored run of any type, judged anew, with what the run is called. is_final:
    as in `judge`.
    """
    return report_of(folder, judge(folder, is_final=is_final))


def report_of(folder: RunFolder, judged: JudgedRun) -> Report:
    """The report of a run that is judged already."""
    module, _, function = TYPES[type_of(folder).name].report.partition(":")
    unlabelled = cast(Report, getattr(import_module(module), function)(judged))
    verdict, before = unlabelled.head.verdict, folder.stored_verdict
    if verdict.kind is not VerdictKind.RUNNING and before not in ("", str(verdict.kind)):
        # in the reason, which every format shows beside the verdict
        mark = f"judged anew: it was {cut(before, 10)} when it was measured"
        verdict = replace(verdict, reason=f"{verdict.reason} ({mark})")
    return replace(unlabelled, head=replace(unlabelled.head, labels=folder.labels, verdict=verdict))


def compare(folders: Sequence[RunFolder], tolerance: float, *, force: bool) -> Comparison:
    """The first run as the base of the others, of its type; UsageError for runs of several types.

    tolerance, force: as in the comparison of measures.
    """
    types = [type_of(folder) for folder in folders]
    for folder, own in zip(folders, types, strict=True):
        if own.name != types[0].name:
            raise UsageError(
                f"{folders[0].name} is a {types[0].name}, and {folder.name} is a {own.name}",
                hint="compare runs of one type",
            )
    judged = [own.judge(folder) for own, folder in zip(types, folders, strict=True)]
    sides = [
        Side(folder.labels.name or folder.name, run.folder, types[0].measures(run))
        for folder, run in zip(folders, judged, strict=True)
    ]
    contrasts = [types[0].contrast(judged[0], run) for run in judged[1:]]
    candidates = list(zip(sides[1:], contrasts, strict=True))
    return compare_sides(types[0].name, sides[0], candidates, tolerance, force=force)


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run as lists show it; what cannot be read is None, and `problem` says why.

    run: the name of its folder. name, note: its labels. in_use: whether a process measures it or
    goes on with it now. verdict: that it got when it was measured; as its report has it where it
    got none. curve: its main measure, step by step.
    """

    run: str
    in_use: bool
    folder: str
    name: str
    note: str
    kind: str | None = None
    began: str | None = None
    workload: str | None = None
    steps: list[int] | None = None
    verdict: str | None = None
    elapsed_s: float | None = None
    curve: list[float] = field(default_factory=list)
    problem: str = ""

    @property
    def when(self) -> str:
        """When it began, as people read it; "-" where that is not on record."""
        return cut(self.began or "-", 30).replace("T", " ").replace("+00:00", "Z")

    @property
    def judged(self) -> str:
        """Its verdict, or that there is none."""
        return cut(self.verdict or "none", 10)

    @property
    def subject(self) -> str:
        """What was measured, or why that cannot be read."""
        return cut(self.workload or f"cannot be read: {self.problem}", 200)


def listed(folder: RunFolder) -> ListedRun:
    """A stored run for lists; one that is still measured is RUNNING."""
    in_use, labels = folder.in_use, folder.labels
    # a folder's name may hold bytes that are not UTF-8, which neither pages nor JSON can
    name, path = (
        text.encode(errors="backslashreplace").decode() for text in (folder.name, str(folder.path))
    )
    run = ListedRun(name, in_use, path, labels.name, labels.note)
    running = str(VerdictKind.RUNNING) if in_use else None
    try:
        with folder.trouble("read"):
            own = type_of(folder)
            plan = own.plan(folder.read(PLAN))
            environment, result = folder.read(ENVIRONMENT), folder.read(RESULT)
            curve = own.curve(folder, result)
    except (ScaletestError, OSError) as error:
        return replace(run, verdict=running, problem=str(error))
    verdict, problem = folder.stored_verdict, ""
    is_short = sum(map(folder.size, FILES)) <= MOST_LISTED_BYTES
    if running is None and not verdict and is_short:
        try:
            verdict = str(judge(folder).verdict.kind)
        except Exception as error:
            # one run that cannot be judged must not hide the others
            verdict, problem = "", str(error)
    began, elapsed_s = environment.get("began"), result.get("elapsed_s")
    return replace(
        run,
        kind=own.name,
        began=str(began or "") or None,
        workload=plan.workload,
        steps=list(plan.steps),
        verdict=running or verdict or None,
        problem=problem,
        elapsed_s=elapsed_s if isinstance(elapsed_s, int | float) else None,
        curve=curve,
    )
