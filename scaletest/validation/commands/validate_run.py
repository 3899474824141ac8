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
from scaletest.validation.judging.forecast import expected_run_s, longest_load_s, longest_run_s
from scaletest.validation.judging.stopping import CAUSE_S
from scaletest.validation.measure.launch import resume, start, warn_of_unlike_devices
from scaletest.validation.options import DeploymentOptions, ValidationPlace
from scaletest.validation.plan import Plan
from scaletest.validation.run_type import RUN_TYPE

# Options that may stand beside --resume, by parameter name: those that say where and how to run.
# All else is in the plan on record.
BESIDE_RESUME = {"output", "form", "resume"} | {
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
    """Run a new validation and print it; return the exit code of its verdict.

    run_dir: the folder of the run, "" for a new one. watch: how its progress is shown.
    """
    if not place.deployment.deployment:
        before_run.check_plan(plan)
    with watch_runs(watch) as progress:
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
    """Measure what a run still lacks and print it; return the exit code of its verdict.

    run: its name, its path, or a word such as LAST. UsageError beside options that its plan has.
    """
    shared.refuse_beside("--resume", allowed=BESIDE_RESUME)
    with watch_runs(watch) as progress:
        folder, result = resume(stored.find(run), place, before_run.device_names, progress)
    return _print_result(folder, result, output)


def _print_result(folder: ValidationFolder, result: Evaluation, output: Output) -> int:
    """Print a run that has ended; return the exit code of its verdict."""
    # The folder lacks what could not be written because the disk was full. The result that this
    # process holds has it too, so it replaces the one that is read from the folder.
    judged = replace(RUN_TYPE.judge(folder), result=result)
    return stored.deliver_finished(report_of(folder, judged), output)


def show_plan(plan: Plan, output: Output) -> None:
    """Print what a plan will do, how long it takes, and what it cannot tell."""
    warnings = warn_of_unlike_devices(plan, before_run.device_names)
    duration = f"about {expected_run_s(plan):.0f} s if run times are steady"
    causes = []
    # steps of a given length last as long whatever they show
    if not plan.step_s:
        text = f"a doubling that fails is measured for {CAUSE_S:.0f} s each way at least"
        causes.append(("causes", text))
        duration += (
            f", up to about {longest_run_s(plan):.0f} s if they scatter, or a doubling stays"
            " undecided"
        )
    lines = [*_describe_plan(plan), ("takes", duration), *causes]
    lines += [("warning", warning) for warning in map(as_options, warnings)]
    output.show(
        {
            **plan.to_dict(),
            "steps": list(plan.steps),
            "expected_s": expected_run_s(plan),
            "at_most_s": longest_run_s(plan),
            "warnings": warnings,
        },
        (f"{label:10}{text}" for label, text in lines),
    )


def _describe_plan(plan: Plan) -> list[tuple[str, str]]:
    """Return what a plan measures and what it wants, as lines of a label and a text."""
    steps = ", ".join(map(str, plan.steps))
    repeats = f" {plan.repeats} times" if plan.repeats > 1 else ""
    length = f"{longest_load_s(plan):g} s of measuring at most"
    if plan.step_s:
        length = f"{plan.step_s:g} s each"
    aim = f"at least {plan.scale:g}x per doubling"
    if plan.compares:
        aim = "the best number of workers per device"
    lines = [
        ("workload", plan.workload),
        ("steps", f"{steps} workers, up and down{repeats}, {length}"),
        ("wanted", f"{aim}, {plan.tolerate_failures} failures tolerated"),
    ]
    if plan.per_device:
        numbers = ", ".join(map(str, plan.per_device))
        lines.append(("devices", f"{plan.devices}, shared by {numbers} workers each"))
    return lines + [("", threshold) for threshold in plan.thresholds]
