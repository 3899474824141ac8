"""The run of scaletest quick: one request alone, then steps of growing numbers of workers."""

import shlex
import uuid

from scaletest.cli.output import echo
from scaletest.cli.progress_views import show_progress
from scaletest.model import Outcome, checks
from scaletest.model.errors import UsageError
from scaletest.model.labels import UNLABELLED
from scaletest.render.numbers import format_seconds, plural
from scaletest.runs.environment import describe_host
from scaletest.validation.before_run import device_names
from scaletest.validation.judging.quick import fit_quick_steps
from scaletest.validation.measure.launch import start
from scaletest.validation.options import DeploymentOptions, ValidationPlace
from scaletest.validation.plan import MAX_WORKERS, Plan
from scaletest.validation.report.quick import quick_lines, seconds_option
from scaletest_workers.before_run import check_devices, check_program
from scaletest_workers.devices import DeviceOptions
from scaletest_workers.runtime import run_once
from scaletest_workers.settings import Settings
from scaletest_workers.workloads.base import ProgramOptions

# For the first request, alone.
LONGEST_FIRST_S = 30.0
# Numbers of workers that suit small and large machines.
LEAST_LIMIT, USUAL_MOST = 8, 64
# Of shorter requests queue and worker cost more than a tenth.
SHORT_REQUEST_S = 0.01
# Exit codes.
INTERRUPTED, FAILED = 4, 5
HERE = ValidationPlace(
    local=True,
    redis_url=None,
    deployment=DeploymentOptions("", "", "", "", 0.0, False),
    no_causes=False,
)


def run(command: tuple[str, ...], limit: int | None, device_glob: str, preset: str) -> int:
    """Look at a program, print the answer, and return the exit code.

    0, or 5 when requests failed, or 4 when it was interrupted. limit: the largest number of
    workers, None for what suits this machine.
    """
    if limit is not None:
        # with one worker alone nothing could be told
        checks.count(limit, "limit", minimum=2, maximum=MAX_WORKERS)
    cores = int(describe_host()["cores"] or 1)
    # twice the smallest power of two that is not below the number of cores
    usual_limit = min(USUAL_MOST, max(LEAST_LIMIT, 2 << (cores - 1).bit_length()))
    most_workers = limit or usual_limit
    devices = DeviceOptions(device_glob, preset=preset)
    check_program(command)
    check_devices(devices, most_workers)

    # one request alone, which says how long the steps must be
    echo(
        f"running it once, on this machine with {plural(cores, 'core')}; it may take"
        f" {LONGEST_FIRST_S:.0f} s",
        err=True,
    )
    first = run_once(
        Settings(
            command=command,
            time_limit_s=LONGEST_FIRST_S,
            devices=devices,
            program=ProgramOptions(null_input=True, null_output=True),
            no_causes=True,
        )
    )
    if first.result.outcome is Outcome.TIMED_OUT:
        raise _too_long_error(command, f"more than {LONGEST_FIRST_S:.0f} s", 2 * LONGEST_FIRST_S)
    if first.result.outcome is not Outcome.SUCCEEDED:
        raise UsageError(
            f"the program failed: {first.result.error}",
            hint=f"try it alone with: scaletest worker --once -- {shlex.join(command)}",
        )
    run_s = first.run_s
    steps = fit_quick_steps(run_s, most_workers)
    if steps is None:
        raise _too_long_error(command, f"{run_s:.1f} s", run_s)

    # the steps
    plan = Plan(
        limit=steps.limit,
        step_s=steps.step_s,
        seconds=run_s,
        queue=f"quick-{uuid.uuid4().hex[:8]}",
        command=command,
        device_glob=device_glob,
        preset=preset,
    )
    short = ""
    if run_s < SHORT_REQUEST_S:
        short = ", so little that the work of scaletest itself counts"
    echo(
        f"it took {format_seconds(run_s)}{short}; measuring with up to {steps.limit} workers, about"
        f" {len(plan.steps) * steps.step_s:.0f} s",
        err=True,
    )
    with show_progress(steps=False) as progress:
        _, result = start(
            plan, HERE, device_names, run_dir="", labels=UNLABELLED, progress=progress
        )
    for line in quick_lines(result):
        echo(line)
    if result.failures:
        return FAILED
    return INTERRUPTED if result.interrupted else 0


def _too_long_error(command: tuple[str, ...], duration: str, run_s: float) -> UsageError:
    line = ["scaletest", "validate", "--limit", "4", *seconds_option(run_s), "--", *command]
    return UsageError(
        f"one request takes {duration}, too long for a quick look",
        hint=f"measure it thoroughly with: {shlex.join(line)}",
    )
