"""scaletest worker --once: one request without Redis, its result and where its time went."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import replace

from scaletest.cli import device_metrics
from scaletest.cli import options as shared
from scaletest.cli.output import echo
from scaletest.model import Activity, Outcome
from scaletest.render.numbers import seconds
from scaletest.render.units import quantity
from scaletest.report import activity as report
from scaletest.system.waiting import Wake
from workers.runtime import Runtime, Settings
from workers.workloads.base import Result

FAILED = 5
# So much beyond our own memory, a program may have used no more than what it began with.
_NOISE = 1.02
_WIDTH = 15


def once(settings: Settings, form: str) -> int:
    """Run the workload once as a worker does; print the result. 0, or 5 when it failed."""
    arguments: tuple[str, ...] = ()
    if settings.command[:1] == ("bench",):
        # the document of a benchmark is never the worker's own
        settings, arguments = _bench(settings)
    for line in device_metrics.doubts("" if settings.no_causes else settings.device_metrics_url):
        echo(f"warning: {line}", err=True)
    own_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    runtime = Runtime(settings, Wake())
    try:
        with _output_to_errors():
            result, run_s = runtime.run(arguments, 0.0)
    finally:
        runtime.close()
    if form == "json":
        shared.show(_row(result, run_s), "json")
    else:
        for line in _lines(result, run_s, own_memory):
            echo(line)
    return 0 if result.outcome is Outcome.SUCCEEDED else FAILED


def _bench(settings: Settings) -> tuple[Settings, tuple[str, ...]]:
    return replace(settings, command=settings.command[:1]), settings.command[1:]


@contextlib.contextmanager
def _output_to_errors() -> Iterator[None]:
    """Programs' standard output goes to standard error, so that only the result is on it."""
    sys.stdout.flush()
    original = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(original, 1)
        os.close(original)


def _row(result: Result, run_s: float) -> dict[str, object]:
    """Plain values, named as in a reply."""
    return {
        "outcome": result.outcome.value,
        "reason": result.reason.value,
        "exit_code": result.exit_code,
        "error": result.error,
        "run_s": run_s,
        "timeout_s": result.timeout_s,
        "device": result.device,
        "device_info": result.device_info,
        "figures": result.figures,
        "activity": result.activity.to_dict() if result.activity else None,
    }


def _lines(result: Result, run_s: float, own_memory: int) -> Iterator[str]:
    code = "" if result.exit_code is None else f", exit code {result.exit_code}"
    yield f"{result.outcome.value.replace('_', ' ')} after {seconds(run_s)}{code}"
    if result.error:
        yield f"{'error':{_WIDTH}}{result.error}"
    if result.device:
        yield f"{'device':{_WIDTH}}{result.device}"
    for name, value in result.figures.items():
        # a benchmark's framed result is for programs
        if name != "result":
            yield (
                f"{name:{_WIDTH}}{value:.6g}"
                if isinstance(value, float)
                else f"{name:{_WIDTH}}{value}"
            )
    if result.activity is None:
        yield "where the time went is not known: nothing was sampled"
        return
    yield from _activity_lines(result.activity, run_s, own_memory)


def _activity_lines(activity: Activity, run_s: float, own_memory: int) -> Iterator[str]:
    cores = f", {activity.cpu_s / run_s:.2g} cores" if run_s > 0 else ""
    yield f"{'CPU time':{_WIDTH}}{seconds(activity.cpu_s)}{cores}"
    if activity.memory_bytes:
        # a new process begins with what its parent has
        bound = "at most " if activity.memory_bytes <= own_memory * _NOISE else ""
        yield f"{'peak memory':{_WIDTH}}{bound}{quantity(activity.memory_bytes, 'B', 3)}"
    for name, blocks in (
        ("disk reads", activity.read_blocks),
        ("disk writes", activity.written_blocks),
    ):
        if blocks:
            yield f"{name:{_WIDTH}}{quantity(512 * blocks, 'B', 3)}"
    if activity.throttled_s:
        yield f"{'throttled':{_WIDTH}}{seconds(activity.throttled_s)} by the container's CPU limit"
    yield "where the time went:"
    for line in report.lines(activity):
        yield f"  {line}"
