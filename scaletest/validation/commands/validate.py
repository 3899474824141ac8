"""The command `scaletest validate`: its options, and what they exclude."""

import shutil
from dataclasses import replace
from pathlib import Path

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli import workloads
from scaletest.cli.headings import ManyOptionsCommand, under_heading
from scaletest.cli.output import Output
from scaletest.cli.plan_settings import plan_option
from scaletest.model.errors import UsageError
from scaletest.model.labels import Labels
from scaletest.validation.commands import service_options
from scaletest.validation.commands.service_options import ServiceOptions
from scaletest.validation.options import ValidationPlace
from scaletest.validation.plan import Plan


@cloup.command(
    "validate",
    cls=ManyOptionsCommand,
    common="--limit --scale --max-step --threshold --device-glob --deployment"
    " --client --ui --dry-run --output",
)
@under_heading("Target")
@click.option("--local", is_flag=True, help="Run the workers as processes of this machine.")
@shared.redis_url(None)
@under_heading("Kubernetes")
@click.option(
    "--deployment",
    default="",
    metavar="NAME",
    help=(
        "Scale this Deployment of workers on Kubernetes; with --service it may be statefulset/NAME"
        " or KIND.GROUP/NAME too."
    ),
)
@shared.namespace_option(
    "Look for the Deployment and the client in this namespace. [default: the current one]"
)
@shared.context
@click.option(
    "--client",
    default="",
    metavar="svc/NAME[:PORT]|URL",
    help=(
        "Steer this scaletest client: a Service, through the proxy of the API server,"
        " or a URL. [default: submit from here, with --redis-url]"
    ),
)
@click.option(
    "--ready-timeout",
    type=shared.DURATION,
    default="2m",
    show_default=True,
    metavar="TIME",
    help="Wait at most this long until the pods of a step are ready.",
)
@click.option(
    "--pause-autoscalers",
    is_flag=True,
    help="Hold HPA or KEDA during the run, instead of refusing to run.",
)
@service_options.options
@under_heading("Load")
@plan_option(Plan, "limit", "N")
@under_heading("Verdict")
@plan_option(Plan, "scale", "X")
@under_heading("Load")
@plan_option(Plan, "seconds", "TIME")
@under_heading("Accuracy")
@plan_option(Plan, "precision", "P")
@plan_option(Plan, "max_step", "TIME")
@plan_option(Plan, "step_time", "TIME")
@plan_option(Plan, "warmup", "TIME")
@plan_option(Plan, "repeats", "R")
@under_heading("Load")
@plan_option(Plan, "time_limit", "TIME")
@under_heading("Verdict")
@plan_option(Plan, "tolerate_failures", "N")
@click.option(
    "--price",
    type=shared.PRICE,
    default=0.0,
    metavar="AMOUNT/h",
    help="Tell what 1,000 requests cost when a worker costs this much.",
)
@under_heading("Devices")
@plan_option(Plan, "device_glob", "GLOB")
@shared.preset("Let the workers use the devices of this vendor.")
@plan_option(Plan, "per_device", "K[,K...]")
@under_heading("Accuracy")
@click.option(
    "--no-causes",
    is_flag=True,
    help="Do not let local workers sample where requests spend their time.",
)
@under_heading("Run")
@click.option(
    "--run-dir",
    default="",
    metavar="DIR",
    help="Keep the run in this folder. [default: a new folder below the user's data]",
)
@shared.labels
@shared.watch
@under_heading("Run")
@click.option(
    "--resume", default="", metavar="RUN", help="Resume this run, which was interrupted or killed."
)
@click.option(
    "--dry-run", is_flag=True, help="Print the plan and how long it will take, and do nothing."
)
@click.option(
    "-f",
    "--file",
    default="",
    metavar="PLAN",
    help="Take settings from this YAML file, or from standard input (-).",
)
@under_heading("Verdict")
@plan_option(Plan, "thresholds", "EXPR", "--threshold", "SCALETEST_VALIDATE_THRESHOLD")
@shared.report_output()
@under_heading("Target")
@workloads.command_of_workers("[-- COMMAND ARG...]")
@shared.call_with_groups
def command(
    *,
    place: ValidationPlace,
    service: ServiceOptions,
    run_dir: str,
    labels: Labels,
    watch: shared.WatchOptions,
    resume: str,
    dry_run: bool,
    output: Output,
    command: tuple[str, ...],
) -> int:
    """Measure how throughput grows while the workers are doubled, and judge it.

    \b
    scaletest validate --local --limit 8 --scale 1.8 --seconds 0.5
    scaletest validate --limit 4 --scale 1.5 -- ffmpeg -i input.mp4 -f null -
    scaletest validate --limit 4 --workload thumbs.py:Thumbs -- --width 640
    scaletest validate --local --device-glob '/dev/dri/renderD*' -- \\
      vainfo --display drm --device FILENAME
    scaletest validate --local -f plan.yaml --limit 16 \\
      --threshold 'efficiency(8)>=0.8'
    scaletest validate -n scaletest --deployment scaletest-sleep-worker \\
      --client svc/scaletest-sleep-client --seconds 2s --limit 16
    scaletest validate --service http://127.0.0.1:8000 --openai chat --model M \\
      --set-replicas 'docker compose up -d --wait --scale vllm={n}'

    Without --redis-url a private Redis is started for the run. Ctrl-C once lets running requests
    end and prints what was measured. Exit code 0 PASS, 3 FAIL, 4 INVALID.
    """
    # what a run needs takes a while to import, and --help needs none of it
    from scaletest.validation.before_run import device_names
    from scaletest.validation.commands import validate_options, validate_run

    service_options.refuse_without_effect(service.service)
    if service.service:
        from scaletest.validation.commands import service_run

        return service_run.run(
            service,
            place.deployment,
            run_dir,
            labels,
            output=output,
            watch=watch,
            dry_run=dry_run,
        )

    has_place = place.local or place.redis_url or place.deployment.deployment or dry_run
    if command and not has_place and not _is_plan_file(command[0]):
        place = replace(place, local=True)
    elif not has_place:
        hint = "add --local, --deployment NAME, --redis-url URL, or -- COMMAND for this machine"
        if command:
            hint = f"for a plan file: -f {command[0]}; for a program: --local -- ./{command[0]}"
        raise UsageError("validate needs to know where to run", hint=hint)
    if resume:
        return validate_run.resume_validation(resume, place, output, watch)
    plan, is_limited = validate_options.read_plan(click.get_current_context())
    plan = place.prepare(plan, device_names, is_limited=is_limited)
    if dry_run:
        validate_run.show_plan(plan, output)
        return 0
    return validate_run.start_validation(
        plan, place, run_dir=run_dir, labels=labels, output=output, watch=watch
    )


def _is_plan_file(word: str) -> bool:
    """Return whether the first word is a file that is no program, such as plan.yaml without -f."""
    is_file = Path(word).is_file() or Path(word).suffix in (".yaml", ".yml")
    return is_file and shutil.which(word) is None
