"""Validations that Python code begins: the plan, and the run."""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from scaletest.api.client import Argument
from scaletest.api.result import Result
from scaletest.api.words import as_text, python_names
from scaletest.model.checks import cut_text
from scaletest.model.declared import Seconds
from scaletest.model.errors import UsageError
from scaletest.model.file_documents import file_values, read_value
from scaletest.model.labels import Labels
from scaletest.model.run_progress import ProgressChange, RunProgress
from scaletest.model.workload import WORKLOAD_PROCESS, reference_of
from scaletest.runs import places
from scaletest.runs.folder import PLAN
from scaletest.runs.progress import Progress
from scaletest.validation import before_run
from scaletest.validation import plan as schemas
from scaletest.validation.folder import ValidationFolder
from scaletest.validation.measure import launch
from scaletest.validation.options import DeploymentOptions, ValidationPlace, new_queue
from scaletest_workers.workloads import registry

# MODULE:NAME, a class or function, or any of these, or a program, with its arguments.
AnyWorkload = str | Callable[..., Any] | Sequence[Argument | Callable[..., Any]]
Duration = float | str
_RUNNING = threading.Lock()


class ValidationOptions(TypedDict, total=False):
    """The options of a plan, which Plan describes."""

    limit: int
    scale: float
    seconds: Duration
    step_time: Duration
    precision: float
    max_step: Duration
    warmup: Duration | None
    device_glob: str
    preset: str
    per_device: Sequence[int]
    time_limit: Duration
    tolerate_failures: int
    repeats: int
    price: float
    thresholds: Sequence[str]
    background: Sequence[Mapping[str, Any]]


class Plan:
    """What a validation does: a workload, and the options of `scaletest validate`.

    workload: a program and its arguments; or a class or function that other processes can import,
    itself or as "module:name", or the name of a registered one. A list has the words for a class
    or function, too, as in [Thumbnails, "--width", 640]. Without it the requests sleep.
    limit: the largest number of workers; the steps are 1, 2, 4, ... and the limit itself.
    scale: the ratio of throughput that every doubling must reach, from 1 to 2.
    seconds: how long a request takes: of a sleep, else an estimate.
    step_time: for how long a step is measured at least; max_step: at most.
    precision: relative half-width of a throughput that is precise enough.
    warmup: how long requests run before a step is measured.
    device_glob: device files; preset: intel, nvidia or amd.
    per_device: numbers of workers that share a device, to compare.
    time_limit: after which a request is stopped; 0: never.
    tolerate_failures: failed requests that do not fail the run.
    repeats: how many ascending passes there are, and how many descending ones.
    price: what an hour of one worker costs, to tell what 1,000 requests cost.
    thresholds: further conditions of a PASS, as in "efficiency(8)>=0.8".
    background: load on other queues meanwhile, a mapping for each.

    These are the options of the command and the keys of a plan file. A duration is a number of
    seconds, or a text with its unit, as in "500ms" or "3m".

    Example:
        plan = scaletest.Plan(["sleep", "0.2"], limit=4, thresholds=["efficiency(4)>=0.9"])
        result = scaletest.validate(plan)

    Raises:
        InvalidValue: an option is unknown, or its value breaks its rule; it is checked at once.
        UsageError: the workload is none, or no other process can import it.
    """

    def __init__(self, workload: AnyWorkload = (), **options: Unpack[ValidationOptions]) -> None:
        values: dict[str, Any] = {**options}
        if workload != () and "command" in values:
            raise UsageError("workload and command name two programs", hint="give one of them")
        values.setdefault("command", _workload_words(workload))
        with python_names():
            self._plan = schemas.of_options(values, "validate")
        self._is_limited = "limit" in options

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers of workers that are measured."""
        return self._plan.steps

    def to_dict(self) -> dict[str, Any]:
        """Return all options as plain values, as a plan file for `scaletest validate -f` has them.

        Example:
            Path("plan.json").write_text(json.dumps(plan.to_dict()))

        Raises: nothing
        """
        return file_values(self._plan)

    def __repr__(self) -> str:
        return f"<Plan of {self._plan.workload!r} with {self.steps[-1]} workers at most>"


def validate(
    workload: AnyWorkload | Plan = (),
    *,
    redis_url: str = "",
    deployment: str = "",
    namespace: str = "",
    context: str = "",
    client: str = "",
    ready_timeout: Duration = 120.0,
    pause_autoscalers: bool = False,
    no_causes: bool = False,
    run_dir: str | os.PathLike[str] = "",
    name: str = "",
    note: str = "",
    resume: str | os.PathLike[str] = "",
    on_progress: Callable[[RunProgress], object] | None = None,
    **options: Unpack[ValidationOptions],
) -> Result:
    """Measure how throughput grows while the workers are doubled, and judge it.

    The same as `scaletest validate`, but nothing is printed.

    workload, options: those of a Plan, or a whole Plan instead.
    redis_url: of the Redis to use; by default the run has one of its own.
    deployment: whose pods are the workers; by default they are processes of this machine.
    namespace, context: of the Deployment; by default those of the current context.
    client: svc/NAME[:PORT] or the URL of a client in the cluster, which submits instead.
    ready_timeout: for how long to wait until the Deployment's pods are ready, a duration.
    pause_autoscalers: keep autoscalers of the Deployment from changing it meanwhile.
    no_causes: leave out where requests spend their time.
    run_dir: a new folder for the run; by default it gets its name among all runs.
    name, note: labels by which the run is found again.
    resume: go on with this run, which was interrupted or killed, in place of a new one; named as
    for `load_run`. It has its plan and labels, and goes on where it was begun: give redis_url or
    deployment again.
    on_progress: called with the state of the run when it changes, for mere figures once a second,
    in the thread of the caller; what it raises ends the run.

    Whatever ends the run, its workers, its Redis and the pods are put back first. In the main
    thread a first Ctrl-C or SIGTERM ends the step in order and a second one at once; then the
    signal goes its usual way, as KeyboardInterrupt for Ctrl-C. What was measured stays in the run
    folder, and `resume` goes on with it.

    A bad verdict is no error: see `Result.require`.

    Example:
        result = scaletest.validate(["ffmpeg", "-i", "in.mp4", "-f", "null", "-"], limit=8)
        result.require()

    Raises:
        InvalidValue: an option breaks its rule.
        UsageError: it cannot work.
        NoDevice: no device matches, or it cannot be used.
        Unreachable: there is no Redis, or no Kubernetes.
        WaitTimeout: workers are not ready in time.
    """
    # a worker that imports the file of the workload would start validations without end
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.name == WORKLOAD_PROCESS:
        raise UsageError(
            "the workload's file validates it also when a worker imports it",
            hint='call validate below: if __name__ == "__main__":',
        )
    # where it runs
    target = DeploymentOptions(
        deployment,
        namespace,
        context,
        client,
        read_value(Seconds, ready_timeout, "ready_timeout", "validate()"),
        pause_autoscalers,
    )
    target.refuse_alone()
    place = ValidationPlace(
        local=not deployment and not redis_url,
        redis_url=redis_url or None,
        deployment=target,
        no_causes=no_causes,
    )
    labels = Labels(name, note)

    def show_state(change: ProgressChange, state: RunProgress, message: str) -> None:
        if on_progress is not None:
            on_progress(state)

    progress = Progress(show_state, every_s=1.0)
    if resume:
        if workload != () or options or run_dir or labels != Labels():
            raise UsageError(
                "a run that is resumed has its workload, options, folder and labels already",
                hint="give only where it runs",
            )
        with python_names():
            files = places.find(os.fspath(resume), os.environ)
            plan = ValidationFolder(files.path).plan()
        with _only_validation(), _share_import_path(plan), python_names():
            folder, _ = launch.resume(files, place, before_run.device_names, progress, hand_on=True)
        return Result(folder)
    if not isinstance(workload, Plan):
        workload = Plan(workload, **options)
    elif options:
        raise UsageError(
            f"a plan is complete: {', '.join(options)} cannot be combined with it",
            hint="give the options to Plan",
        )
    return Result(_run_new(workload, place, os.fspath(run_dir), labels, progress))


def _run_new(
    plan: Plan, place: ValidationPlace, run_dir: str, labels: Labels, progress: Progress
) -> ValidationFolder:
    """Run a new validation, and return its folder; UsageError where it cannot work."""
    path = places.new_path(os.environ, run_dir).absolute()
    with _only_validation(), _share_import_path(plan._plan), python_names():
        # it gets a queue of its own
        unchecked = replace(plan._plan, queue=new_queue())
        prepared = place.prepare(unchecked, before_run.device_names, is_limited=plan._is_limited)
        if not place.deployment.deployment:
            before_run.check_plan(prepared)
        folder, _ = launch.start(
            prepared,
            place,
            before_run.device_names,
            run_dir=str(path),
            labels=labels,
            progress=progress,
            command_line=_command_line(place, path),
        )
    return folder


def _workload_words(workload: AnyWorkload) -> list[str]:
    """Return the words by which a worker finds the workload."""
    if callable(workload):
        return [reference_of(workload)]
    if not isinstance(workload, str):
        return [reference_of(word) if callable(word) else as_text(word) for word in workload]
    if any(map(str.isspace, workload)):
        raise UsageError(
            f"the workload {cut_text(repr(workload), limit=80)} is neither a list nor the name of a"
            " workload",
            hint='give a program and its arguments, e.g. ["sleep", "0.2"]',
        )
    return [registry.resolve_name(workload)]


@contextmanager
def _only_validation() -> Iterator[None]:
    """Raise UsageError while another validation runs in this process."""
    if not _RUNNING.acquire(blocking=False):
        raise UsageError(
            "another validation is running in this process, and each would disturb the other",
            hint="start it when the other has ended",
        )
    try:
        yield
    finally:
        _RUNNING.release()


@contextmanager
def _share_import_path(plan: schemas.Plan) -> Iterator[None]:
    """Let the workers of a workload in Python import what this process can."""
    before = os.environ.get("PYTHONPATH")
    commands = [plan.command, *(load.command for load in plan.background)]
    if any(map(registry.is_python, commands)):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH", None)
        if before is not None:
            os.environ["PYTHONPATH"] = before


def _command_line(place: ValidationPlace, path: Path) -> list[str]:
    """Return the command that makes the same run in a shell."""
    target = place.deployment
    pairs = {
        "--redis-url": place.redis_url,
        "--deployment": target.deployment,
        "--namespace": target.namespace,
        "--context": target.context,
        "--client": target.client,
        "--ready-timeout": f"{target.ready_timeout:g}" if target.deployment else "",
        "-f": str(path / PLAN),
    }
    flags = {
        "--local": place.local,
        "--pause-autoscalers": target.pause_autoscalers,
        "--no-causes": place.no_causes,
    }
    line = ["scaletest", "validate", *(flag for flag, is_set in flags.items() if is_set)]
    for option, text in pairs.items():
        if text:
            line += [option, text]
    return line
