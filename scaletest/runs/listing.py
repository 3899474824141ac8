"""Stored runs as lists show them, filtered and sorted."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fnmatch import translate

from scaletest.model.checks import cut_text
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.model.verdict import VerdictKind
from scaletest.render.numbers import plural
from scaletest.runs.folder import ENVIRONMENT, FILES, PLAN, RESULT, RunFolder
from scaletest.runs.registry import judge_run, type_of

# The worst stands last, where a terminal leaves the eye.
VERDICTS = ("none", "RUNNING", "PASS", "INVALID", "FAIL")
# The beginning of a folder's name that was not chosen; `runs.places` makes it. The end will do for
# commands that ask for a run.
AUTOMATIC_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z-(?=\w+\Z)")
# Each of them is judged anew.
MOST_IN_TREND = 50
# Of the files of a run that is judged anew for a list.
MOST_TO_JUDGE_BYTES = 8 * 1024**2
SORTS: dict[str, Callable[["ListedRun"], str | float]] = {
    "began": lambda run: run.began or "",
    "name": lambda run: run.name or run.run,
    "verdict": lambda run: VERDICTS.index(run.verdict) if run.verdict in VERDICTS else -1,
    "elapsed": lambda run: -1.0 if run.elapsed_s is None else run.elapsed_s,
}


@dataclass(frozen=True, slots=True)
class RunFilter:
    """The runs that are wanted; an empty field accepts all."""

    run_type: str = ""
    verdicts: tuple[str, ...] = ()  # any of them
    name: str = ""  # a part of a name, or a pattern of a whole one


def choose_runs(runs: Iterable["ListedRun"], wanted: RunFilter, order: str) -> list["ListedRun"]:
    """Filter runs, and sort them by one of SORTS; the newest, worst or longest stands last."""
    # fnmatch itself would keep 32,768 patterns, and anybody may ask a page for another one
    pattern = re.compile(translate(wanted.name))
    chosen = []
    for run in runs:
        is_named = any(wanted.name in name or pattern.match(name) for name in (run.run, run.name))
        has_verdict = not wanted.verdicts or (run.verdict or "none") in wanted.verdicts
        if is_named and has_verdict and wanted.run_type in ("", run.kind):
            chosen.append(run)
    return sorted(chosen, key=SORTS[order])


def choose_for_trend(runs: Iterable["ListedRun"], name: str) -> list["ListedRun"]:
    """Return the newest complete runs of this name or pattern, of one type, the oldest first.

    UsageError where they are fewer than two.
    """
    named = choose_runs(runs, RunFilter(name=name), "began")
    complete = [run for run in named if run.kind and not run.in_use]
    chosen = [run for run in complete if run.kind == complete[-1].kind][-MOST_IN_TREND:]
    if len(chosen) < 2:
        raise UsageError(
            f"{plural(len(chosen), 'run')} with {cut_text(name, limit=80)!r} in the name: a trend"
            " needs two",
            hint="give runs one name with scaletest runs label RUN --name NAME",
        )
    return chosen


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run as lists show it; what cannot be read is None, and `problem` says why."""

    run: str  # the name of its folder
    in_use: bool  # whether a process measures it or goes on with it now
    folder: str
    name: str  # name and note are its labels
    note: str
    kind: str | None = None
    began: str | None = None
    workload: str | None = None
    steps: list[int] | None = None
    # as it was stored with the run; where it was not, as the report gives it
    verdict: str | None = None
    elapsed_s: float | None = None
    finding: str = ""  # its result in a few words, as in "7.9x at 8"
    curve: list[float] = field(default_factory=list)  # its main measure, step by step
    ideal: list[float] = field(default_factory=list)  # the same, if it grew with the workers
    problem: str = ""

    @property
    def short_name(self) -> str:
        """The name that people gave it, else that of its folder without the time in it."""
        return self.name or AUTOMATIC_NAME.sub("", self.run)

    @property
    def when(self) -> str:
        """When it began, as people read it; "-" where that is not on record."""
        return cut_text(self.began or "-", limit=30).replace("T", " ").replace("+00:00", "Z")

    @property
    def judged(self) -> str:
        """Its verdict, or that there is none."""
        return cut_text(self.verdict or "none", limit=10)

    @property
    def subject(self) -> str:
        """What was measured, or why that cannot be read."""
        return cut_text(self.workload or f"cannot be read: {self.problem}", limit=200)


def read_listed_run(folder: RunFolder) -> ListedRun:
    """Read a stored run for lists; one that is still measured is RUNNING."""
    labels = folder.labels
    run = ListedRun(
        _as_unicode(folder.name),
        folder.in_use,
        _as_unicode(str(folder.path)),
        labels.name,
        labels.note,
    )
    if run.in_use:
        run = replace(run, verdict=str(VerdictKind.RUNNING))
    try:
        with folder.trouble("read"):
            run_type = type_of(folder)
            plan = run_type.plan(folder.read(PLAN))
            environment = folder.read(ENVIRONMENT)
            result = folder.read(RESULT)
            curve = run_type.curve(folder, result)
    except (ScaletestError, OSError) as error:
        return replace(run, problem=str(error))
    verdict = run.verdict or folder.stored_verdict
    problem = ""
    # one with more in its files is not judged anew for a list, since that takes half a second
    if not verdict and sum(map(folder.size, FILES)) <= MOST_TO_JUDGE_BYTES:
        try:
            verdict = str(judge_run(folder).verdict.kind)
        except Exception as error:
            # one run that cannot be judged must not hide the others
            problem = str(error)
    elapsed_s = result.get("elapsed_s")
    return replace(
        run,
        kind=run_type.name,
        began=str(environment.get("began") or "") or None,
        workload=plan.workload,
        steps=list(plan.steps),
        verdict=verdict or None,
        problem=problem,
        elapsed_s=elapsed_s if isinstance(elapsed_s, int | float) else None,
        finding=cut_text(str(result.get("finding") or ""), limit=80),
        curve=curve,
        ideal=run_type.ideal_curve(result, curve),
    )


def _as_unicode(name: str) -> str:
    """Return a name of a file, of which bytes may be no UTF-8, as pages and JSON can have it."""
    return name.encode(errors="backslashreplace").decode()
