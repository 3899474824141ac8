"""scaletest validate: the main job. Puts Redis, workers and load together, and prints what the
runner found.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import deployment, dryrun, options, plans, sharing
from scaletest.cli import stored as stored_runs
from scaletest.cli.output import echo
from scaletest.cli.stopping import stopping
from scaletest.model.errors import UsageError
from scaletest.model.plan import MIRRORED, ORDERS

if TYPE_CHECKING:
    from scaletest.analysis.evaluation import Evaluation
    from scaletest.cli.deployment import DeploymentTarget
    from scaletest.cli.site import Site
    from scaletest.model import Plan
    from scaletest.validation.folder import StoredValidation, ValidationFolder
    from scaletest.validation.interfaces import ValidationProgress
    from scaletest.validation.runner import ValidationRunner


# What local workers are told of sampling, which may be another thing when a run goes on.
SAMPLING = ("no_causes", "device_metrics_url")


@click.command("validate")
@click.option("--local", is_flag=True, help="Run the workers as processes of this machine.")
@options.redis_url(None)
@deployment.options
@click.option(
    "--limit",
    type=int,
    default=8,
    show_default=True,
    metavar="N",
    help="Largest number of workers.",
)
@click.option(
    "--scale",
    type=float,
    default=1.8,
    show_default=True,
    metavar="X",
    help="Ratio wanted per doubling.",
)
@click.option(
    "--seconds",
    type=float,
    default=1.0,
    show_default=True,
    metavar="S",
    help="Run time of one request.",
)
@click.option(
    "--precision",
    type=float,
    default=0.02,
    show_default=True,
    metavar="P",
    help=(
        "A step has been measured enough when its interval is narrower than this part of its"
        " throughput."
    ),
)
@click.option(
    "--max-step",
    type=float,
    default=0.0,
    metavar="S",
    help=(
        "Measure a step this long at most, its parts together. [default: 60 s, or 30 requests if"
        " they take longer]"
    ),
)
@click.option(
    "--step-time",
    type=float,
    default=0.0,
    metavar="S",
    help="Measure every step this long, no shorter and no longer; half of it on each way.",
)
@click.option(
    "--warmup",
    type=float,
    default=None,
    metavar="S",
    help="Seconds at the start of each step that do not count. [default: found from the data]",
)
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    default=MIRRORED,
    show_default=True,
    help=(
        "Measure every step on the way up and on the way down, which cancels what a machine that"
        " heats up does, or once, ascending."
    ),
)
@click.option(
    "--repeats",
    type=int,
    default=1,
    show_default=True,
    metavar="R",
    help="Measure every step this often, in shuffled order.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the order of repeated steps.",
)
@click.option(
    "--time-limit", type=float, default=0.0, metavar="S", help="Limit of one request; 0: none."
)
@click.option(
    "--tolerate-failures",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Failed requests that do not fail the run.",
)
@sharing.options
@click.option(
    "--no-causes",
    is_flag=True,
    help="Do not let local workers sample where requests spend their time.",
)
@options.device_metrics_url(
    "Let local workers read their devices also from an exporter of Prometheus metrics."
)
@click.option(
    "--run-dir",
    default="",
    metavar="DIR",
    help="Where the run is kept. [default: a new folder below the user's data]",
)
@click.option(
    "--progress",
    type=click.Choice(["auto", "plain"]),
    default="auto",
    show_default=True,
    help="Live line, or plain lines.",
)
@click.option(
    "--resume", default="", metavar="RUN", help="Resume a run that was interrupted or killed."
)
@click.option(
    "--dry-run", is_flag=True, help="Print the plan and how long it will take, and do nothing."
)
@plans.options
@options.output
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ARG...]")
def command(**given: Any) -> int:
    """Measure how throughput grows while the workers are doubled, and judge it.

    \b
    scaletest validate --local --limit 8 --scale 1.8 --seconds 0.5
    scaletest validate --limit 4 --scale 1.5 -- ffmpeg -i FILE -f null -
    scaletest validate --local --device-glob '/dev/dri/renderD*' -- COMMAND --device FILENAME
    scaletest validate --local -f plan.yaml --set limit=16 --threshold 'efficiency(8)>=0.8'
    scaletest validate --deployment NAME -n NAMESPACE --client svc/NAME --seconds 2 --limit 16

    Without --redis-url a private Redis is started for the run. Ctrl-C once drains and prints what
    was measured. Exit code 0 PASS, 3 FAIL, 4 INVALID.
    """
    placed = any(given[name] for name in ("local", "redis_url", "deployment", "dry_run"))
    if given["command"] and not placed:
        echo("the workers run on this machine, as with --local", err=True)
        given["local"] = True
    elif not placed:
        raise UsageError(
            "validate needs to know where to run",
            hint="add --local, --deployment NAME, --redis-url URL, or -- COMMAND for this machine",
        )
    if given["resume"]:
        return _resume(given)
    count = (lambda values: 0) if given["deployment"] else sharing.devices
    plan = plans.plan(click.get_current_context(), f"validate-{uuid.uuid4().hex[:8]}", count)
    if given["deployment"]:
        deployment.refuse_local(plan)
        if given["no_causes"]:
            raise UsageError(
                "--no-causes is for local workers",
                hint="set extraArguments: [--no-causes] in the values of the queue's workers",
            )
        if given["device_metrics_url"]:
            raise UsageError(
                "--device-metrics-url is for local workers",
                hint="set deviceMetricsUrl in the values of the queue",
            )
    if given["dry_run"]:
        dryrun.show(plan, given["output"])
        return 0
    from scaletest.runs.folder import RunFolder
    from scaletest.runs.places import new_path
    from scaletest.validation.folder import ValidationFolder

    target = deployment.target(given, plan.limit) if given["deployment"] else None
    if target:
        plan = target.planned(plan)
    files = RunFolder.create(new_path(os.environ, given["run_dir"]))
    folder = ValidationFolder(files)
    with files.locked():
        folder.begin(plan, sys.argv)
        return _validate(plan, folder, given, None, target)


def _resume(given: dict[str, Any]) -> int:
    """The plan is the stored one: a step measured under another plan would not compare with the
    others.
    """
    from scaletest.validation.folder import ValidationFolder
    from scaletest.validation.runner import complete

    allowed = {"local", "redis_url", "progress", "output", "resume", *SAMPLING, *deployment.NAMES}
    options.refuse_beside("--resume", allowed=allowed)
    folder = ValidationFolder(stored_runs.find(given["resume"]))
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
        target = deployment.target(given, stored.plan.limit) if given["deployment"] else None
        if target:
            target.planned(stored.plan)
        return _validate(stored.plan, folder, given, stored, target)


def _same_machine(stored: StoredValidation) -> None:
    """UsageError when the steps measured so far are those of another machine: a ratio of the two
    says nothing.
    """
    from scaletest.archive.environment import environment

    here = environment([])
    for name in ("machine", "processor", "cores"):
        there = stored.environment.get(name, here[name])
        if stored.measurements and there != here[name]:
            raise UsageError(
                f"the run was begun on another machine: its {name} was {there!r:.80}, here it is"
                f" {here[name]!r:.80}",
                hint="go on there, or make a run of its own here",
            )


def _validate(
    plan: Plan,
    folder: ValidationFolder,
    given: dict[str, Any],
    stored: StoredValidation | None,
    target: DeploymentTarget | None,
) -> int:
    from rich.console import Console

    from scaletest.report import progress
    from scaletest.runs.folder import RESULT
    from scaletest.validation.runner import READY_TIMEOUT_S, ValidationRunner

    errors = Console(stderr=True, highlight=False)
    teller = progress.choose(errors, plain=given["progress"] == "plain")
    runner = ValidationRunner(
        plan,
        folder,
        teller,
        stored=stored,
        ready_s=target.patience_s if target else READY_TIMEOUT_S,
        look=tuple if target else _look(given),
    )
    try:
        with stopping(runner.stop, unwind=bool(target)) as stack:
            if target:
                _warn([*dryrun.doubts(plan), *target.warnings], teller)
                backend, load, samples = target.set_up(plan, runner, stack)
                result = runner.run(backend, load, samples=samples)
            else:
                site = _site(given, folder.log, runner, stack)
                _warn(dryrun.doubts(plan), teller)
                result = _run(plan, runner, site)
            folder.files.write(RESULT, result.to_dict())
    finally:
        teller.close()
    _show_result(result, given["output"], folder)
    return result.verdict.kind.exit_code


def _look(given: dict[str, Any]) -> Callable[[], list[str]]:
    """Begin to look at this machine and its exporter of device metrics; the function gives the
    warnings.
    """
    from scaletest.cli import device_metrics
    from scaletest.load import busy_check

    url = "" if given["no_causes"] else given["device_metrics_url"]
    machine = busy_check.of_this_machine()
    return lambda: [*machine.warnings(), *device_metrics.doubts(url)]


def _warn(lines: Iterable[str], teller: ValidationProgress) -> None:
    for line in lines:
        teller.step(f"warning: {line}")


def _site(given: dict[str, Any], log: Path, runner: ValidationRunner, stack: ExitStack) -> Site:
    """The Redis of the run, reached. What must be taken down again goes onto the stack."""
    from scaletest.broker import EmbeddedServer, connect
    from scaletest.cli.site import Site

    url = given["redis_url"] or stack.enter_context(EmbeddedServer()).url
    redis = connect(url)
    stack.callback(redis.close)
    return Site(url, redis, log, runner, stack, given["no_causes"], given["device_metrics_url"])


def _run(plan: Plan, runner: ValidationRunner, site: Site) -> Evaluation:
    from scaletest.analysis.background import queue_of
    from scaletest.model import Background
    from scaletest.validation.background import BackgroundLoad

    main = Background(
        "main",
        seconds=plan.seconds,
        command=plan.command,
        device_glob=plan.device_glob,
        time_limit_s=plan.time_limit_s,
    )
    others = [
        BackgroundLoad(one, *site.set_up(queue_of(plan, one), one)) for one in plan.background
    ]
    backend, load = site.set_up(plan.queue, main, plan)
    return runner.run(backend, load, others, site.samples(plan.queue))


def _show_result(result: Evaluation, form: str, folder: ValidationFolder) -> None:
    if form == "table":
        from scaletest.report.run import read
        from scaletest.report.validation.report import validation_report
        from scaletest.runs.places import default_root

        stored_runs.show(validation_report(read(folder, default_root(os.environ))))
    else:
        options.show({**result.to_dict(), "folder": str(folder.path)}, form)
