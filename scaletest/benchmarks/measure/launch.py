"""Start a run of benchmarks, or resume one: plan, folder, executor, and the end of the run."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scaletest.benchmarks.documents import Benchmark, BenchmarkPhase, BenchmarkResult, sweep
from scaletest.benchmarks.folder import BenchmarkFolder
from scaletest.benchmarks.judging.evaluation import (
    BenchmarkRun,
    evaluate_benchmarks,
    permutation_text,
)
from scaletest.benchmarks.kinds import GROUP, BenchmarkFailed
from scaletest.benchmarks.measure import (
    asked_document,
    local_executor,
    operator_executor,
    programs,
    queue_executor,
    runner,
)
from scaletest.benchmarks.options import BenchmarkChanges, BenchmarkPlace
from scaletest.benchmarks.plan import BenchmarkPlan
from scaletest.benchmarks.run_type import RUN_TYPE
from scaletest.broker import connect
from scaletest.cluster import api_calls, discovery, objects
from scaletest.load import busy_check
from scaletest.model import checks, errors, wire
from scaletest.model.labels import Labels
from scaletest.model.run_progress import BENCHMARK, expect_alike
from scaletest.render.numbers import format_quantity
from scaletest.render.text import clean_text
from scaletest.runs import places, registry, stopping
from scaletest.runs.environment import read_environment
from scaletest.runs.folder import LOGS, RESULT, RunFolder
from scaletest.runs.progress import Progress


def start_run(
    subject: str | None,
    changes: BenchmarkChanges,
    place: BenchmarkPlace,
    *,
    run_dir: Path | None,
    labels: Labels,
    progress: Progress,
) -> BenchmarkRun:
    """Run the benchmarks of a file or a kind; return the run as it then lies on disk."""
    if not subject:
        raise errors.UsageError(
            "there is nothing to run", hint="give FILE.yaml, a KIND, or <resume> RUN"
        )
    document = asked_document.read_document(subject, changes, on_this_machine=is_here(place))
    folder = BenchmarkFolder(places.new_path(os.environ, run_dir))
    with _open_executor(place, folder) as executor:
        # everything that the executor cannot do is refused before anything is started
        plan, warnings = sweep.plan_of(document, executor.nodes)
        progress.warn(warnings)
        for benchmark in plan.benchmarks:
            executor.refuse(benchmark)
        if is_here(place):
            _require_programs(plan)
        folder.make(empty=True)
        with folder.locked():
            folder.begin(
                plan, {**read_environment(sys.argv), **_describe_executor(plan, place)}, labels
            )
            if plan.paused:
                progress.message(f"paused; resume with: {_resume_command(folder)}")
            else:
                _measure(folder, plan, {}, executor, progress, warnings=_machine_warnings(place))
    return RUN_TYPE.judge(folder)


def resume_run(files: RunFolder, place: BenchmarkPlace, progress: Progress) -> BenchmarkRun:
    """Resume a run; return it as it then lies on disk."""
    checks.raise_first_mistake(
        (
            registry.type_of(files) is not RUN_TYPE,
            f"run {files.name} is not a benchmark run: it is a {files.kind} run",
            "name another run",
        )
    )
    folder = BenchmarkFolder(files.path)
    with files.locked(), _open_executor(place, folder) as executor:
        stored = folder.load()
        folder.rewrite_records(stored)
        _measure(
            folder,
            replace(stored.plan, paused=False),
            dict(stored.results),
            executor,
            progress,
            warnings=_machine_warnings(place),
            earlier_warnings=wire.texts(stored.run_result.get("noticed")),
        )
    return RUN_TYPE.judge(folder)


def _require_programs(plan: BenchmarkPlan) -> None:
    """Raise UsageError when this machine lacks a program."""
    for benchmark in plan.benchmarks:
        try:
            programs.require_programs(benchmark)
        except BenchmarkFailed as error:
            raise errors.UsageError(
                f"{benchmark.kind.name} cannot run here: {error.message}", hint=error.remedy
            ) from None


class _PlanProgress:
    """Shows how far a plan is."""

    def __init__(self, plan: BenchmarkPlan, ended_count: int, progress: Progress) -> None:
        self._plan = plan
        self._ended_count = ended_count
        self._progress = progress
        self._lengths_s: list[float] = []  # of the benchmarks that ended in this process
        self._show()

    def _show(self) -> None:
        """Show where the run is, and the time that is left by the lengths so far."""
        count = len(self._plan.benchmarks)
        left = expect_alike(self._lengths_s, count - self._ended_count)
        self._progress.at(self._ended_count, count, left=left, unit=BENCHMARK)

    def __call__(
        self, benchmark: Benchmark, result: BenchmarkResult | None, phase: BenchmarkPhase
    ) -> None:
        """Show that a benchmark has a new phase, or has ended."""
        if result is None:
            self._progress.note(f"{benchmark.name}: {phase}")
            return
        self._ended_count += 1
        self._lengths_s.append(result.length_s)
        if result.ok:
            numbers = []
            for headline in benchmark.kind.headlines:
                if (number := result.headlines.get(headline.name)) is not None:
                    numbers.append(f"{headline.label} {format_quantity(number, headline.unit)}")
            outcome = ", ".join(numbers)
            if benchmark.warm_up:
                outcome += " (warm-up, not counted)"
        else:
            outcome = f"{result.failure or 'failed'}: {clean_text(result.message, 200)}"
        values = permutation_text(self._plan.permutations[benchmark.permutation])
        place = f" ({clean_text(values, 60)})" if values else ""
        line = f"{benchmark.name}{place}: {outcome}"
        # messages of tools have several lines
        self._progress.step(line if result.ok else line.replace("\n", " "))
        self._show()
        self._progress.step_ended()


def is_here(place: BenchmarkPlace) -> bool:
    """Check whether benchmarks run on this machine."""
    return not (place.queue or place.namespace)


def _machine_warnings(place: BenchmarkPlace) -> Sequence[str]:
    """Say what else uses this machine, if benchmarks run on it. Takes a second."""
    return busy_check.of_this_machine().warnings() if is_here(place) else ()


def _resume_command(folder: BenchmarkFolder) -> str:
    """Return the command that resumes a run: with the name where runs are, else with the path."""
    reference = places.run_reference(folder.path, places.default_root(os.environ))
    return f"scaletest bench run --resume {reference}"


def _describe_executor(plan: BenchmarkPlan, place: BenchmarkPlace) -> dict[str, Any]:
    """Say where the benchmarks of a run are measured, for its stored environment."""
    if place.queue:
        return {"executor": "queue", "queue": place.queue}
    if place.namespace:
        return {"executor": "kubernetes", "namespace": place.namespace}
    names = {
        name for benchmark in plan.benchmarks for name in benchmark.kind.programs(benchmark.spec)
    }
    return {"executor": "local", "programs": programs.program_versions(sorted(names))}


def _interrupt(reason: str) -> None:
    """End the run as Ctrl-C does: remove processes and namespaces, and write the result."""
    raise KeyboardInterrupt


def _measure(
    folder: BenchmarkFolder,
    plan: BenchmarkPlan,
    results: dict[str, BenchmarkResult],
    executor: runner.Executor,
    progress: Progress,
    *,
    warnings: Sequence[str],
    earlier_warnings: Sequence[str] = (),
) -> None:
    """Run what has no result yet, and write the result of the run.

    warnings, earlier_warnings: about other load on this machine, now and before a resume.
    """
    progress.warn(warnings)
    with stopping.stop_on_signals(_interrupt, unwind=True), progress.of_run(folder, plan.workload):
        try:
            runner.run_plan(
                plan,
                results,
                executor,
                folder.store,
                _PlanProgress(plan, len(results), progress),
            )
        except KeyboardInterrupt:
            progress.message(f"interrupted; resume with: {_resume_command(folder)}")
        finally:
            judged = evaluate_benchmarks(plan, results, name=folder.name)
            failed = len(judged.failures)
            is_complete = len(judged.counted) == plan.count
            folder.write(
                RESULT,
                {
                    "schema_version": 1,
                    "verdict": judged.verdict.to_dict(),
                    "elapsed_s": sum(result.length_s for result in results.values()),
                    "permutations": len(plan.permutations),
                    "count": plan.count,
                    "succeeded": len(judged.counted) - failed,
                    "failed": failed,
                    "noticed": list(dict.fromkeys([*earlier_warnings, *warnings])),
                    "finished": (
                        datetime.now(UTC).isoformat(timespec="seconds") if is_complete else None
                    ),
                },
            )


@contextmanager
def _open_executor(place: BenchmarkPlace, folder: BenchmarkFolder) -> Iterator[runner.Executor]:
    """Choose where benchmarks run, and connect to it."""
    checks.raise_first_mistake(
        (
            place.queue and place.namespace,
            "<queue> and <namespace> exclude each other",
            "leave one of them out",
        ),
    )
    if place.namespace:
        cluster = api_calls.connect_cluster(place.namespace)
        if GROUP not in discovery.api_groups(cluster):
            raise errors.Unreachable(
                f"the cluster does not define {GROUP}",
                hint="install the operator: docs/how-to/operator.md",
            )
        yield operator_executor.OperatorExecutor(
            objects.ObjectClient(cluster), place.namespace, folder.name
        )
    elif place.queue:
        with closing(
            queue_executor.QueueExecutor(connect(place.redis_url), place.queue)
        ) as executor:
            yield executor
    else:
        yield local_executor.LocalExecutor(folder.path / LOGS)
