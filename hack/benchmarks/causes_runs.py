"""One validation of a command with a known cause: what it said of it, beside what the command
measured itself.
"""

from __future__ import annotations

import bisect
import contextlib
import json
import math
import os
import platform
import random
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
from scaletest.analysis.completions import ends_of, progress, span
from scaletest.analysis.request_time import repeats_of
from scaletest.analysis.steps import Step, summarise
from scaletest.archive.folder import RunFolder, Stored
from scaletest.model import Reply

WORKERS = 4
# Shares may be off by this much.
CLOSE = 0.1
# A cause that holds less of the growth need not come first.
MAIN_SHARE = 0.5
# Redis stamps a reply, and the command its end, on the same clock, one after the other.
_LATE_S = 0.05
_PATIENCE_S = 180.0
Row = dict[str, Any]
# (process id of the worker) -> when its commands ended, and the seconds that each told
_Told = Mapping[int, Sequence[tuple[float, float]]]


@dataclass(frozen=True, slots=True)
class InjectedRun:
    """A run to make. Even seeds have other load on the machine; the seed also scales the injected
    times.
    """

    injector: str
    seed: int

    @property
    def loaded(self) -> bool:
        """Whether something else computes on one of the cores."""
        return self.seed % 2 == 0


def run(case: InjectedRun) -> Row:
    """One validation, judged. Raises Unsuitable."""
    folder = Path(tempfile.mkdtemp(prefix="scaletest-causes-"))
    scale = random.Random(f"{case.injector} {case.seed}").uniform(0.85, 1.2)
    try:
        with INJECTORS[case.injector](folder, scale) as injected, _load(case.loaded):
            result = _validate(injected, folder)
            stored = RunFolder(folder / "run").load()
        return {
            "injector": case.injector,
            "seed": case.seed,
            "loaded": case.loaded,
            "step_s": injected.step_s,
            **judge(injected, result, stored, _told(folder / "truth")),
            "machine": machine(),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def machine() -> Row:
    """What the figures were taken on, and how busy it was with all that ran in the last minute."""
    return {
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 1),
    }


def judge(injected: Injected, result: Row, stored: Stored, told: _Told) -> Row:
    """What is true, what was named, and whether that is right; null where the truth has no such
    thing.
    """
    causes: Row = result["causes"] or {
        "causes": [],
        "headline": "none",
        "sentence": "",
        "slow": None,
        "before": 0,
    }
    named = causes["causes"][0] if causes["causes"] and not causes["headline"] else None
    row: Row = {
        "truth": {"state": injected.state, "object": injected.object or injected.slow},
        "named": named
        and {"state": named["state"], "object": named["object"], "share": named["share"]},
        "headline": causes["headline"],
        "slow": causes["slow"],
        "verdict": result["verdict"]["kind"],
        "right": {"cause": None, "object": None, "share": None},
    }
    if injected.state == NONE:
        row["right"]["cause"] = causes["sentence"] == ""
        return row
    if not causes["before"]:
        row["right"]["cause"] = False
        return row
    grown_s = causes["grown_s"]["value"]
    share = _true_share(injected, stored, told, causes) if grown_s > 0 else math.nan
    row["truth"]["share"] = round(min(1.0, share), 3)
    row["grown_s"] = round(grown_s, 4)
    row["steps"] = [causes["before"], causes["after"]]
    row["others"] = {
        other["state"]: round(other["share"]["value"], 3) for other in causes["causes"][1:]
    }
    row["observed"] = round(causes["observed"], 3)
    row["right"] = _right(injected, row)
    return row


def _right(injected: Injected, row: Row) -> Row:
    """The cause where it is the main one, its object, and its share where the cause is right."""
    named, share = row["named"], row["truth"]["share"]
    if not share >= MAIN_SHARE:
        return {"cause": None, "object": None, "share": None}
    right = named is not None and named["state"] == injected.state
    result: Row = {"cause": right, "object": None, "share": None}
    if injected.object:
        result["object"] = right and named["object"] == injected.object
    if injected.slow:
        slow = row["slow"] or {"name": "", "place": ""}
        result["object"] = injected.slow in f"{slow['name']} {slow['place']}"
    if right:
        result["share"] = abs(named["share"]["value"] - share) <= CLOSE
    return result


def _true_share(injected: Injected, stored: Stored, told: _Told, causes: Row) -> float:
    """The part of the growth of a cycle that the injected wait makes up, by all requests, whether
    sampled or not.
    """
    steps = {
        step.workers: step for step in summarise(stored.plan, stored.measurements, stored.records)
    }
    before, after = (steps[causes[name]] for name in ("before", "after"))
    grown_s = _cycle_s(after) - _cycle_s(before)
    if injected.state == GAP:
        # no command can tell of the time between two: what its run did not grow by
        added_s = grown_s - (_run_s(after) - _run_s(before))
    else:
        added_s = _kept_s(injected, after, told) - _kept_s(injected, before, told)
    return added_s / grown_s if grown_s > 0 else math.nan


def _cycle_s(step: Step) -> float:
    """Seconds from the end of a worker's request to the end of its next one, by the throughput of
    the step.
    """
    return step.workers / step.throughput.per_s if step.throughput.per_s else math.nan


def _run_s(step: Step) -> float:
    return _mean(step, lambda reply: reply.run_s)


def _kept_s(injected: Injected, step: Step, told: _Told) -> float:
    """Mean seconds that the commands of a step were kept, by what they say themselves."""

    def kept_s(reply: Reply) -> float | None:
        lines = told.get(int(reply.worker.rsplit("-", 2)[-2]), ())
        at = bisect.bisect_right(lines, (reply.ended_s + _LATE_S, math.inf)) - 1
        if at < 0 or lines[at][0] < reply.started_s:
            return None
        if injected.tells_cpu:
            return reply.run_s - lines[at][1]
        return lines[at][1]

    return _mean(step, kept_s)


def _mean(step: Step, figure: Callable[[Reply], float | None]) -> float:
    """The mean of a figure over the requests behind a step's throughput.

    Each worker counts by what it did in the time that the throughput is of, since a slow one may
    have ended more requests before and after it than its part.
    """
    repeats = repeats_of(step)
    sum_s = done = 0.0
    for sample in step.samples:
        if sample.measurement.repeat not in repeats:
            continue
        by_worker: dict[str, list[float]] = defaultdict(list)
        for record in sample.counted:
            seconds = figure(record.reply)
            if seconds is not None:
                by_worker[record.reply.worker].append(seconds)
        ends = ends_of(sample.counted)
        edges = span(ends)
        for worker, all_seconds in by_worker.items():
            requests = progress({worker: ends[worker]}, edges)[-1]
            sum_s += requests * statistics.fmean(all_seconds)
            done += requests
    return sum_s / done if done else math.nan


def _told(path: Path) -> _Told:
    """What the commands said."""
    rows: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for line in path.read_text(encoding="ascii").splitlines() if path.exists() else ():
        worker, ended_s, kept_s = line.split()
        rows[int(worker)].append((float(ended_s), float(kept_s)))
    return {worker: sorted(lines) for worker, lines in rows.items()}


def _validate(injected: Injected, folder: Path) -> Row:
    line = [
        *injected.client,
        "validate",
        "--local",
        "--limit",
        str(WORKERS),
        "--step-time",
        str(injected.step_s),
    ]
    line += [
        *injected.options,
        "--run-dir",
        str(folder / "run"),
        "-o",
        "json",
        "--",
        *injected.command,
    ]
    if injected.join:
        line = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', injected.join, *line]
    environment = {**os.environ, TRUTH: str(folder / "truth")}
    done = subprocess.run(
        line, capture_output=True, text=True, check=False, env=environment, timeout=_PATIENCE_S
    )
    if not done.stdout:
        raise RuntimeError(f"the validation ended with {done.returncode}: {done.stderr[-400:]}")
    result: Row = json.loads(done.stdout)
    return result


@contextlib.contextmanager
def _load(wanted: bool) -> Iterator[None]:
    """Something else that computes all the time, on a core that it would have for itself."""
    if not wanted:
        yield
        return
    # it ends with us, also when we are killed
    burn = "import os; parent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"
    with subprocess.Popen(python(burn)) as other:
        try:
            yield
        finally:
            other.kill()
