"""One validation of a command with a known cause, beside what the command measured itself."""

import bisect
import contextlib
import json
import math
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.benchmarks.causes_injectors import GAP, INJECTORS, NONE, Injected
from hack.benchmarks.causes_programs import TRUTH, python
from scaletest.causes.causes import NOTHING_GREW
from scaletest.causes.places import PLACE_TEXTS
from scaletest.model import Reply, VerdictKind
from scaletest.validation.folder import StoredValidation, ValidationFolder
from scaletest.validation.judging.steps import Step, summarise

WORKERS = 4
# Shares and truths are rounded to so much.
ROUNDING = 0.005
# A cause that holds less of the growth need not come first.
MAIN_SHARE = 0.5
# Redis stamps a reply, and the command its end, on the same clock, one after the other.
_LATE_S = 0.05
_PATIENCE_S = 180.0
# The first state of what a saturation says of the time of a service.
_SERVICE_TIME = re.compile(r"the service's time: ([a-zA-Z ]+) \d+%")
Row = dict[str, Any]
# What a run without requests that tell of their time says of causes.
NO_CAUSES: Row = {"causes": [], "headline": "none", "sentence": "", "slow": None, "before": 0}
# Process id of a worker -> of each of its commands: when it ended, and for how long it waited (or
# ran on a CPU, where it tells that), in seconds
_CommandWaits = Mapping[int, Sequence[tuple[float, float]]]


class Spoilt(Exception):
    """Told of an INVALID run that names no cause, since the machine or chance disturbed it."""


@dataclass(frozen=True, slots=True)
class InjectedRun:
    """A run to make.

    Even seeds have other load on the machine; the seed also scales the injected times.
    """

    injector: str
    seed: int

    @property
    def loaded(self) -> bool:
        """Whether something else computes on one of the cores."""
        return self.seed % 2 == 0


def run(case: InjectedRun) -> Row:
    """One validation, judged. Raises Unsuitable and Spoilt."""
    folder = Path(tempfile.mkdtemp(prefix="scaletest-causes-"))
    scale = random.Random(f"{case.injector} {case.seed}").uniform(0.85, 1.2)
    try:
        with INJECTORS[case.injector](folder, scale) as injected, _load(case.loaded):
            if injected.service:
                judged = _judge_service(injected, folder)
            else:
                result = _validate(injected, folder)
                stored = ValidationFolder(folder / "run").load()
                causes = result["causes"] or NO_CAUSES
                cannot_tell = injected.state != NONE and causes["headline"] == NOTHING_GREW
                is_invalid = result["verdict"]["kind"] == VerdictKind.INVALID
                if is_invalid and (result["interference"] or cannot_tell):
                    raise Spoilt(result["verdict"]["reason"])
                judged = judge(injected, result, stored, _command_waits(folder / "truth"))
        return {
            "injector": case.injector,
            "seed": case.seed,
            "loaded": case.loaded,
            "step_s": injected.step_s,
            **judged,
            "machine": machine(),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def machine() -> Row:
    """Return what the figures were taken on, and how busy it was in the last minute."""
    return {
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 1),
    }


def judge(injected: Injected, result: Row, stored: StoredValidation, waits: _CommandWaits) -> Row:
    """Return the true cause and the one that was named, and whether that is right.

    Null where the truth has no such thing.
    """
    causes: Row = result["causes"] or NO_CAUSES
    named = _named(causes)
    row: Row = {
        "truth": {"state": injected.state, "object": injected.object or injected.slow},
        "named": named,
        "headline": causes["headline"],
        "slow": causes["slow"],
        "verdict": result["verdict"]["kind"],
        "right": {"cause": None, "object": None, "interval": None},
    }
    if injected.state == NONE:
        row["right"]["cause"] = causes["sentence"] == ""
        return row
    if not causes["before"]:
        row["right"]["cause"] = False
        return row
    share = _true_share(injected, stored, waits, causes)
    row["truth"]["share"] = share
    row["grown_s"] = round(causes["grown_s"]["value"], 4)
    row["steps"] = [causes["before"], causes["after"]]
    row["others"] = {
        cause["state"]: round(cause["share"]["value"], 3) for cause in causes["causes"][1:]
    }
    row["observed"] = round(causes["observed"], 3)
    row["right"] = _right(injected, row)
    return row


def _named(causes: Row) -> Row | None:
    """Return the first cause; None where the run names none."""
    if causes["headline"] or not causes["causes"]:
        return None
    first = causes["causes"][0]
    return {name: first[name] for name in ("state", "object", "share")}


def _right(injected: Injected, row: Row) -> Row:
    """Return whether the cause and its object are right, and its share's interval holds the truth.

    None where none is judged.
    """
    named, share = row["named"], row["truth"]["share"]
    right: Row = {"cause": None, "object": None, "interval": None}
    if share is None or share < MAIN_SHARE:
        return right
    is_right = named is not None and named["state"] == injected.state
    right["cause"] = is_right
    if injected.object:
        right["object"] = is_right and named["object"] == injected.object
    if injected.slow:
        slow = row["slow"] or {"name": "", "place": ""}
        right["object"] = injected.slow in f"{slow['name']} {slow['place']}"
    if is_right:
        low, high = (named["share"][end] for end in ("low", "high"))
        right["interval"] = low - ROUNDING <= share <= high + ROUNDING
    return right


def _true_share(
    injected: Injected, stored: StoredValidation, waits: _CommandWaits, causes: Row
) -> float | None:
    """Return the part of the growth of a cycle that the injected wait makes up.

    By all requests, whether sampled or not; all of it where other times shrank. None where it is
    unknown.
    """
    steps = {
        step.workers: step for step in summarise(stored.plan, stored.measurements, stored.records)
    }
    before, after = (steps[causes[name]] for name in ("before", "after"))
    grown_s = _cycle_s(after) - _cycle_s(before)
    if not grown_s > 0:
        return None
    if injected.state == GAP:
        # no command can tell of the time between two: what its run did not grow by
        added_s = grown_s - (_run_s(after) - _run_s(before))
    else:
        added_s = _waited_s(injected, after, waits) - _waited_s(injected, before, waits)
    if math.isnan(added_s):
        return None
    return round(min(1.0, added_s / grown_s), 3)


def _cycle_s(step: Step) -> float:
    """Return seconds from the end of a worker's request to that of its next one.

    By the throughput of the step.
    """
    if not step.throughput.per_s:
        return math.nan
    return step.workers / step.throughput.per_s


def _run_s(step: Step) -> float:
    return _mean(step, lambda reply: reply.run_s)


def _waited_s(injected: Injected, step: Step, waits: _CommandWaits) -> float:
    """Mean seconds that the injected wait took in a step, by what the commands say themselves."""
    return _mean(step, lambda reply: _request_wait_s(injected, reply, waits))


def _request_wait_s(injected: Injected, reply: Reply, waits: _CommandWaits) -> float | None:
    """Seconds that the injected wait took in one request; None where its command told nothing."""
    commands = waits.get(int(reply.worker.rsplit("-", 2)[-2]), ())
    index = bisect.bisect_right(commands, (reply.ended_s + _LATE_S, math.inf)) - 1
    if index < 0:
        return None
    ended_s, told_s = commands[index]
    if ended_s < reply.started_s:
        return None
    if injected.tells_cpu:
        return reply.run_s - told_s
    return told_s


def _mean(step: Step, figure: Callable[[Reply], float | None]) -> float:
    """Return the mean of a figure over the requests behind a step's throughput.

    Each worker counts by what it did in the time that the throughput is of, since a slow one may
    have ended more requests before and after it than its part.
    """
    repeats = step.used_repeats
    sum_s = done = 0.0
    for sample in step.samples:
        if sample.measurement.repeat not in repeats:
            continue
        by_worker: dict[str, list[float]] = defaultdict(list)
        for record in sample.counted:
            seconds = figure(record.reply)
            if seconds is not None:
                by_worker[record.reply.worker].append(seconds)
        for worker, all_seconds in by_worker.items():
            requests = sample.counted_completions.done_by_worker[worker]
            sum_s += requests * statistics.fmean(all_seconds)
            done += requests
    if not done:
        return math.nan
    return sum_s / done


def _command_waits(path: Path) -> _CommandWaits:
    """Return what the commands wrote of themselves."""
    waits: dict[int, list[tuple[float, float]]] = defaultdict(list)
    if path.exists():
        for line in path.read_text(encoding="ascii").splitlines():
            worker, ended_s, waited_s = line.split()
            waits[int(worker)].append((float(ended_s), float(waited_s)))
    return {worker: sorted(commands) for worker, commands in waits.items()}


def _judge_service(injected: Injected, folder: Path) -> Row:
    """Load a service until it is saturated; judge where its time is said to go then."""
    line = [*injected.client, "saturate", injected.service, "--load", "closed", "--maximum", "8"]
    line += ["--step-time", "2", "--run-dir", str(folder / "run")]
    ended = subprocess.run(line, capture_output=True, text=True, check=False, timeout=_PATIENCE_S)
    said = _SERVICE_TIME.search(ended.stdout)
    if said is None:
        raise RuntimeError(f"the saturation ended with {ended.returncode}: {ended.stderr[-400:]}")
    right = {"cause": said[1] == PLACE_TEXTS[injected.state].label, "object": None}
    return {
        "truth": {"state": injected.state, "object": ""},
        "named": said[0],
        "right": {**right, "interval": None},
    }


def _validate(injected: Injected, folder: Path) -> Row:
    """Return the result of a validation in `folder`/run."""
    options = ["--local", "--limit", str(WORKERS), "--step-time", str(injected.step_s)]
    options += [*injected.options, "--run-dir", str(folder / "run"), "--format", "json"]
    line = [*injected.client, "validate", *options, "--", *injected.command]
    if injected.join:
        line = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', injected.join, *line]
    environment = {**os.environ, TRUTH: str(folder / "truth")}
    ended = subprocess.run(
        line, capture_output=True, text=True, check=False, env=environment, timeout=_PATIENCE_S
    )
    if not ended.stdout:
        raise RuntimeError(f"the validation ended with {ended.returncode}: {ended.stderr[-400:]}")
    result: Row = json.loads(ended.stdout)
    return result


@contextlib.contextmanager
def _load(needed: bool) -> Iterator[None]:
    """Something else that computes all the time, on a core that it would have for itself."""
    if not needed:
        yield
        return
    # it ends with us, also when we are killed
    burn = "import os; parent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"
    with subprocess.Popen(python(burn)) as other:
        try:
            yield
        finally:
            other.kill()
