"""What scaletest bench run does: document, plan, folder, executor, progress, and the end however it
comes.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.text import Text

from scaletest.analysis.benchmark_run import BenchmarkRun, evaluate_benchmarks, permutation_text
from scaletest.archive.environment import environment
from scaletest.benchmarks.executor import Executor
from scaletest.benchmarks.folder import BenchmarkFolder, is_benchmark
from scaletest.benchmarks.local_executor import LocalExecutor
from scaletest.benchmarks.operator_executor import OperatorExecutor
from scaletest.benchmarks.programs import versions
from scaletest.benchmarks.queue_executor import QueueExecutor
from scaletest.benchmarks.run_type import judge
from scaletest.benchmarks.runner import counts, run
from scaletest.benchmarks.sweep import merged, plan_of
from scaletest.broker import connect
from scaletest.cli import options as shared
from scaletest.cli import stored as stored_runs
from scaletest.cli.bench_options import BenchRunOptions
from scaletest.cli.output import echo
from scaletest.cluster import connection
from scaletest.cluster.discovery import groups
from scaletest.cluster.documents import Documents
from scaletest.documents import reader
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult, is_set
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.kinds.registry import API_VERSION, GROUP, SET, kind_of
from scaletest.load import busy_check
from scaletest.model import wire
from scaletest.model.errors import InvalidValue, Unreachable, UsageError
from scaletest.render.text import clean
from scaletest.render.units import quantity
from scaletest.runs.folder import RESULT, RunFolder
from scaletest.runs.places import default_root, new_path, reference

_RESUMED = {"resume", "output", "queue", "namespace", "redis_url", "scratch", "no_causes"}


def start(options: BenchRunOptions) -> BenchmarkRun:
    """Run what the command line asks for; the run as it then lies on disk."""
    if options.resume:
        shared.refuse_beside("--resume", allowed=_RESUMED)
        run_folder = stored_runs.find(options.resume)
        if not is_benchmark(run_folder):
            raise UsageError(
                f"run {run_folder.name} is none of benchmarks: it is a {run_folder.kind} run",
                hint="name another run",
            )
        folder = BenchmarkFolder(run_folder)
        with folder.files.locked(), _executor(options, folder) as executor:
            look = _look(options)
            stored = folder.load()
            folder.forget(stored)
            noticed = [*wire.texts(stored.result.get("noticed")), *_noticed(look)]
            _go_on(
                folder, replace(stored.plan, paused=False), dict(stored.ended), executor, noticed
            )
        return judge(folder)
    if not options.subject:
        raise UsageError("there is nothing to run", hint="give FILE.yaml, a KIND, or --resume RUN")
    document = _document(options.subject, options)
    folder = BenchmarkFolder(RunFolder(new_path(os.environ, options.run_dir)))
    with _executor(options, folder) as executor:
        look = _look(options)
        plan = _plan(document, executor)
        RunFolder.create(folder.path)
        with folder.files.locked():
            folder.files.begin(plan, {**environment(sys.argv), **_where(plan, options)})
            if plan.paused:
                echo(
                    f"paused; go on with: scaletest bench run --resume {_known_as(folder)}",
                    err=True,
                )
            else:
                _go_on(folder, plan, {}, executor, _noticed(look))
    return judge(folder)


class Progress:
    """Says how far a plan is. Called from several threads when benchmarks run side by side."""

    def __init__(self, plan: BenchmarkPlan, ended: int) -> None:
        self._plan = plan
        self._ended = ended
        self._console = Console(stderr=True, highlight=False)
        self._status = self._console.status("starting") if self._console.is_terminal else None
        self._lock = threading.Lock()

    def __enter__(self) -> Progress:
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status:
            self._status.stop()

    def __call__(
        self, benchmark: Benchmark, phase: BenchmarkPhase, ended: BenchmarkResult | None
    ) -> None:
        """A benchmark has a new phase, or has ended."""
        with self._lock:
            if ended is not None:
                self._ended += 1
                self._console.print(Text(self._line(benchmark, ended)), soft_wrap=True)
            elif self._status:
                line = f"{self._ended}/{len(self._plan.benchmarks)}  {benchmark.name}: {phase}"
                self._status.update(Text(clean(line)))

    def _line(self, benchmark: Benchmark, ended: BenchmarkResult) -> str:
        values = permutation_text(self._plan.permutations[benchmark.permutation])
        shown = f" ({clean(values, 60)})" if values else ""
        first = f"{self._ended}/{len(self._plan.benchmarks)}  {benchmark.name}{shown}"
        if not ended.ok:
            reason = f"{ended.failure or 'failed'}: {clean(ended.message, 200)}"
            return f"{first}: {reason}".replace("\n", " ")
        numbers = [
            f"{headline.name} {quantity(ended.headlines[headline.name], headline.unit)}"
            for headline in benchmark.kind.headlines
            if headline.name in ended.headlines
        ]
        suffix = " (warm-up, not counted)" if benchmark.warm_up else ""
        return f"{first}: {', '.join(numbers)}{suffix}"


def _look(options: BenchRunOptions) -> Callable[[], Sequence[str]]:
    """Begin to look at this machine, where benchmarks run on it; the function gives the
    warnings.
    """
    if options.queue or options.namespace:
        return tuple

    return busy_check.of_this_machine().warnings


def _noticed(look: Callable[[], Sequence[str]]) -> list[str]:
    """The warnings of a look, told."""
    lines = list(look())
    for line in lines:
        echo(f"warning: {line}", err=True)
    return lines


def _known_as(folder: BenchmarkFolder) -> str:
    """What --resume takes: the name where runs are, the path anywhere else."""
    return reference(folder.path, default_root(os.environ))


def _where(plan: BenchmarkPlan, options: BenchRunOptions) -> dict[str, Any]:
    """What the environment of a run says beside that of this process."""
    if options.queue:
        return {"executor": "queue", "queue": options.queue}
    if options.namespace:
        return {"executor": "kubernetes", "namespace": options.namespace}
    names: set[str] = set()
    for benchmark in plan.benchmarks:
        names.update(benchmark.kind.programs(benchmark.spec))
    return {"executor": "local", "programs": versions(sorted(names))}


def _plan(document: Mapping[str, Any], executor: Executor) -> BenchmarkPlan:
    """The plan, with everything that the executor cannot do refused before anything is started."""
    plan, warnings = plan_of(document, executor.nodes)
    for line in warnings:
        echo(f"warning: {line}", err=True)
    for benchmark in plan.benchmarks:
        executor.refuse(benchmark)
    return plan


def _go_on(
    folder: BenchmarkFolder,
    plan: BenchmarkPlan,
    ended: dict[str, Any],
    executor: Executor,
    noticed: Sequence[str],
) -> None:
    """Run what has not ended yet, and write the result. noticed: warnings from before the run."""
    with Progress(plan, len(ended)) as progress, _interrupts():
        try:
            run(plan, ended, executor, folder.store, progress)
        except KeyboardInterrupt:
            echo(
                f"interrupted; go on with: scaletest bench run --resume {_known_as(folder)}",
                err=True,
            )
        finally:
            number = counts(plan, ended)
            finished = datetime.now(UTC).isoformat(timespec="seconds")
            verdict = evaluate_benchmarks(plan, ended).verdict
            folder.files.write(
                RESULT,
                {
                    "schema_version": 1,
                    "verdict": verdict.to_dict(),
                    "elapsed_s": sum(
                        max(0.0, result.finished_s - result.started_s) for result in ended.values()
                    ),
                    "permutations": number.permutations,
                    "count": number.count,
                    "succeeded": number.succeeded,
                    "failed": number.failed,
                    "noticed": list(dict.fromkeys(noticed)),
                    "finished": finished if number.finished else None,
                },
            )


@contextmanager
def _interrupts() -> Iterator[None]:
    """SIGTERM and SIGHUP end the run as Ctrl-C does: processes and namespaces are taken away, the
    result is written.
    """

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _executor(options: BenchRunOptions, folder: BenchmarkFolder) -> Iterator[Executor]:
    executor: Executor
    if options.queue and options.namespace:
        raise UsageError("--queue and --namespace exclude each other", hint="leave one of them out")
    if options.no_causes and (options.queue or options.namespace):
        raise UsageError(
            "--no-causes is for benchmarks that run here",
            hint="start the workers of the queue with --no-causes",
        )
    if options.namespace:
        yield _in_cluster(options.namespace, folder.name)
        return
    if options.queue:
        executor = QueueExecutor(connect(options.redis_url), options.queue)
        try:
            yield executor
        finally:
            executor.close()
        return

    with _alone():
        executor = LocalExecutor(options.scratch, folder.logs, no_causes=options.no_causes)
        try:
            yield executor
        finally:
            executor.close()


def _in_cluster(namespace: str, run: str) -> Executor:
    """Raises Unreachable without a cluster that knows benchmarks."""
    cluster = connection.connect(namespace)
    if GROUP not in groups(cluster):
        raise Unreachable(
            f"the cluster does not know {GROUP}",
            hint="install the operator: docs/how-to/operator.md",
        )
    return OperatorExecutor(Documents(cluster), namespace, run)


@contextmanager
def _alone() -> Iterator[None]:
    """One run of benchmarks at a time on this machine, or they would measure each other. The kernel
    frees the lock.
    """
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
            echo("waiting for another run of benchmarks on this machine", err=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


# -- documents
# --------------------------------------------------------------------------------------------------


def _document(subject: str, options: BenchRunOptions) -> dict[str, Any]:
    """The document to run: of a file or of a kind, with what the options change."""
    path = Path(subject)
    if path.suffix in (".yaml", ".yml", ".json") or path.is_file():
        document = _file(path)
    else:
        document = {"apiVersion": API_VERSION, "kind": kind_of(subject).name, "spec": {}}
    change = _changes(options.sets)
    of_set = _set_fields(options)
    if is_set(document):
        template = {"template": {"spec": change}} if change else {}
        return dict(merged(document, {"spec": {**of_set, **template}}))
    document = dict(merged(document, {"spec": change}))
    if not set(of_set) - {"paused"}:
        return dict(merged(document, {"spec": of_set}))
    name = (document.get("metadata") or {}).get("name") or str(document.get("kind")).lower()
    template = {key: value for key, value in document.items() if key != "metadata"}
    return {
        "apiVersion": API_VERSION,
        "kind": SET,
        "metadata": {"name": name},
        "spec": {"template": template, **of_set},
    }


def _set_fields(options: BenchRunOptions) -> dict[str, Any]:
    """The fields of a set that the options change."""
    numbers = {
        "repetitions": options.repetitions,
        "seed": options.seed,
        "warmUp": options.warm_up,
    }
    changed: dict[str, Any] = {
        name: number for name, number in numbers.items() if number is not None
    }
    if options.random_order:
        changed["order"] = "random"
    if options.stop_on_failure:
        changed["onFailure"] = "stop"
    if options.thresholds:
        changed["thresholds"] = list(options.thresholds)
    if options.paused:
        changed["paused"] = True
    return changed


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
                f"--set {setting!r} is no KEY=VALUE", hint="write it as in --set streams=2"
            )
        value: Any = reader.read(text, f"the value of --set {setting!r}", "put quotes around it")
        for name in reversed(key.split(".")):
            value = {name: value}
        change = dict(merged(change, value)) if not _unsets(value) else {**change, **value}
    return change


def _unsets(value: Any) -> bool:
    """Whether it takes a field back: null must come through to the document."""
    return value is None or (isinstance(value, dict) and any(map(_unsets, value.values())))
