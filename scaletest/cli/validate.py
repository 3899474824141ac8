"""scaletest validate: the main job. Puts Redis, workers and load together, and prints what the runner found."""

from __future__ import annotations

import os
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import options
from scaletest.model.errors import UsageError

if TYPE_CHECKING:
    from scaletest.model import Plan
    from scaletest.validation import Result, Runner


# How long a run waits for a Redis that went away before it gives up.
REDIS_PATIENCE_S = 60.0


@click.command("validate")
@click.option("--local", is_flag=True, help="Run the workers as processes of this machine.")
@options.redis_url(None)
@click.option("--limit", type=int, default=8, show_default=True, metavar="N", help="Largest number of workers.")
@click.option("--scale", type=float, default=1.8, show_default=True, metavar="X", help="Ratio wanted per doubling.")
@click.option("--seconds", type=float, default=1.0, show_default=True, metavar="S", help="Run time of one request.")
@click.option(
    "--step-time",
    type=float,
    default=0.0,
    metavar="S",
    help="Measure each step this long. [default: 10 requests, 5 s at least]",
)
@click.option("--time-limit", type=float, default=0.0, metavar="S", help="Limit of one request; 0: none.")
@click.option(
    "--tolerate-failures",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Failed requests that do not fail the run.",
)
@click.option("--device-glob", default="", metavar="GLOB", help="Device files; worker N uses the N-th, counting round.")
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
@click.option("--dry-run", is_flag=True, help="Print the plan and how long it will take, and do nothing.")
@options.output
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ARG...]")
def command(**given: Any) -> int:
    """Measure how throughput grows while the workers are doubled, and judge it.

    \b
    scaletest validate --local --limit 8 --scale 1.8 --seconds 0.5
    scaletest validate --local --limit 4 --scale 1.5 -- ffmpeg -i FILE -f null -
    scaletest validate --local --device-glob '/dev/dri/renderD*' -- COMMAND --device FILENAME

    Without --redis-url a private Redis is started for the run. Ctrl-C once drains and prints what was measured.
    Exit code 0 PASS, 3 FAIL, 4 INVALID.
    """
    from scaletest.model import Plan

    plan = Plan(
        limit=given["limit"],
        scale=given["scale"],
        seconds=given["seconds"],
        step_s=given["step_time"],
        queue=f"validate-{uuid.uuid4().hex[:8]}",
        command=given["arguments"],
        device_glob=given["device_glob"],
        time_limit_s=given["time_limit"],
        tolerate_failures=given["tolerate_failures"],
    )
    if given["dry_run"]:
        _show_plan(plan, given["output"])
        return 0
    if not given["local"] and not given["redis_url"]:
        raise UsageError("validate needs to know where to run", hint="add --local, or --redis-url URL")
    return _validate(plan, given)


def _show_plan(plan: Plan, form: str) -> None:
    if form != "table":
        options.show({**plan.to_dict(), "steps": list(plan.steps), "estimate_s": plan.estimate_s}, form)
        return
    click.echo(f"workload  {plan.workload}")
    click.echo(f"steps     {', '.join(map(str, plan.steps))} workers, {plan.measure_s:g} s of measuring each")
    click.echo(f"wanted    at least {plan.scale:g}x per doubling, {plan.tolerate_failures} failures tolerated")
    click.echo(f"takes     about {plan.estimate_s:.0f} s")


def _validate(plan: Plan, given: dict[str, Any]) -> int:
    from rich.console import Console

    from scaletest.report import progress
    from scaletest.validation import Runner
    from scaletest.validation.folder import RunFolder

    folder = RunFolder(_run_path(given["run_dir"]))
    folder.begin(plan, sys.argv)
    errors = Console(stderr=True, highlight=False)
    teller = progress.choose(errors, plain=given["progress"] == "plain")
    runner = Runner(plan, folder, teller)
    try:
        with _stopping(runner):
            result = _run(plan, runner, folder.log, given["redis_url"])
    finally:
        teller.close()
    folder.result(result.to_dict())
    _show_result(result, given["output"], str(folder.path))
    return result.verdict.kind.exit_code


def _run(plan: Plan, runner: Runner, log: Path, redis_url: str | None) -> Result:
    """Everything that must be taken down again lives in this stack, in the order in which it is put up."""
    from scaletest.broker import Client, EmbeddedServer, Queues, connect
    from scaletest.broker.retry import Retrying
    from scaletest.load import ClosedLoop
    from scaletest.validation import LocalBackend, WorkerOptions

    with ExitStack() as stack:
        url = redis_url or stack.enter_context(EmbeddedServer()).url
        redis = connect(url)
        stack.callback(redis.close)
        queues = Queues(redis)
        patient = Retrying("validate", patience_s=REDIS_PATIENCE_S)
        client = stack.enter_context(Client(connect(url), patience_s=REDIS_PATIENCE_S))
        queues.remove_abandoned()
        queues.add(plan.queue, note=f"validate {plan.workload}", owner=client.name)
        stack.callback(patient.run, lambda: queues.remove(plan.queue))
        worker_options = WorkerOptions(url, plan.queue, plan.command, plan.device_glob, plan.time_limit_s)
        backend = LocalBackend(worker_options, log, lambda: patient.run(lambda: queues.state(plan.queue).workers))
        stack.callback(backend.close)
        load = ClosedLoop(
            client,
            plan.queue,
            runner.record,
            arguments=() if plan.command else (repr(plan.seconds),),
            time_limit_s=plan.time_limit_s,
        )
        stack.callback(load.close)
        return runner.run(backend, load)


def _show_result(result: Result, form: str, folder: str) -> None:
    if form == "table":
        from rich.console import Console

        from scaletest.report.terminal import summary

        summary(result, Console(highlight=False), folder)
    else:
        options.show({**result.to_dict(), "folder": folder}, form)


def _run_path(given: str) -> Path:
    from scaletest.validation.folder import default_root

    if given:
        return Path(given)
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ")
    return default_root(os.environ) / f"{stamp}-{uuid.uuid4().hex[:4]}"


@contextmanager
def _stopping(runner: Runner) -> Iterator[None]:
    """First SIGINT or SIGTERM: drain and report. Second: end now; guards then end what is left."""
    names = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
    seen: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if seen:
            os._exit(128 + number)
        seen.append(number)
        runner.stop(names[signal.Signals(number)])

    before = {number: signal.signal(number, handle) for number in names}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
