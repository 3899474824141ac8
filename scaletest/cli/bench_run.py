"""What scaletest bench run does: document, plan, folder, executor, progress, and the end however it
comes.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaletest.cli import options
from scaletest.cli import stored as stored_runs
from scaletest.cli.output import echo
from scaletest.documents import reader
from scaletest.model import wire
from scaletest.model.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from scaletest.analysis.benchmark_run import BenchmarkRun
    from scaletest.benchmarks.executor import Executor
    from scaletest.benchmarks.folder import BenchmarkFolder
    from scaletest.kinds.plan import BenchmarkPlan

_OF_A_SET = {"repetitions": "repetitions", "seed": "seed", "warm_up": "warmUp"}
_RESUMED = {"resume", "output", "queue", "namespace", "redis_url", "scratch", "no_causes"}


def start(what: str | None, given: dict[str, Any]) -> BenchmarkRun:
    """Run what the command line asks for; the run as it then lies on disk."""
    from scaletest.archive.environment import environment
    from scaletest.benchmarks.folder import BenchmarkFolder, is_benchmark
    from scaletest.benchmarks.run_type import judge
    from scaletest.runs.folder import RunFolder
    from scaletest.runs.places import new_path

    if given["resume"]:
        options.refuse_beside("--resume", allowed=_RESUMED)
        found = stored_runs.find(given["resume"])
        if not is_benchmark(found):
            raise UsageError(
                f"run {found.name} is none of benchmarks: it is a {found.kind} run",
                hint="name another run",
            )
        folder = BenchmarkFolder(found)
        with folder.files.locked(), _executor(given, folder) as executor:
            look = _look(given)
            stored = folder.load()
            folder.forget(stored)
            noticed = [*wire.texts(stored.result.get("noticed")), *_noticed(look)]
            _go_on(
                folder, replace(stored.plan, paused=False), dict(stored.ended), executor, noticed
            )
        return judge(folder)
    if not what:
        raise UsageError("there is nothing to run", hint="give FILE.yaml, a KIND, or --resume RUN")
    document = _document(what, given)
    folder = BenchmarkFolder(RunFolder(new_path(os.environ, given["run_dir"])))
    with _executor(given, folder) as executor:
        look = _look(given)
        plan = _plan(document, executor)
        RunFolder.create(folder.path)
        with folder.files.locked():
            folder.files.begin(plan, {**environment(sys.argv), **_where(plan, given)})
            if plan.paused:
                echo(
                    f"paused; go on with: scaletest bench run --resume {_known_as(folder)}",
                    err=True,
                )
            else:
                _go_on(folder, plan, {}, executor, _noticed(look))
    return judge(folder)


def _look(given: Mapping[str, Any]) -> Callable[[], Sequence[str]]:
    """Begin to look at this machine, where benchmarks run on it; the function gives the
    warnings.
    """
    if given["queue"] or given["namespace"]:
        return tuple
    from scaletest.load import busy_check

    return busy_check.of_this_machine().warnings


def _noticed(look: Callable[[], Sequence[str]]) -> list[str]:
    """The warnings of a look, told."""
    lines = list(look())
    for line in lines:
        echo(f"warning: {line}", err=True)
    return lines


def _known_as(folder: BenchmarkFolder) -> str:
    """What --resume takes: the name where runs are, the path anywhere else."""
    from scaletest.runs.places import default_root, reference

    return reference(folder.path, default_root(os.environ))


def _where(plan: BenchmarkPlan, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the environment of a run says beside that of this process."""
    from scaletest.benchmarks.programs import versions

    if given["queue"]:
        return {"executor": "queue", "queue": given["queue"]}
    if given["namespace"]:
        return {"executor": "kubernetes", "namespace": given["namespace"]}
    names = sorted({name for one in plan.benchmarks for name in one.kind.programs(one.spec)})
    return {"executor": "local", "programs": versions(names)}


def _plan(document: Mapping[str, Any], executor: Executor) -> BenchmarkPlan:
    """The plan, with everything that the executor cannot do refused before anything is started."""
    from scaletest.benchmarks.sweep import plan_of

    plan, warnings = plan_of(document, executor.nodes)
    for line in warnings:
        echo(f"warning: {line}", err=True)
    for one in plan.benchmarks:
        executor.refuse(one)
    return plan


def _go_on(
    folder: BenchmarkFolder,
    plan: BenchmarkPlan,
    ended: dict[str, Any],
    executor: Executor,
    noticed: Sequence[str],
) -> None:
    """Run what has not ended yet, and write the result. noticed: warnings from before the run."""
    from scaletest.analysis.benchmark_run import evaluate_benchmarks
    from scaletest.benchmarks.runner import counts, run
    from scaletest.cli.bench_progress import Progress
    from scaletest.runs.folder import RESULT

    with Progress(plan, len(ended)) as progress, _interrupts():
        try:
            run(plan, ended, executor, folder.store, progress)
        except KeyboardInterrupt:
            echo(
                f"interrupted; go on with: scaletest bench run --resume {_known_as(folder)}",
                err=True,
            )
        finally:
            found = counts(plan, ended)
            verdict = evaluate_benchmarks(plan, ended).verdict
            folder.files.write(
                RESULT,
                {
                    "schema_version": 1,
                    "verdict": verdict.to_dict(),
                    "elapsed_s": sum(
                        max(0.0, one.finished_s - one.started_s) for one in ended.values()
                    ),
                    "permutations": found.permutations,
                    "count": found.count,
                    "succeeded": found.succeeded,
                    "failed": found.failed,
                    "noticed": list(dict.fromkeys(noticed)),
                    "finished": (
                        datetime.now(UTC).isoformat(timespec="seconds") if found.finished else None
                    ),
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
def _executor(given: Mapping[str, Any], folder: BenchmarkFolder) -> Iterator[Executor]:
    executor: Executor
    if given["queue"] and given["namespace"]:
        raise UsageError("--queue and --namespace exclude each other", hint="leave one of them out")
    if given["no_causes"] and (given["queue"] or given["namespace"]):
        raise UsageError(
            "--no-causes is for benchmarks that run here",
            hint="start the workers of the queue with --no-causes",
        )
    if given["namespace"]:
        yield _in_cluster(given["namespace"], folder.name)
        return
    if given["queue"]:
        from scaletest.benchmarks.queue_executor import QueueExecutor
        from scaletest.broker import connect

        executor = QueueExecutor(connect(given["redis_url"]), given["queue"])
        try:
            yield executor
        finally:
            executor.close()
        return
    from scaletest.benchmarks.local_executor import LocalExecutor

    with _alone():
        executor = LocalExecutor(given["scratch"], folder.logs, no_causes=given["no_causes"])
        try:
            yield executor
        finally:
            executor.close()


def _in_cluster(namespace: str, run: str) -> Executor:
    """Raises Unreachable without a cluster that knows benchmarks."""
    from scaletest.benchmarks.operator_executor import OperatorExecutor
    from scaletest.cluster.connection import connect
    from scaletest.cluster.discovery import groups
    from scaletest.cluster.documents import Documents
    from scaletest.kinds.registry import GROUP
    from scaletest.model.errors import Unreachable

    cluster = connect(namespace)
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


def _document(what: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The document to run: of a file or of a kind, with what the options change."""
    from scaletest.benchmarks.sweep import merged
    from scaletest.kinds.benchmark import is_set
    from scaletest.kinds.registry import API_VERSION, SET, kind_of

    path = Path(what)
    if path.suffix in (".yaml", ".yml", ".json") or path.is_file():
        document = _file(path)
    else:
        document = {"apiVersion": API_VERSION, "kind": kind_of(what).name, "spec": {}}
    change = _changes(given["sets"])
    more = {name: given[option] for option, name in _OF_A_SET.items() if given[option] is not None}
    more |= {"order": "random"} if given["random_order"] else {}
    more |= {"onFailure": "stop"} if given["stop_on_failure"] else {}
    more |= {"thresholds": list(given["thresholds"])} if given["thresholds"] else {}
    more |= {"paused": True} if given["paused"] else {}
    if is_set(document):
        return dict(
            merged(
                document, {"spec": {**more, **({"template": {"spec": change}} if change else {})}}
            )
        )
    document = dict(merged(document, {"spec": change}))
    if set(more) - {"paused"}:
        name = (document.get("metadata") or {}).get("name") or str(document.get("kind")).lower()
        template = {key: value for key, value in document.items() if key != "metadata"}
        return {
            "apiVersion": API_VERSION,
            "kind": SET,
            "metadata": {"name": name},
            "spec": {"template": template, **more},
        }
    return dict(merged(document, {"spec": more}))


def _file(path: Path) -> dict[str, Any]:
    hint = "give a file with one benchmark or one BenchmarkSet"
    document = reader.read_file(path, str(path), hint)
    if not isinstance(document, dict):
        raise InvalidValue(f"{path} holds no benchmark", hint=hint)
    return document


def _changes(sets: Sequence[str]) -> dict[str, Any]:
    """--set a.b=value as maps in maps; the value is read as YAML."""
    from scaletest.benchmarks.sweep import merged

    change: dict[str, Any] = {}
    for one in sets:
        key, sign, text = one.partition("=")
        if not sign or not key:
            raise UsageError(
                f"--set {one!r} is no KEY=VALUE", hint="write it as in --set streams=2"
            )
        value: Any = reader.read(text, f"the value of --set {one!r}", "put quotes around it")
        for name in reversed(key.split(".")):
            value = {name: value}
        change = dict(merged(change, value)) if not _unsets(value) else {**change, **value}
    return change


def _unsets(value: Any) -> bool:
    """Whether it takes a field back: null must come through to the document."""
    return value is None or (isinstance(value, dict) and any(map(_unsets, value.values())))
