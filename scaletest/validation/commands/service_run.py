"""What scaletest validate --service prints: a plan, and a run."""

from scaletest.cli import stored
from scaletest.cli.options import WatchOptions
from scaletest.cli.output import Output
from scaletest.cli.watching import watch_runs
from scaletest.load.http import HttpWork
from scaletest.load.http_call import HttpCall
from scaletest.load.requests import make_bodies, make_call
from scaletest.model.errors import UsageError
from scaletest.model.labels import Labels
from scaletest.model.masking import mask_passwords
from scaletest.runs.registry import report_of
from scaletest.validation.commands.service_options import ServiceOptions
from scaletest.validation.options import DeploymentOptions
from scaletest.validation.plan import Plan
from scaletest.validation.service.kubernetes import FoundService, find_service
from scaletest.validation.service.plan import USUAL_STEP_S, ServicePlan
from scaletest.validation.service.replicas import CommandReplicas
from scaletest.validation.service.run_type import RUN_TYPE
from scaletest.validation.service.runner import validate_service


def make_plan(options: ServiceOptions) -> ServicePlan:
    """Return the plan of these options; InvalidValue or UsageError for what cannot be."""
    address = mask_passwords(options.service, service=True)
    source = " ".join(filter(None, (address, options.http.model)))
    return ServicePlan(
        steps=Plan(limit=options.limit).steps,
        scale=options.scale,
        thresholds=options.thresholds,
        source=source[:200],
        in_flight=options.in_flight,
        step_s=options.step_time or USUAL_STEP_S,
        warm_limit_s=options.warm_limit,
        repeats=options.repeats,
        timeout_s=options.timeout_s,
        latency_limit=options.latency_limit,
    )


def find(options: ServiceOptions, plan: ServicePlan, where: DeploymentOptions) -> FoundService:
    """Find the service, and what scales it. UsageError where that is not clear."""

    def call_at(url: str) -> HttpCall:
        connections = plan.most_in_flight * plan.steps[-1]
        return make_call(options.http, url, plan.timeout_s, connections)

    is_address = "://" in options.service
    if is_address != bool(options.set_replicas) or (options.list_replicas and not is_address):
        raise UsageError(
            "replicas are set by a command, or as an object of a cluster",
            hint="give a URL and <set_replicas> 'COMMAND {n}', and <list_replicas> if there is such"
            " a command; or svc/NAME, and <deployment> where the object is no Deployment",
        )
    if not is_address:
        return find_service(options.service, where, call_at)
    if where.deployment:
        raise UsageError("<deployment> is for svc/NAME", hint="leave it out")
    where.refuse_alone()
    replicas = CommandReplicas(
        options.set_replicas, options.restore_replicas, where.ready_timeout, options.list_replicas
    )
    return FoundService(replicas, call_at(options.service), ())


def run(
    options: ServiceOptions,
    where: DeploymentOptions,
    run_dir: str,
    labels: Labels,
    *,
    output: Output,
    watch: WatchOptions,
    dry_run: bool,
) -> int:
    """Validate a service and print the run, or the plan; return the exit code."""
    plan = make_plan(options)
    found = find(options, plan, where)
    work = HttpWork(found.call, *make_bodies(options.http))
    if dry_run:
        order = ", ".join(str(count) for count, _ in plan.turns)
        least_s = len(plan.turns) * plan.step_s
        lines = [
            *found.lines,
            f"service   {plan.source}",
            f"steps     {order} replicas",
            f"load      {plan.in_flight or 'as many as one replica needs'} requests in flight for"
            " each",
            f"wanted    at least {plan.scale:g}x per doubling",
            f"takes     {least_s:.0f} s of measuring, and for each step the time until its"
            " replicas are ready and warm",
        ]
        output.show({**plan.to_dict(), "least_s": least_s}, lines)
        return 0
    with watch_runs(watch) as progress:
        for line in found.lines:
            progress.message(line)
        folder = validate_service(
            plan,
            found.replicas,
            work,
            progress,
            run_dir=run_dir,
            labels=labels,
            ready_s=where.ready_timeout,
        )
    return stored.deliver_finished(report_of(folder, RUN_TYPE.judge(folder)), output)
