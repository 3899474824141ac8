"""What scaletest validate does: it shows a plan, or puts its parts together, runs and reports."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from scaletest.analysis.background import queue_of
from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.forecast import SCATTERED, STEADY, forecast, longest_s
from scaletest.analysis.separability import separability
from scaletest.archive.environment import environment
from scaletest.broker import EmbeddedServer, connect
from scaletest.cli import device_metrics, sharing
from scaletest.cli import options as shared
from scaletest.cli import stored as stored_runs
from scaletest.cli.output import echo
from scaletest.cli.stopping import stopping
from scaletest.cli.validate_options import NAMES, ValidateOptions, refuse_local
from scaletest.load import busy_check
from scaletest.model import Background, Plan
from scaletest.model.errors import UsageError
from scaletest.report import progress
from scaletest.report.run import read
from scaletest.report.validation.report import validation_report
from scaletest.runs.folder import RESULT, RunFolder
from scaletest.runs.places import default_root, new_path
from scaletest.validation.background import BackgroundLoad
from scaletest.validation.deployment import DeploymentTarget, find_target
from scaletest.validation.folder import StoredValidation, ValidationFolder
from scaletest.validation.interfaces import ValidationProgress
from scaletest.validation.runner import READY_TIMEOUT_S, ValidationRunner, complete
from scaletest.validation.site import LocalSite

# What local workers are told of sampling, which may be another thing when a run goes on.
SAMPLING = ("no_causes", "device_metrics_url")


def start(plan: Plan, options: ValidateOptions) -> int:
    """Run a new validation; its exit code."""
    target = _target(options, plan.limit)
    if target:
        plan = replace(plan, queue=target.queue)
    files = RunFolder.create(new_path(os.environ, options.run_dir))
    folder = ValidationFolder(files)
    with files.locked():
        folder.begin(plan, sys.argv)
        return _validate(plan, folder, options, None, target)


def resume(options: ValidateOptions) -> int:
    """Go on with a run; its exit code. The plan is the stored one: a step measured under another
    plan would not compare with the others.
    """
    allowed = {"local", "redis_url", "progress", "output", "resume", *SAMPLING, *NAMES}
    shared.refuse_beside("--resume", allowed=allowed)
    folder = ValidationFolder(stored_runs.find(options.resume))
    with folder.files.locked():
        stored = folder.load()
        stored = replace(stored, measurements=complete(stored.measurements, stored.records))
        # of a mirrored run nobody knows before whether another pair is needed
        if (
            stored.plan.mirrored
            or len(stored.measurements) < len(stored.plan.steps) * stored.plan.repeats
        ):
            _same_machine(stored)
            sharing.same_devices(stored.plan)
        folder.forget_unfinished(stored)
        target = _target(options, stored.plan.limit)
        if target:
            refuse_local(stored.plan)
        return _validate(stored.plan, folder, options, stored, target)


def _target(options: ValidateOptions, limit: int) -> DeploymentTarget | None:
    """The Deployment that is validated, checked; None when workers run on this machine."""
    where = options.deployment
    if not where.deployment:
        return None
    if options.local:
        raise UsageError("--local and --deployment exclude each other", hint="give one of them")
    return find_target(
        where.deployment,
        namespace=where.namespace,
        context=where.context,
        client=where.client,
        redis_url=options.redis_url or "",
        ready_s=where.ready_timeout,
        may_pause=where.pause_autoscalers,
        limit=limit,
    )


def _same_machine(stored: StoredValidation) -> None:
    """UsageError when the steps measured so far are those of another machine: a ratio of the two
    says nothing.
    """
    here = environment([])
    for name in ("machine", "processor", "cores"):
        recorded = stored.environment.get(name, here[name])
        if stored.measurements and recorded != here[name]:
            raise UsageError(
                f"the run was begun on another machine: its {name} was {recorded!r:.80}, here it is"
                f" {here[name]!r:.80}",
                hint="go on there, or make a run of its own here",
            )


def _validate(
    plan: Plan,
    folder: ValidationFolder,
    options: ValidateOptions,
    stored: StoredValidation | None,
    target: DeploymentTarget | None,
) -> int:
    errors = Console(stderr=True, highlight=False)
    teller = progress.choose(errors, plain=options.progress == "plain")
    runner = ValidationRunner(
        plan,
        folder,
        teller,
        stored=stored,
        ready_s=target.patience_s if target else READY_TIMEOUT_S,
        look=tuple if target else _look(options),
    )
    try:
        with stopping(runner.stop, unwind=bool(target)) as stack:
            if target:
                _warn([*_doubts(plan), *target.warnings], teller)
                backend, load, samples = target.set_up(plan, runner, stack)
                result = runner.run(backend, load, samples=samples)
            else:
                site = _site(options, folder.log, runner, stack)
                _warn(_doubts(plan), teller)
                result = _run(plan, runner, site)
            folder.files.write(RESULT, result.to_dict())
    finally:
        teller.close()
    _show_result(result, options.output, folder)
    return result.verdict.kind.exit_code


def _look(options: ValidateOptions) -> Callable[[], list[str]]:
    """Begin to look at this machine and its exporter of device metrics; the function gives the
    warnings.
    """
    url = "" if options.no_causes else options.device_metrics_url
    machine = busy_check.of_this_machine()
    return lambda: [*machine.warnings(), *device_metrics.doubts(url)]


def _warn(lines: Iterable[str], teller: ValidationProgress) -> None:
    for line in lines:
        teller.step(f"warning: {line}")


def _site(
    options: ValidateOptions, log: Path, runner: ValidationRunner, stack: ExitStack
) -> LocalSite:
    """The Redis of the run, reached. What must be taken down again goes onto the stack."""
    url = options.redis_url or stack.enter_context(EmbeddedServer()).url
    redis = connect(url)
    stack.callback(redis.close)
    return LocalSite(
        url,
        redis,
        log,
        runner,
        stack,
        sharing.same_devices,
        options.no_causes,
        options.device_metrics_url,
    )


def _run(plan: Plan, runner: ValidationRunner, site: LocalSite) -> Evaluation:
    main = Background(
        "main",
        seconds=plan.seconds,
        command=plan.command,
        device_glob=plan.device_glob,
        time_limit_s=plan.time_limit_s,
    )
    others = [
        BackgroundLoad(load, *site.set_up(queue_of(plan, load), load)) for load in plan.background
    ]
    backend, load = site.set_up(plan.queue, main, plan)
    return runner.run(backend, load, others, site.samples(plan.queue))


def _show_result(result: Evaluation, form: str, folder: ValidationFolder) -> None:
    if form == "table":
        stored_runs.show(validation_report(read(folder, default_root(os.environ))))
    else:
        shared.show({**result.to_dict(), "folder": str(folder.path)}, form)


def _doubts(plan: Plan) -> list[str]:
    """What this plan cannot tell, however well it is measured."""
    points, who = (
        (plan.per_device, "workers on each device") if plan.compares else (plan.steps, "workers")
    )
    scatter = separability(points, plan.parts * plan.repeats, who=who)
    lines = [] if scatter.separable or len(points) < 3 else [scatter.sentence]
    return [*lines, *sharing.doubts(plan)]


def _order(plan: Plan) -> str:
    """In which order the steps are measured, in words."""
    if plan.mirrored:
        return "up and down"
    return f"{plan.repeats} times in shuffled order" if plan.repeats > 1 else "ascending"


def _longest(plan: Plan) -> str:
    """How long steps take at most, in words."""
    if plan.step_s:
        return f"{plan.step_s:g} s each"
    if plan.mirrored:
        return f"{longest_s(plan):g} s of measuring at most"
    return f"{plan.longest_s:g} s at most each"


def show_plan(plan: Plan, form: str) -> None:
    """Print what a plan will do, how long it takes, and what it cannot tell."""
    expected = [forecast(plan, spread) for spread in (STEADY, SCATTERED)]
    if form != "table":
        rows = [estimate.to_dict() for estimate in expected]
        shared.show(
            {
                **plan.to_dict(),
                "steps": list(plan.steps),
                "forecast": rows,
                "warnings": _doubts(plan),
            },
            form,
        )
        return
    echo(f"workload  {plan.workload}")
    steps = ", ".join(map(str, plan.steps))
    echo(f"steps     {steps} workers, {_order(plan)}, {_longest(plan)}")
    aim = (
        "the best number of workers per device"
        if plan.compares
        else f"at least {plan.scale:g}x per doubling"
    )
    echo(f"wanted    {aim}, {plan.tolerate_failures} failures tolerated")
    if plan.per_device:
        numbers = ", ".join(map(str, plan.per_device))
        echo(
            f"devices   {plan.devices}, shared by {numbers} workers each, policy"
            f" {plan.device_policy}"
        )
    for text in plan.thresholds:
        echo(f"          {text}")
    for estimate in expected:
        widths = ", ".join(f"{width:.1%}" for width in estimate.half_widths)
        echo(
            f"takes     about {estimate.seconds:.0f} s if run times scatter by"
            f" {estimate.spread:.1%}; intervals of the steps then ± {widths}"
        )
    for line in _doubts(plan):
        echo(f"warning   {line}")
