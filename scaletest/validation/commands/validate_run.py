"""The run of scaletest validate: starts or resumes it and prints it, or prints only its plan."""

from dataclasses import fields, replace

from scaletest.cli import options as shared
from scaletest.cli import stored
from scaletest.cli.options import WatchOptions
from scaletest.cli.output import Output
from scaletest.cli.watching import watch_runs
from scaletest.model.labels import Labels
from scaletest.model.wording import as_options
from scaletest.runs.registry import report_of
from scaletest.validation import before_run
from scaletest.validation.folder import ValidationFolder
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.forecast import (
    SCATTERED,
    STEADY,
    forecast,
    longest_load_s,
    longest_run_s,
)
from scaletest.validation.judging.stopping import CAUSE_S
from scaletest.validation.measure.launch import resume, start, warn_of_unlike_devices
from scaletest.validation.options import DeploymentOptions, ValidationPlace
from scaletest.validation.plan import Plan
from scaletest.validation.run_type import RUN_TYPE

# What may stand beside --resume.
AGAIN = {"output", "form", "resume"} | {
    field.name
    for field in (*fields(ValidationPlace), *fields(DeploymentOptions), *fields(WatchOptions))
}


def start_validation(
    plan: Plan,
    place: ValidationPlace,
    *,
    run_dir: str,
    labels: Labels,
    output: Output,
    watch: WatchOptions,
) -> int:
    """Run a new validation and print it; return its exit code."""
    if not place.deployment.deployment:
        before_run.check_plan(plan)
    with watch_runs(watch, place.redis_url or "") as progress:
        folder, result = start(
            plan,
            place,
            before_run.device_names,
            run_dir=run_dir,
            labels=labels,
            progress=progress,
        )
    return _print_result(folder, result, output)


def resume_validation(run: str, place: ValidationPlace, output: Output, watch: WatchOptions) -> int:
    """Go on with a run and print it; return its exit code."""
    shared.refuse_beside("--resume", allowed=AGAIN)
    with watch_runs(watch, place.redis_url or "") as progress:
        folder, result = resume(stored.find(run), place, before_run.device_names, progress)
    return _print_result(folder, result, output)


def _print_result(folder: ValidationFolder, result: Evaluation, output: Output) -> int:
    """Print a run that has ended; return its exit code."""
    # the result of this process, which has also what found no room on the disk
    judged = replace(RUN_TYPE.judge(folder), result=result)
    return stored.deliver_finished(
        report_of(folder, judged), output, {**result.to_dict(), "folder": str(folder.path)}
    )


def show_plan(plan: Plan, output: Output) -> None:
    """Print what a plan will do, how long it takes, and what it cannot tell."""
    expected = [forecast(plan, spread) for spread in (STEADY, SCATTERED)]
    warnings = warn_of_unlike_devices(plan, before_run.device_names)
    # in words, each behind its label
    facts = [("workload", plan.workload)]
    steps = ", ".join(map(str, plan.steps))
    repeats = f" {plan.repeats} times" if plan.repeats > 1 else ""
    length = f"{longest_load_s(plan):g} s of measuring at most"
    if plan.step_s:
        length = f"{plan.step_s:g} s each"
    facts.append(("steps", f"{steps} workers, up and down{repeats}, {length}"))
    aim = f"at least {plan.scale:g}x per doubling"
    if plan.compares:
        aim = "the best number of workers per device"
    facts.append(("wanted", f"{aim}, {plan.tolerate_failures} failures tolerated"))
    if plan.per_device:
        numbers = ", ".join(map(str, plan.per_device))
        facts.append(("devices", f"{plan.devices}, shared by {numbers} workers each"))
    for threshold in plan.thresholds:
        facts.append(("", threshold))
    for estimate in expected:
        widths = ", ".join(f"{width:.1%}" for width in estimate.half_widths)
        duration = f"about {estimate.seconds:.0f} s if run times scatter by {estimate.spread:.1%}"
        facts.append(("takes", f"{duration}; intervals of the steps then ± {widths}"))
    if not plan.step_s:
        duration = f"up to about {longest_run_s(plan):.0f} s"
        facts.append(("takes", f"{duration} if they scatter more, or a doubling stays undecided"))
        causes = f"a doubling that fails is measured for {CAUSE_S:.0f} s each way at least"
        facts.append(("causes", causes))
    facts += [("warning", line) for line in map(as_options, warnings)]
    output.show(
        {
            **plan.to_dict(),
            "steps": list(plan.steps),
            "forecast": [estimate.to_dict() for estimate in expected],
            "at_most_s": longest_run_s(plan),
            "warnings": warnings,
        },
        (f"{label:10}{text}" for label, text in facts),
    )
