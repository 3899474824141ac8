"""Benchmarks are begun, or go on: document, plan, folder, executor, and the end of a run."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any

from scaletest.benchmarks.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult, is_set
from scaletest.benchmarks.benchmark_set import BenchmarkPlan
from scaletest.benchmarks.judging.benchmark_run import (
    BenchmarkRun,
    evaluate_benchmarks,
    permutation_text,
)
from scaletest.benchmarks.kinds.kind import BenchmarkFailed
from scaletest.benchmarks.kinds.registry import API_VERSION, GROUP, KINDS, SET, kind_of
from scaletest.benchmarks.measure.local_executor import LocalExecutor
from scaletest.benchmarks.measure.operator_executor import OperatorExecutor
from scaletest.benchmarks.measure.programs import require, versions
from scaletest.benchmarks.measure.queue_executor import QueueExecutor
from scaletest.benchmarks.measure.runner import Executor, counts, run
from scaletest.benchmarks.options import BenchmarkChanges, BenchmarkPlace
from scaletest.benchmarks.run_type import RUN_TYPE, BenchmarkFolder
from scaletest.benchmarks.sweep import merged, plan_of
from scaletest.broker import connect
from scaletest.cluster import connection, discovery
from scaletest.cluster.objects import Documents
from scaletest.documents import reader
from scaletest.load import busy_check
from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue, Unreachable, UsageError
from scaletest.model.labels import Labels
from scaletest.model.run_progress import BENCHMARK
from scaletest.render.numbers import quantity
from scaletest.render.text import clean
from scaletest.runs.environment import environment
from scaletest.runs.folder import RESULT, RunFolder
from scaletest.runs.places import default_root, new_path, reference
from scaletest.runs.progress import Progress
from scaletest.runs.registry import type_of
from scaletest.runs.stopping import stopping


def start(
    subject: str | None,
    changes: BenchmarkChanges,
    place: BenchmarkPlace,
    run_dir: Path | None,
    labels: Labels,
    progress: Progress,
) -> BenchmarkRun:
    """Run the benchmarks of a file or a kind; the run as it then lies on disk."""
    if not subject:
        raise UsageError("there is nothing to run", hint="give FILE.yaml, a KIND, or <resume> RUN")
    document = _document(subject, changes)
    if is_here(place):
        document = _with_local_defaults(document)
    folder = BenchmarkFolder(new_path(os.environ, run_dir))
    with _executor(place, folder) as executor:
        # everything that the executor cannot do is refused before anything is started
        plan, warnings = plan_of(document, executor.nodes)
        progress.warn(warnings)
        for benchmark in plan.benchmarks:
            executor.refuse(benchmark)
        if is_here(place):
            # a tool that is not installed is missed before anything begins
            for benchmark in plan.benchmarks:
                try:
                    require(benchmark)
                except BenchmarkFailed as error:
                    name = benchmark.kind.name
                    raise UsageError(
                        f"{name} cannot run here: {error.message}", hint=error.remedy
                    ) from None
            files = [each.kind.files(each.spec, tempfile.gettempdir()) for each in plan.benchmarks]
            for line in dict.fromkeys(filter(None, files)):
                progress.message(line)
        folder.make(empty=True)
        with folder.locked():
            folder.begin(plan, {**environment(sys.argv), **_where(plan, place)}, labels)
            if plan.paused:
                progress.message(f"paused; go on with: {_resumption(folder)}")
            else:
                with _alone(place, progress):
                    _go_on(folder, plan, {}, executor, _look(place), progress)
    return RUN_TYPE.judge(folder)


def resume(files: RunFolder, place: BenchmarkPlace, progress: Progress) -> BenchmarkRun:
    """Go on with a run; as it then lies on disk."""
    checks.refuse(
        (
            type_of(files) is not RUN_TYPE,
            f"run {files.name} is none of benchmarks: it is a {files.kind} run",
            "name another run",
        )
    )
    folder = BenchmarkFolder(files.path)
    with files.locked(), _executor(place, folder) as executor, _alone(place, progress):
        look = _look(place)
        stored = folder.load()
        folder.forget(stored)
        _go_on(
            folder,
            replace(stored.plan, paused=False),
            dict(stored.ended),
            executor,
            look,
            progress,
            wire.texts(stored.result.get("noticed")),
        )
    return RUN_TYPE.judge(folder)


class _Course:
    """Says how far a plan is."""

    def __init__(self, plan: BenchmarkPlan, ended: int, progress: Progress) -> None:
        self._plan, self._ended, self._progress = plan, ended, progress
        self._lengths_s: list[float] = []
        self._tell()

    def _tell(self) -> None:
        """Tell where the run is; the time that is left, by the benchmarks that have ended."""
        count, lengths = len(self._plan.benchmarks), self._lengths_s
        left_s = mean(lengths) * (count - self._ended) if lengths else None
        self._progress.at(self._ended, count, left_s=left_s, unit=BENCHMARK)

    def __call__(
        self, benchmark: Benchmark, ended: BenchmarkResult | None, phase: BenchmarkPhase
    ) -> None:
        """A benchmark has a new phase, or has ended."""
        self._ended += ended is not None
        if ended is None:
            self._progress.note(f"{benchmark.name}: {phase}")
        else:
            self._lengths_s.append(max(0.0, ended.finished_s - ended.started_s))
            self._progress.step(f"{benchmark.name}{self._outcome(benchmark, ended)}")
            self._tell()
            self._progress.step_ended()

    def _outcome(self, benchmark: Benchmark, ended: BenchmarkResult) -> str:
        values = permutation_text(self._plan.permutations[benchmark.permutation])
        shown = f" ({clean(values, 60)})" if values else ""
        if not ended.ok:
            reason = f"{ended.failure or 'failed'}: {clean(ended.message, 200)}"
            return f"{shown}: {reason}".replace("\n", " ")
        numbers = [
            f"{headline.label} {quantity(ended.headlines[headline.name], headline.unit)}"
            for headline in benchmark.kind.headlines
            if headline.name in ended.headlines
        ]
        suffix = " (warm-up, not counted)" if benchmark.warm_up else ""
        return f"{shown}: {', '.join(numbers)}{suffix}"


def is_here(place: BenchmarkPlace) -> bool:
    """Whether benchmarks run on this machine."""
    return not (place.queue or place.namespace)


def _look(place: BenchmarkPlace) -> Callable[[], Sequence[str]]:
    """Begin to look at this machine, where benchmarks run on it; the function gives the
    warnings.
    """
    return busy_check.of_this_machine().warnings if is_here(place) else tuple


def _resumption(folder: BenchmarkFolder) -> str:
    """The command that goes on: with the name where runs are, with the path anywhere else."""
    return f"scaletest bench run --resume {reference(folder.path, default_root(os.environ))}"


def _where(plan: BenchmarkPlan, place: BenchmarkPlace) -> dict[str, Any]:
    """What the environment of a run says beside that of this process."""
    if place.queue:
        return {"executor": "queue", "queue": place.queue}
    if place.namespace:
        return {"executor": "kubernetes", "namespace": place.namespace}
    names: set[str] = set()
    for benchmark in plan.benchmarks:
        names.update(benchmark.kind.programs(benchmark.spec))
    return {"executor": "local", "programs": versions(sorted(names))}


def _stop(reason: str) -> None:
    """End the run as Ctrl-C does: processes and namespaces are taken away, the result is
    written.
    """
    raise KeyboardInterrupt


def _go_on(
    folder: BenchmarkFolder,
    plan: BenchmarkPlan,
    ended: dict[str, BenchmarkResult],
    executor: Executor,
    look: Callable[[], Sequence[str]],
    progress: Progress,
    noticed_before: Sequence[str] = (),
) -> None:
    """Run what has not ended yet, and write the result."""
    noticed = look()
    progress.warn(noticed)
    with stopping(_stop, unwind=True), progress.of_run(folder, plan.workload):
        try:
            run(plan, ended, executor, folder.store, _Course(plan, len(ended), progress))
        except KeyboardInterrupt:
            progress.message(f"interrupted; go on with: {_resumption(folder)}")
        finally:
            succeeded, failed = counts(plan, ended)
            finished = datetime.now(UTC).isoformat(timespec="seconds")
            folder.write(
                RESULT,
                {
                    "schema_version": 1,
                    "verdict": evaluate_benchmarks(plan, ended, name=folder.name).verdict.to_dict(),
                    "elapsed_s": sum(
                        max(0.0, result.finished_s - result.started_s) for result in ended.values()
                    ),
                    "permutations": len(plan.permutations),
                    "count": plan.counted,
                    "succeeded": succeeded,
                    "failed": failed,
                    "noticed": list(dict.fromkeys([*noticed_before, *noticed])),
                    "finished": finished if succeeded + failed == plan.counted else None,
                },
            )


@contextmanager
def _executor(place: BenchmarkPlace, folder: BenchmarkFolder) -> Iterator[Executor]:
    checks.refuse(
        (
            place.queue and place.namespace,
            "<queue> and <namespace> exclude each other",
            "leave one of them out",
        ),
    )
    if place.namespace:
        cluster = connection.connect(place.namespace)
        if GROUP not in discovery.groups(cluster):
            raise Unreachable(
                f"the cluster does not know {GROUP}",
                hint="install the operator: docs/how-to/operator.md",
            )
        yield OperatorExecutor(Documents(cluster), place.namespace, folder.name)
    elif place.queue:
        with closing(QueueExecutor(connect(place.redis_url), place.queue)) as executor:
            yield executor
    else:
        yield LocalExecutor(folder.logs)


@contextmanager
def _alone(place: BenchmarkPlace, progress: Progress) -> Iterator[None]:
    """One run of benchmarks at a time on this machine, or they would measure each other. The kernel
    frees the lock.
    """
    if not is_here(place):
        yield
        return
    path = Path("/tmp") / f"scaletest-bench-{os.getuid()}.lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise UsageError(
            f"the lock {path} cannot be used: {error.strerror}", hint="remove that file"
        ) from error
    with os.fdopen(handle, "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            progress.message("waiting for another run of benchmarks on this machine")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


# -- documents
# --------------------------------------------------------------------------------------------------


def _document(subject: str, changes: BenchmarkChanges) -> dict[str, Any]:
    """The document to run: of a file or of a kind, with what the options change."""
    path = Path(subject)
    if path.suffix in (".yaml", ".yml", ".json") or path.is_file():
        document = _file(path)
    else:
        document = {"apiVersion": API_VERSION, "kind": kind_of(subject).name, "spec": {}}
    change = _changes(changes.sets)
    of_set: dict[str, Any] = {}
    if changes.repetitions is not None:
        of_set["repetitions"] = changes.repetitions
    if changes.thresholds:
        of_set["thresholds"] = list(changes.thresholds)
    if is_set(document):
        template = {"template": {"spec": change}} if change else {}
        return dict(merged(document, {"spec": {**of_set, **template}}))
    document = dict(merged(document, {"spec": change}))
    if not of_set:
        return document
    name = (document.get("metadata") or {}).get("name") or str(document.get("kind")).lower()
    template = {key: value for key, value in document.items() if key != "metadata"}
    return {
        "apiVersion": API_VERSION,
        "kind": SET,
        "metadata": {"name": name},
        "spec": {"template": template, **of_set},
    }


def _with_local_defaults(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the fields that have another default on this machine, where it has none."""
    benchmark = document
    path = ["spec"]
    if is_set(document):
        path = ["spec", "template", "spec"]
        benchmark = (document.get("spec") or {}).get("template") or {}
    kind = KINDS.get(str(benchmark.get("kind")))
    change: Any = dict(kind.here) if kind else {}
    for name in reversed(path):
        change = {name: change}
    return dict(merged(change, document)) if kind else document


def _file(path: Path) -> dict[str, Any]:
    hint = "give a file with one benchmark or one BenchmarkSet"
    document = reader.read_file(path, str(path), hint)
    if not isinstance(document, dict):
        raise InvalidValue(f"{path} holds no benchmark", hint=hint)
    return document


def _changes(sets: Sequence[str]) -> dict[str, Any]:
    """--set a.b=value as maps in maps; the value is read as YAML."""
    change: dict[str, Any] = {}
    for setting in sets:
        key, sign, text = setting.partition("=")
        if not sign or not key:
            raise UsageError(
                f"<set> {setting!r} is no KEY=VALUE", hint="write it as in <set> streams=2"
            )
        value: Any = reader.read(text, f"the value of <set> {setting!r}", "put quotes around it")
        for name in reversed(key.split(".")):
            value = {name: value}
        change = dict(merged(change, value)) if not _unsets(value) else {**change, **value}
    return change


def _unsets(value: Any) -> bool:
    """Whether it takes a field back: null must come through to the document."""
    return value is None or (isinstance(value, dict) and any(map(_unsets, value.values())))
