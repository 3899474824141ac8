"""The registry of run types. A new one is a package with a module `run_type`, and one entry here.

Reports are built by a layer above, which the entry names: whoever shows a run needs it, whoever
judges one does not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import cast

from scaletest.model.checks import cut_text
from scaletest.model.errors import InvalidValue, ScaletestError, UsageError
from scaletest.model.json_schema import Schema
from scaletest.model.verdict import Verdict, VerdictKind
from scaletest.render.contents import Report
from scaletest.runs.folder import PLAN, RunFolder
from scaletest.runs.run_type import JudgedRun, RunType
from scaletest.stats.comparison import CandidateComparison, Comparison, Contrast, Side
from scaletest.stats.comparison import compare_runs as compare_sides
from scaletest.stats.trend import Trend, find_trend


@dataclass(frozen=True, slots=True)
class Registered:
    """Where a run type is defined; it is imported when a run of it is met."""

    module: str
    report: str  # what makes the report of a judged run, as MODULE:FUNCTION
    schemas: str = ""  # the module with the JSON Schemas of its documents, "" without any


TYPES: dict[str, Registered] = {
    "validation": Registered(
        "scaletest.validation.run_type",
        "scaletest.validation.report.report:validation_report",
        "scaletest.validation.schemas",
    ),
    "import": Registered(
        "scaletest.validation.imported.run_type",
        "scaletest.validation.imported.report:imported_report",
        "scaletest.validation.imported.schemas",
    ),
    "service": Registered(
        "scaletest.validation.service.run_type",
        "scaletest.validation.service.report:service_report",
        "scaletest.validation.service.schemas",
    ),
    "saturation": Registered(
        "scaletest.saturation.run_type",
        "scaletest.saturation.report.report:saturation_report",
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
    """Return the run type of that name; InvalidValue when there is none."""
    if name not in TYPES:
        raise InvalidValue(
            f"there is no run type {cut_text(repr(name), limit=40)}",
            hint=f"there are {', '.join(TYPES)}",
        )
    return cast(RunType, import_module(TYPES[name].module).RUN_TYPE)


def schemas(name: str) -> Mapping[str, Callable[[], Schema]]:
    """Return functions that make the schemas of a run type's documents, by the document's name."""
    module = TYPES[name].schemas
    return import_module(module).DOCUMENTS if module else {}


def type_of(folder: RunFolder) -> RunType:
    """Return the run type of a stored run; InvalidValue when it is unknown."""
    return run_type(folder.kind)


def can_run_again(folder: RunFolder) -> bool:
    """Return whether `scaletest validate --local` can run the plan of a stored run again."""
    own_type = type_of(folder)
    return own_type.is_local(own_type.plan(folder.read(PLAN)))


def judge_run(folder: RunFolder, *, is_final: bool = False) -> JudgedRun:
    """Judge a stored run of any type anew; without a verdict while it is still measured.

    is_final: all of it is on disk, although somebody holds it.
    """
    # looked at first: a run that ends while we read it has more in its files than we read
    is_running = folder.in_use and not is_final
    judged = type_of(folder).judge(folder)
    return judged.while_running() if is_running else judged


def report(folder: RunFolder, *, is_final: bool = False) -> Report:
    """Report a stored run of any type, judged anew. is_final: as in `judge_run`."""
    return report_of(folder, judge_run(folder, is_final=is_final))


def report_of(folder: RunFolder, judged: JudgedRun) -> Report:
    """Report a run that is judged already, with its labels."""
    module, _, function = TYPES[type_of(folder).name].report.partition(":")
    unlabelled = cast(Report, getattr(import_module(module), function)(judged))
    verdict = unlabelled.head.verdict
    stored = folder.stored_verdict
    if verdict.kind is not VerdictKind.RUNNING and stored not in ("", str(verdict.kind)):
        # in the reason, which every format shows beside the verdict
        remark = f"judged anew: it was {cut_text(stored, limit=10)} when it was measured"
        verdict = replace(verdict, reason=f"{verdict.reason} ({remark})")
    return replace(unlabelled, head=replace(unlabelled.head, labels=folder.labels, verdict=verdict))


def compare(folders: Sequence[RunFolder], tolerance: float, *, force: bool) -> Comparison:
    """Compare the first run, as the base, with others of its type.

    tolerance, force: as in the comparison of measures. UsageError for runs of several types.
    """
    base_type = _common_type(folders)
    judged_runs = [base_type.judge(folder) for folder in folders]
    base, *candidates = map(partial(_as_side, base_type), folders, judged_runs)
    contrasts = [base_type.contrast(judged_runs[0], judged) for judged in judged_runs[1:]]
    if len({folder.path.resolve() for folder in folders}) == 1:
        same = [CandidateComparison(side, (), Contrast()) for side in candidates]
        verdict = Verdict(VerdictKind.PASS, f"both are the same run, {folders[0].name}")
        return Comparison(base_type.name, tolerance, base, tuple(same), verdict)
    pairs = list(zip(candidates, contrasts, strict=True))
    return compare_sides(base_type.name, base, pairs, tolerance, force=force)


def trend(folders: Sequence[RunFolder], measure: str, tolerance: float) -> Trend:
    """Follow a measure through runs of one type, the oldest first; see `find_trend`."""
    base_type = _common_type(folders)
    judged_runs: list[JudgedRun | None] = []
    sides: list[Side] = []
    problems: dict[str, str] = {}
    for folder in folders:
        # by the folder's name: runs of a trend often share the one that people gave them
        side = Side(folder.name, str(folder.path), ())
        judged = None
        try:
            judged = base_type.judge(folder)
            side = replace(_as_side(base_type, folder, judged), name=folder.name)
        except (ScaletestError, OSError) as error:
            # one run that cannot be read must not hide the others
            problems[folder.name] = str(error)
        judged_runs.append(judged)
        sides.append(side)

    def contrast(base: int, candidate: int) -> Contrast:
        return base_type.contrast(judged_runs[base], judged_runs[candidate])

    return find_trend(base_type.name, sides, contrast, measure, tolerance, problems=problems)


def _common_type(folders: Sequence[RunFolder]) -> RunType:
    """Return the type of these runs. UsageError where they have several."""
    base_type = type_of(folders[0])
    for folder in folders:
        other = type_of(folder)
        if other.name != base_type.name:
            raise UsageError(
                f"{folders[0].name} is a {base_type.name}, and {folder.name} is a {other.name}",
                hint="compare runs of one type",
            )
    return base_type


def _as_side(run_type: RunType, folder: RunFolder, judged: JudgedRun) -> Side:
    return Side(
        folder.labels.name or folder.name,
        judged.folder,
        run_type.measures(judged),
        run_type.cause(judged),
    )
