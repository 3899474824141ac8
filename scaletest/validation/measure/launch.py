"""Start and resume validations: the folder, the workers and loads, the run, and its result."""

import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from scaletest.load import busy_check
from scaletest.model.errors import UsageError
from scaletest.model.labels import Labels
from scaletest.runs.environment import read_environment
from scaletest.runs.folder import RunFolder
from scaletest.runs.places import new_path
from scaletest.runs.progress import Progress
from scaletest.runs.stopping import stop_on_signals
from scaletest.validation.folder import StoredValidation, ValidationFolder
from scaletest.validation.judging.background import queue_of
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.measure.deployment_target import DeploymentTarget, find_target
from scaletest.validation.measure.interfaces import BackgroundLoad
from scaletest.validation.measure.local import LocalSite
from scaletest.validation.measure.runner import (
    READY_TIMEOUT_S,
    ValidationRunner,
    complete_measurements,
)
from scaletest.validation.options import OWN_QUEUE, Devices, ValidationPlace
from scaletest.validation.plan import Background, Plan


def start(
    plan: Plan,
    place: ValidationPlace,
    devices: Devices,
    *,
    run_dir: str,
    labels: Labels,
    progress: Progress,
    command_line: Sequence[str] = (),
) -> tuple[ValidationFolder, Evaluation]:
    """Run a new validation.

    command_line: makes the same run, where Python code begins this one; such code goes on after a
    signal.
    """
    target = _find_target(place, plan.limit)
    if target:
        plan = replace(plan, queue=target.queue)
    folder = ValidationFolder.create(new_path(os.environ, run_dir))
    with folder.locked():
        folder.begin(plan, read_environment(command_line or sys.argv, plan.device_glob), labels)
        with progress.of_run(folder, plan.workload):
            return folder, _validate(
                StoredValidation(plan),
                folder,
                place,
                target=target,
                devices=devices,
                progress=progress,
                hand_on=bool(command_line),
            )


def resume(
    files: RunFolder,
    place: ValidationPlace,
    devices: Devices,
    progress: Progress,
    *,
    hand_on: bool = False,
) -> tuple[ValidationFolder, Evaluation]:
    """Go on with a run under the stored plan.

    A step measured under another plan would not compare with the others. hand_on: Python code
    begins this, which goes on after a signal.
    """
    folder = ValidationFolder(files.path)
    with folder.locked():
        stored = folder.load()
        complete = complete_measurements(stored.measurements, stored.records)
        stored = replace(stored, measurements=complete)
        plan = stored.plan
        # Also where every step is measured: nobody knows yet whether a further pair of ways is
        # needed.
        _refuse_other_machine(stored)
        refuse_other_devices(plan, devices)
        target = _find_target(place, plan.limit)
        place.deployment.refuse_local(plan)
        is_same = plan.queue == target.queue if target else plan.queue.startswith(OWN_QUEUE)
        if not is_same:
            raise UsageError(
                f"the run was started with the workers of queue {plan.queue}, and not with these",
                hint="resume it where it was started: with its <deployment>, or without one",
            )
        folder.forget_unfinished(stored)
        with progress.of_run(folder, plan.workload):
            return folder, _validate(
                stored,
                folder,
                place,
                target=target,
                devices=devices,
                progress=progress,
                hand_on=hand_on,
            )


def warn_of_unlike_devices(plan: Plan, devices: Devices) -> list[str]:
    """Return a warning where devices are compared that are not alike."""
    models = Counter(devices(plan)) if plan.compares else Counter[str]()
    if len(models) < 2:
        return []
    names = ", ".join(f"{count} {name or 'unknown'}" for name, count in models.most_common())
    return [
        f"the devices are not alike ({names}): compare on one kind, with a narrower <device_glob>"
    ]


def refuse_other_devices(plan: Plan, devices: Devices) -> None:
    """Raise UsageError when there are not as many devices as when the run was begun."""
    count = len(devices(plan)) if plan.devices else 0
    if count != plan.devices:
        raise UsageError(
            f"the run was started with {plan.devices} devices, and there are {count} now",
            hint="bring them back, or start a new run",
        )


def _find_target(place: ValidationPlace, limit: int) -> DeploymentTarget | None:
    """Return the Deployment that is validated, checked; None when workers run on this machine."""
    if not place.deployment.deployment:
        return None
    if place.local:
        raise UsageError("<local> and <deployment> exclude each other", hint="give one of them")
    return find_target(place.deployment, place.redis_url or "", limit)


def _refuse_other_machine(stored: StoredValidation) -> None:
    """Raise UsageError when the steps measured so far are those of another machine.

    A ratio of steps on two machines says nothing.
    """
    here = read_environment([])
    for name in ("machine", "processor", "cores"):
        recorded = stored.environment.get(name, here[name])
        if stored.measurements and recorded != here[name]:
            raise UsageError(
                f"the run was started on another machine: its {name} was {recorded!r:.80},"
                f" here it is {here[name]!r:.80}",
                hint="resume it there, or start a new run here",
            )


def _validate(
    stored: StoredValidation,
    folder: ValidationFolder,
    place: ValidationPlace,
    *,
    target: DeploymentTarget | None,
    devices: Devices,
    progress: Progress,
    hand_on: bool,
) -> Evaluation:
    """Measure what is not stored yet, with local workers or with the target."""
    plan = stored.plan
    runner = ValidationRunner(
        plan,
        folder,
        progress,
        stored=stored,
        ready_s=target.patience_s if target else READY_TIMEOUT_S,
        # what else this machine does while it runs the workers
        machine_warnings=tuple if target else busy_check.of_this_machine().warnings,
    )
    unwind = hand_on or bool(target)
    with stop_on_signals(runner.stop, unwind=unwind, hand_on=hand_on) as stack:
        progress.warn(warn_of_unlike_devices(plan, devices))
        if target:
            progress.warn(target.warnings)
            backend, load, samples = target.set_up(plan, runner, stack)
            return runner.run(backend, load, samples=samples)
        site = LocalSite(place, folder.log, runner, stack)
        # what the workers of the run do, as if it were one of the other queues
        main = Background(
            "main",
            seconds=plan.seconds,
            command=plan.command,
            device_glob=plan.device_glob,
            time_limit_s=plan.time_limit_s,
        )
        others = [
            BackgroundLoad(other, *site.set_up(queue_of(plan, other), other))
            for other in plan.background
        ]
        workers, work = site.set_up(plan.queue, main, plan)
        return runner.run(workers, work, others, site.samples(plan.queue))
