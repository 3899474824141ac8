"""Stored runs with known content, for everything that shows one."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scaletest.model import Activity, Measurement, Outcome, Reason, Record, Reply, State, Wait
from scaletest.runs.folder import RESULT
from scaletest.validation.folder import ValidationFolder
from scaletest.validation.judging.evaluation import evaluate
from scaletest.validation.judging.growth import SEED
from scaletest.validation.plan import Background, Plan
from scaletest.validation.run_type import RUN_TYPE, ValidationRun
from tests.unit.node_samples import Resources, cpu, samples_of

BEGAN_S = 1_790_000_000.0
HOSTILE = (
    "</style><script>alert(1)</script>\x1b[31m\u202e{{ 7*7 }}|`x`\n@all <img"
    " src=http://evil.example/x onerror=a()>"
)
COMMAND = ("ffmpeg", "-i", "in.mkv", "-f", "null", "-")
ENVIRONMENT = {
    "schema_version": 1,
    "scaletest": "0.1.0",
    "began": "2026-09-21T14:13:20+00:00",
    "command_line": ["/opt/bin/scaletest", "validate", "--local", "--limit", "8"],
    "host": "node-a",
    "processor": "Example CPU 9",
    "cores": 16,
    "packages": {"redis": "7.1.0", "rq": "2.12.0"},
    "devices": ["/dev/dri/renderD128", "/dev/dri/renderD129"],
}


def rows(workers: int, seconds: float, count: int, repeat: int = 0, **options: Any) -> list[Record]:
    """`count` requests of every worker that take about `seconds`.

    options: at_s (of the first submission), noise (relative), slow (the first requests take
    longer), fail_every (each n-th fails), name (of workers), error (of those that fail), figures
    (of those that do not), per_device.
    """
    chance = random.Random(f"{workers} {repeat}")
    records = []
    for number in range(workers):
        at = BEGAN_S + options.get("at_s", repeat * 100.0)
        for index in range(1, count + 1):
            wait_s = 0.001 * (1 + chance.random())
            run_s = seconds * (1 + options.get("noise", 0.0) * chance.uniform(-1, 1))
            run_s *= 2.0 if index <= options.get("slow", 0) else 1.0
            failed = "fail_every" in options and index % options["fail_every"] == 0
            records.append(_record(workers, repeat, number, (at, wait_s, run_s), failed, options))
            at += wait_s + run_s + 0.0005
    return records


def _record(
    workers: int,
    repeat: int,
    number: int,
    times: tuple[float, float, float],
    failed: bool,
    options: dict[str, Any],
) -> Record:
    at, wait_s, run_s = times
    reply = Reply(
        "r",
        Outcome.FAILED if failed else Outcome.SUCCEEDED,
        Reason.EXIT if failed else Reason.NONE,
        exit_code=1 if failed else 0,
        error=options.get("error", "ffmpeg returned error code 1: no such file") if failed else "",
        wait_s=wait_s,
        run_s=run_s,
        worker=f"{options.get('name', 'worker')}-{repeat}-{number}",
        node=f"node-{'ab'[number % 2]}",
        pod=f"pod-{number}",
        device=f"/dev/dri/renderD{128 + number % 2}",
        enqueued_s=at,
        started_s=at + wait_s,
        ended_s=at + wait_s + run_s,
        figures=(
            {"memory_limit_hits": 1}
            if failed and "figures" in options
            else options.get("figures", {})
        ),
    )
    return Record(
        "q", workers, reply, wait_s + run_s + 0.0005, repeat, options.get("per_device", 0)
    )


def stored(
    path: Path,
    plan: Plan,
    steps: Sequence[Sequence[Record]],
    environment: dict[str, Any] | None = None,
    **result: Any,
) -> ValidationFolder:
    """A run's folder; `result` is what result.json holds beside what is read from the records.

    Steps without a way down have the same requests on it again.
    """
    folder = ValidationFolder.create(path)
    folder.begin(plan, {})
    (path / "environment.json").write_text(
        json.dumps(ENVIRONMENT if environment is None else environment)
    )
    if not any(row.repeat % 2 for records in steps for row in records):
        steps = both_ways(steps)
    for records in steps:
        last = max(row.reply.ended_s for row in records) - min(
            row.reply.enqueued_s for row in records
        )
        stop = "same duration as the first pass" if records[0].repeat % 2 else "precise"
        folder.add(Measurement(records[0].step, records[0].repeat, 0.2, last, stop), records)
    folder.write(RESULT, {"elapsed_s": 25.4, **result})
    return folder


def both_ways(steps: Sequence[Sequence[Record]]) -> list[list[Record]]:
    """The steps of each repeat on the way up, and the same requests on the way down later."""
    turns = []
    for down, way in enumerate((steps, steps[::-1])):
        for records in way:
            turns.append(
                [
                    replace(later(row, 1000.0 * down), repeat=2 * row.repeat + down)
                    for row in records
                ]
            )
    return sorted(turns, key=lambda records: records[0].repeat)


def later(row: Record, seconds: float) -> Record:
    """The request, some seconds later."""
    times = {
        name: getattr(row.reply, name) + seconds for name in ("enqueued_s", "started_s", "ended_s")
    }
    return replace(row, reply=replace(row.reply, **times))


def loaded(folder: ValidationFolder) -> ValidationRun:
    """The run as reports see it, with a place that is the same everywhere."""
    return replace(RUN_TYPE.judge(folder), name="2026-09-21T141320Z-a7c3", folder="/runs/a7c3")


# two devices that serve two runs each at full speed, and whose memory is too small for eight
SHARING = Plan(
    limit=16,
    command=("transcode", "--input", "v.h265"),
    device_glob="/dev/dri/renderD*",
    per_device=(1, 2, 4, 8),
    devices=2,
    queue="q",
)


def sharing_steps() -> list[list[Record]]:
    """The records of that plan's steps."""
    steps = []
    for count in SHARING.per_device:
        failing = {"fail_every": 5, "error": "the device is out of memory"} if count == 8 else {}
        seconds, figures = 0.2 * max(1, count / 2), {"frames": 300}
        steps.append(
            rows(2 * count, seconds, 40, noise=0.03, figures=figures, per_device=count, **failing)
        )
    return steps


# up and down, with a load beside it
MIRRORED = Plan(
    limit=4,
    seconds=0.5,
    queue="q",
    background=(Background("storage", seconds=0.25),),
)


def mirrored_steps() -> list[list[Record]]:
    """The records of that plan's measurings, in the order of the clock."""
    measurings = [(1, 0), (2, 0), (4, 0), (4, 1), (2, 1), (1, 1)]
    steps = []
    for turn, (workers, repeat) in enumerate(measurings):
        own = rows(workers, 0.5, 20, repeat, noise=0.02, at_s=20.0 * turn)
        beside = rows(1, 0.25, 40, repeat, noise=0.02, at_s=20.0 * turn)
        steps.append([*own, *(replace(row, queue="q-storage", step=workers) for row in beside)])
    return steps


# three workers wait for one lock while the disk gets slower, and the requests say so
LIMITED = Plan(limit=4, command=COMMAND, queue="q")


def limited_steps() -> list[list[Record]]:
    """The records of that plan's steps."""
    steps = [rows(workers, 0.3 * workers, 30, noise=0.1) for workers in (1, 2, 4)]
    return [[_with_activity(row, row.step) for row in step] for step in steps]


def _with_activity(row: Record, workers: int) -> Record:
    lock_s, disk_s = 0.22 * (workers - 1), 0.06 * workers
    seconds = {
        State.ON_CPU: row.reply.run_s - lock_s - disk_s,
        State.FILE_LOCK: lock_s,
        State.DISK: disk_s,
    }
    waits = (
        Wait(State.FILE_LOCK, "/run/lock/encoder.lock", lock_s),
        Wait(State.DISK, "/data/out.mkv", disk_s),
    )
    activity = Activity(seconds, waits, cpu_s=seconds[State.ON_CPU])
    return replace(row, reply=replace(row.reply, activity=activity))


# the same command on two cores and two devices: four workers wait for a CPU, while another program
# runs for a while
def sampled(folder: Path) -> ValidationRun:
    """A run with samples of its node."""
    steps = [
        rows(n, 0.3 * max(1, n / 2), 40, noise=0.05, figures={"frames": 300}) for n in (1, 2, 4)
    ]
    steps = [
        [_on_cores(row, min(1.0, 2 / row.step), 100.0 * row.step) for row in step] for step in steps
    ]
    run = loaded(stored(folder, LIMITED, steps))
    joules = {"device:/dev/dri/renderD128": 1000.0, "device:/dev/dri/renderD129": 5000.0}

    def read(node: str, workers: int, at_s: float) -> Resources:
        busy = min(2.0, workers + 0.1)
        for name in joules:
            joules[name] += 30.0 + 12.0 * workers
        disturbed = {"steal": 0.3} if workers == 2 and at_s % 100 > 8 else {"steal": 0.0}
        devices = {
            name: {"energy_j": value, "busy": 0.2 * min(2, workers)}
            for name, value in joules.items()
        }
        pressure = {"pressure": {"cpu_some": 0.02 if workers < 3 else 0.84, "io_some": 0.0}}
        disk = {
            "disk:sda": {"busy": 0.05 * workers, "read": 2e6},
            "network:eth0": {"received": 2e5, "sent": 1e4},
        }
        return {**cpu(busy, **disturbed), **devices, **pressure, **disk}

    samples = samples_of(run.records, read)
    measurements = [sample.measurement for step in run.result.steps for sample in step.samples]
    result = evaluate(
        LIMITED,
        measurements,
        run.records,
        random.Random(SEED),
        elapsed_s=run.result.elapsed_s,
        samples=samples,
    )
    return replace(run, result=result)


def _on_cores(row: Record, part: float, later_s: float) -> Record:
    """The request on node-a, some seconds later, on a CPU for a part of its time."""
    reply, run_s = row.reply, row.reply.run_s
    seconds = {State.ON_CPU: part * run_s, State.CPU_WAIT: (1.0 - part) * run_s}
    activity = Activity(seconds, cpu_s=seconds[State.ON_CPU])
    return later(replace(row, reply=replace(reply, node="node-a", activity=activity)), later_s)


PREPARED = {
    "limited": (LIMITED, limited_steps),
    "mirrored": (MIRRORED, mirrored_steps),
    "sharing": (SHARING, sharing_steps),
}


def slower_at_last(
    path: Path, plan: Plan, activity: Activity, workers: Sequence[int] = (1, 2, 4)
) -> ValidationRun:
    """A run whose last step took longer, and says so: see `activity` of all requests but those of
    the first step.
    """
    steps = [rows(n, 0.2 * n, 40, noise=0.05, fail_every=9) for n in workers]
    for step in steps:
        first = Activity({State.ON_CPU: 0.2}, cpu_s=0.2)
        step[:] = [
            replace(row, reply=replace(row.reply, activity=first if row.step == 1 else activity))
            for row in step
        ]
    return loaded(stored(path / "run", plan, steps))


def make(case: str, path: Path) -> ValidationRun:
    """One of the cases by name."""
    folder = path / case
    if case == "pass":
        steps = [rows(n, 0.5, 30, noise=0.05) for n in (1, 2, 4, 8)]
        return loaded(stored(folder, Plan(limit=8, seconds=0.5, queue="q"), steps))
    if case == "fail":
        steps = [rows(n, 0.2 * n, 60, noise=0.1, slow=4) for n in (1, 2, 4)]
        return loaded(stored(folder, Plan(limit=4, command=COMMAND, queue="q"), steps))
    if case == "failures":
        steps = [rows(2, 0.2, 30, fail_every=5)]
        return loaded(stored(folder, Plan(limit=4, command=COMMAND, queue="q"), steps))
    if case == "repeats":
        steps = [rows(n, 0.5, 12, repeat, noise=0.02) for repeat in range(3) for n in (1, 2)]
        plan = Plan(limit=2, seconds=0.5, repeats=3, queue="q")
        return loaded(stored(folder, plan, both_ways(steps)))
    if case == "peak":
        counts = (1, 2, 4, 8, 16, 32)
        steps = [
            rows(n, 0.2 * (1 + 0.02 * (n - 1) + 0.005 * n * (n - 1)), 24, noise=0.03)
            for n in counts
        ]
        return loaded(stored(folder, Plan(limit=32, seconds=0.2, queue="q"), steps))
    if case in PREPARED:
        plan, steps_of = PREPARED[case]
        return loaded(stored(folder, plan, steps_of()))
    if case == "sampled":
        return sampled(folder)
    if case == "interrupted":
        steps = [rows(1, 0.5, 12)]
        return loaded(
            stored(folder, Plan(limit=2, seconds=0.5, queue="q"), steps, interrupted="Ctrl-C")
        )
    if case == "nothing":
        return loaded(stored(folder, Plan(limit=2, seconds=0.5, queue="q"), []))
    assert case == "hostile"
    steps = [
        rows(n, 0.2, 70, noise=0.3, fail_every=9, name=HOSTILE, error=HOSTILE) for n in (1, 2, 3)
    ]
    environment = {
        **ENVIRONMENT,
        "command_line": ["scaletest", HOSTILE],
        "host": HOSTILE,
        HOSTILE: [HOSTILE],
    }
    command = ("sh", "-c", HOSTILE.replace("\x1b", ""))
    plan = Plan(limit=3, command=command, queue="q", tolerate_failures=1000)
    return loaded(stored(folder, plan, steps, environment, interrupted=HOSTILE))


CASES = (
    "pass",
    "fail",
    "limited",
    "sampled",
    "failures",
    "repeats",
    "mirrored",
    "peak",
    "sharing",
    "interrupted",
    "nothing",
    "hostile",
)
