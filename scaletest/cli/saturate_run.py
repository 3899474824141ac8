"""What scaletest saturate does: it shows a plan, or puts target, load and archive together, runs
it, and prints the result. The target is a URL, a Service of the cluster, or a queue.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console

from scaletest.analysis.saturation import tuning
from scaletest.analysis.saturation.evaluation import conclude
from scaletest.analysis.saturation.forecast import SaturationForecast, forecast
from scaletest.analysis.saturation.sequence import LONGEST, MOST_AGAIN, SaturationSequence
from scaletest.archive.environment import environment
from scaletest.broker import Queues, connect
from scaletest.cli import options as shared
from scaletest.cli import stored as stored_runs
from scaletest.cli.output import echo
from scaletest.cli.saturate_http import Target, agent_settings, call, over_http
from scaletest.cli.saturate_options import PlanOptions, SaturateOptions
from scaletest.cli.saturate_service import service_target
from scaletest.cli.saturate_sql import Database
from scaletest.cli.stopping import stopping
from scaletest.compat import article
from scaletest.load import busy_check
from scaletest.load.level_load import LevelLoad
from scaletest.model import checks
from scaletest.model.errors import AgentLost, UsageError
from scaletest.model.saturation import Mode, SaturationPlan
from scaletest.model.secrets import HIDDEN, masked
from scaletest.render.numbers import plural
from scaletest.report import progress
from scaletest.report.saturation.report import saturation_report
from scaletest.report.saturation.run import read, with_noticed
from scaletest.runs.folder import RESULT, RunFolder
from scaletest.runs.places import default_root, new_path
from scaletest.saturation.agent_start import queue_load, serve, start_agents
from scaletest.saturation.folder import SaturationFolder
from scaletest.saturation.runner import ProgressListener, Runner, StepStore
from scaletest.saturation.watched import Watched
from scaletest.system.cores import own_used_s, used_s
from scaletest.system.listeners import is_here, servers

_SECRETS = ("--header", "-H")


def with_address(options: SaturateOptions, *, url_typed: bool) -> SaturateOptions:
    """The options with an only argument as the URL, which comes before that of a file or variable.

    url_typed: whether --url stands on the command line too, which cannot both be meant.
    """
    if len(options.arguments) != 1 or options.queue:
        return options
    address = options.arguments[0]
    for option, is_given in (("--url", url_typed), ("--service", options.cluster.service)):
        if is_given:
            raise UsageError(
                f"{address!r:.80} and {option} are two targets", hint="leave one of them out"
            )
    return replace(options, url=address, arguments=())


def plan_of(options: SaturateOptions) -> SaturationPlan:
    """The plan of the options. UsageError for combinations that cannot work."""
    targets = {"url": options.url, "service": options.cluster.service, "queue": options.queue}
    named = [name for name, target in targets.items() if target]
    if len(named) != 1:
        reason = "saturate needs one target"
        if named:
            reason = f"--{named[0]} and --{named[1]} exclude each other"
        raise UsageError(reason, hint="give --url URL, --service svc/NAME or --queue Q")
    for name, value, needed, needed_value in (
        ("queue", options.queue, "redis-url", options.redis_url),
        ("log-pattern", options.cluster.log_pattern, "service", options.cluster.service),
        ("agent-jobs", options.agents.agent_jobs, "redis-url", options.redis_url),
    ):
        if value and not needed_value:
            raise UsageError(f"--{name} needs --{needed}", hint="give it, or leave the other out")
    if options.tuning.tune and not options.cluster.service:
        raise UsageError(
            "--tune changes the Deployment behind a Service", hint="give --service svc/NAME"
        )
    tuning.settings(options.tuning.tune)
    _check_sweep(options.plan)
    target = public([options.url])[0] or options.cluster.service or f"queue {options.queue}"
    return SaturationPlan(**{**asdict(options.plan), "target": target})


def _check_sweep(plan: PlanOptions) -> None:
    sweeps_up = plan.mode == Mode.SWEEP and plan.maximum > plan.start
    if sweeps_up and not plan.increment:
        raise UsageError("a sweep up to --maximum needs its step", hint="give --increment")


def public(arguments: Sequence[str]) -> list[str]:
    """A command line without secrets: values of headers and of query parameters, and logins in
    addresses.
    """
    shown, hide = [], False
    for word in arguments:
        if hide or word.startswith("--header=") or (word.startswith("-H") and len(word) > 2):
            word = word.partition(":")[0] + f": {HIDDEN}"
        hide = word in _SECRETS
        shown.append(masked(word, service=True) if "://" in word else word)
    return shown


def serve_agent(options: SaturateOptions) -> int:
    """Be an agent."""
    if not options.redis_url:
        raise UsageError(
            "an agent needs the Redis of its coordinator", hint="set SCALETEST_REDIS_URL"
        )
    serve(options.redis_url, options.agents.agent)
    return 0


def target(options: SaturateOptions, plan: SaturationPlan) -> Target:
    """Look at what was named; nothing is changed yet."""
    if options.queue:
        return _queue(options, plan)
    if options.cluster.service:
        return service_target(options, plan)

    http_call = call(options.http, plan, options.url)
    parts = urlsplit(http_call.url)
    port, host = parts.port or (443 if parts.scheme == "https" else 80), parts.hostname or ""
    local = is_here(host)

    def processes() -> Sequence[int]:
        return servers(port) if local else ()

    return replace(over_http(options, plan, http_call), servers=processes, port=port, is_here=local)


def _queue(options: SaturateOptions, plan: SaturationPlan) -> Target:
    """The queue, which must be declared and have workers. Unreachable when Redis does not
    answer.
    """
    http = options.http
    for name, value in (
        ("payload", http.payload),
        ("payload-provider", http.payload_provider),
        ("header", http.headers),
        ("token-file", http.token_file),
        ("http2", http.http2),
        ("retries", plan.retries),
    ):
        if value:
            raise UsageError(f"--{name} is for HTTP, not for a queue", hint="leave it out")
    checks.arguments(options.arguments)
    redis = connect(options.redis_url)
    try:
        Queues(redis).require(options.queue)
        state = Queues(redis).state(options.queue)
    finally:
        redis.close()
    if not state.workers:
        raise UsageError(
            f"queue {options.queue} has no worker",
            hint=f"start one: scaletest worker --queue {options.queue}",
        )
    waiting = f", {plural(state.waiting, 'request')} in it already" if state.waiting else ""
    shown = f"queue {state.name}: {plural(state.workers, 'worker')}{waiting}"
    return Target((shown,), lambda stack: _load(options, plan, stack))


def _load(options: SaturateOptions, plan: SaturationPlan, stack: ExitStack) -> LevelLoad:
    work = {
        "queue": options.queue,
        "arguments": list(options.arguments),
        "time_limit_s": plan.timeout_s,
        "maximum": -(-plan.max_in_flight // plan.agents),
    }
    if plan.agents > 1 or options.agents.agent_jobs:
        return start_agents(agent_settings(options, plan), work, stack)
    return queue_load(options.redis_url, work)


def saturate(plan: SaturationPlan, options: SaturateOptions) -> int:
    """Run a saturation, and print it; its exit code."""
    with ExitStack() as before:
        loaded = target(options, plan)
        if options.original_csv:
            article.prepare(Path(options.original_csv))
        path = new_path(os.environ, options.run_dir)
        teller = progress.choose(
            Console(stderr=True, highlight=False), plain=options.progress == "plain"
        )
        before.callback(teller.close)
        database = Database(options.sql, plan, path.name, teller.step, named=bool(options.run_dir))
        before.callback(database.close)
        database.open()
        folder = SaturationFolder(RunFolder.create(path))
        before.callback(folder.forget_empty)
        before.enter_context(folder.files.locked())
        folder.files.begin(plan, environment(public(sys.argv)))
        code = _measure(plan, options, loaded, (folder, database), teller)
        lacking = database.finish(folder)
        teller.close()
        show(options.output, folder)
        if options.original_csv:
            stored = folder.load()
            article.append(Path(options.original_csv), stored.steps, stored.samples)
        return lacking or code


def _measure(
    plan: SaturationPlan,
    options: SaturateOptions,
    target: Target,
    stores: tuple[SaturationFolder, StepStore],
    teller: ProgressListener,
) -> int:
    """The run, up to its result on disk; its exit code."""
    ends: list[str] = []
    runner: Runner | None = None

    def stop(why: str) -> None:
        ends.append(why)
        if runner is not None:
            runner.stop(why)

    with stopping(stop, unwind=bool(options.cluster.service or options.agents.agent_jobs)) as stack:
        for line in target.shown:
            teller.step(line)
        lines = list(target.shown)
        noticed: list[str] = []
        look = _look(target) if target.is_here else tuple
        try:
            load = target.set_up(stack)
            if not (options.no_causes or options.agents.agent_jobs):
                load = Watched(load, target.servers, target.port)
            runner = Runner(
                plan, load, stores, teller, between=lambda step: lines.extend(target.after(step))
            )
            if ends:
                runner.stop(ends[0])
            noticed += look()
            for line in noticed:
                teller.step(f"warning: {line}")
            target.probe(load)
            result = runner.run()
        except AgentLost as error:
            result = conclude(SaturationSequence(plan), lost=error.message)  # before the first step
        stored = {**with_noticed(result, noticed).to_dict(), "noticed": noticed}
        if lines:
            replicas = {"replicas": target.replicas} if target.replicas else {}
            stored["extra"] = {"lines": lines, **replicas}
        stores[0].files.write(RESULT, stored)
    lost = runner.lost if runner else None
    return lost.exit_code if lost else result.verdict.kind.exit_code


def _look(target: Target) -> Callable[[], list[str]]:
    """Warnings of what keeps this machine busy beside the tester and the service."""
    servers = target.servers()
    return busy_check.of_this_machine(lambda: own_used_s() + used_s(servers)).warnings


def show(form: str, folder: SaturationFolder) -> None:
    """Print the run in the form that was asked for."""
    run = read(folder, default_root(os.environ))
    if form == "table":
        stored_runs.show(saturation_report(run))
    else:
        extra = {"extra": run.extra} if run.extra else {}
        shared.show(
            {**run.result.to_dict(), "folder": run.folder, **extra},
            form,
        )


def show_plan(plan: SaturationPlan, options: SaturateOptions) -> None:
    """Print what will be done, and how long it takes."""
    tuned = len(tuning.settings(options.tuning.tune))
    expected = forecast(plan).times(max(1, tuned))
    if options.output != "table":
        row = expected.to_dict()
        shared.show(
            {**plan.to_dict(), "longest_s": row["longest_s"], "forecast": row}, options.output
        )
        return
    echo(f"target    {plan.target}")
    first = f"{plan.start:g}" if plan.start else "found by the probe"
    echo(
        f"load      {plan.load}, {plan.mode}: from {first} to {plan.highest:g} {plan.unit} at most"
    )
    length = f"{plan.count} requests" if plan.count else f"{plan.step_s:g} s"
    number = (
        f"{expected.most}"
        if plan.mode == Mode.SWEEP
        else f"usually {expected.steps}, {expected.most} at most"
    )
    echo(f"steps     {length} each, {number}")
    if tuned:
        echo(f"settings  {tuned}, all this for each")
    for line in _takes(plan, expected, bool(tuned)):
        echo(line)
    if plan.wanted:
        echo(f"wanted    {plan.wanted:g} requests/s")


def _takes(plan: SaturationPlan, expected: SaturationForecast, tuned: bool) -> Iterator[str]:
    """How long it takes, and what makes it longer."""
    if expected.usual_s is None or expected.longest_s is None:
        yield "takes     as long as so many requests take in each step; nobody knows that before"
    else:
        when = "if requests are fast and pods ready at once" if tuned else "if requests are fast"
        yield (
            f"takes     about {expected.usual_s:.0f} s, {expected.longest_s:.0f} s at most, {when}"
        )
    if plan.limit:
        yield (
            f"limit     {plan.limit}: a step that does not decide it is extended, up to {LONGEST}"
            " times as long"
        )
    yield f"again     a step in which the tester was late, up to {MOST_AGAIN} times"
