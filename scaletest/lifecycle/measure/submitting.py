"""Exactly N workloads, in bursts, and the removal of what was submitted.

Each burst waits for the one before and a delay. Names follow from the plan, so an interrupted
submit goes on: what is on record as accepted or refused for good is left alone, everything else is
sent. What an earlier process sent without noting the answer is there already, and gets no time of
submission: nobody knows it.

The ways to submit are the API itself, kubectl, and the Run:ai command line. The last two start a
process for each workload. Programs get their arguments as a list, never through a shell, and 60 s.

A run's objects are removed by its label, or by name where the tool set no label.
"""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from scaletest.cluster.bulk_objects import Applied, Objects
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.measure.templating import Workloads
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.records import Submission
from scaletest.model.checks import cut
from scaletest.model.errors import ScaletestError, UsageError

# So many refusals in a row from the start, and nothing accepted: the rest would be refused as well.
HOPELESS = 20
KEEP_EVERY_S = 2.0
# Writing submitted.json anew may take this part of the time at most.
KEEP_SHARE = 0.05
# Answers that will be the same the next time: the object itself is wrong.
FINAL = (400, 404, 405, 409, 413, 415, 422)


# Submits the workload of that name, in whatever thread; what became of it.
Tool = Callable[[str], Applied]


class Submitter:
    """Carries out a plan. clock: epoch seconds. fresh: nothing of it was submitted before."""

    def __init__(
        self,
        plan: LifecyclePlan,
        store: LifecycleFolder,
        tool: Tool,
        clock: Callable[[], float],
        *,
        fresh: bool = False,
        stopping: Callable[[], bool] = bool,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._plan, self._store, self._tool, self._clock, self._fresh = (
            plan,
            store,
            tool,
            clock,
            fresh,
        )
        self._stopping, self._pause = stopping, pause
        self._lock = threading.Lock()
        self.done: Counter[bool] = Counter()

    def run(self) -> None:
        """Submit what is missing. Raises Refused when nothing at all is accepted."""
        before = {row.name: row for row in self._store.submissions()}
        names = [name for name in self._plan.names() if not _settled(before.get(name))]
        for row in before.values():
            if _settled(row):
                self.done[row.accepted] += 1
        with self._store.submitting() as file:

            def note(row: Submission) -> None:
                with self._lock:
                    file.write(row.to_json() + "\n")
                    self.done[row.accepted] += 1

            with ThreadPoolExecutor(min(self._plan.processes, max(1, len(names)))) as pool:
                self._bursts(pool, names, note)
        self._store.keep_submitted()

    def _bursts(
        self, pool: ThreadPoolExecutor, names: Sequence[str], note: Callable[[Submission], None]
    ) -> None:
        written = time.monotonic()
        every = KEEP_EVERY_S
        for burst in _batches(names, self._plan.processes):
            if self._stopping():
                break
            answers = [pool.submit(self._submit, name, note) for name in burst]
            rows = [answer.result() for answer in answers]
            refused = [f"{row.status} {row.reason}" for row in rows if not row.accepted]
            fewest = min(HOPELESS, self._plan.count)
            if refused and not self.done[True] and self.done[False] >= fewest:
                raise AllRefused(
                    f"none of {self.done[False]} workloads was accepted: {refused[-1]}"
                )
            if self._plan.delay_s:
                self._pause(self._plan.delay_s)
            if time.monotonic() - written > every:
                started = time.monotonic()
                self._store.keep_submitted()
                written = time.monotonic()
                every = max(KEEP_EVERY_S, (written - started) / KEEP_SHARE)

    def _submit(self, name: str, note: Callable[[Submission], None]) -> Submission:
        plan = self._plan
        submitted_s = self._clock()
        answer = self._tool(name)
        # what was there already was sent before, at a time that is not on record; unless an answer
        # to us was lost
        known = answer.created or not answer.accepted or (self._fresh and answer.tries > 1)
        row = Submission(
            name,
            plan.namespace,
            plan.project,
            answer.accepted,
            submitted_s if known else None,
            self._clock() if known else None,
            answer.status if not answer.accepted else 0,
            answer.reason,
            answer.tries,
            answer.throttled,
        )
        note(row)
        return row


class AllRefused(ScaletestError):
    """Nothing that was submitted was accepted."""

    exit_code = 3


def _settled(row: Submission | None) -> bool:
    return row is not None and (row.accepted or row.status in FINAL)


def _batches(names: Sequence[str], size: int) -> Iterator[list[str]]:
    """Whole bursts, and what is left over as the last one."""
    rest = iter(names)
    while batch := list(itertools.islice(rest, size)):
        yield batch


LIMIT_S = 60.0


def _program(
    name: str, line: Callable[[str], list[str]], stdin: Callable[[str], str] = lambda workload: ""
) -> Tool:
    """A program that is given one workload. line: its arguments; stdin: what it reads."""
    path = shutil.which(name)
    if path is None:
        raise UsageError(
            f"there is no {name} on the PATH", hint="install it, or submit with <tool> api"
        )

    def submit(workload: str) -> Applied:
        try:
            done = subprocess.run(
                [path, *line(workload)],
                input=stdin(workload),
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Applied(False, False, 124, f"it took longer than {LIMIT_S:.0f} s")
        except OSError as error:
            return Applied(False, False, 126, cut(str(error), 200))
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())  # its lines as one
            return Applied(False, False, done.returncode, cut(said, 200))
        return Applied(True, "unchanged" not in done.stdout and "configured" not in done.stdout, 0)

    return submit


def kubectl(plan: LifecyclePlan, workloads: Workloads) -> Tool:
    """kubectl apply, as the original does."""
    line = [
        "--namespace",
        plan.namespace,
        *(["--context", plan.context] if plan.context else []),
        "apply",
        "-f",
        "-",
    ]
    return _program(
        "kubectl",
        lambda name: line,
        lambda name: json.dumps(workloads.make(name)),
    )


# The verbs of the Run:ai command line, version 2.
VERBS = {
    "runai-training": "training standard submit",
    "runai-distributed": "training pytorch submit",
    "runai-interactive": "workspace submit",
}


def runai(plan: LifecyclePlan) -> Tool:
    """The Run:ai command line, version 2: training, distributed training, workspace."""
    runai_line(plan, "j-000000")
    submit = _program("runai", partial(runai_line, plan))

    def submit_by_verb(workload: str) -> Applied:
        answer = submit(workload)
        if "unknown command" in answer.reason:
            raise UsageError(
                f"the Run:ai command line is of version 1: {answer.reason}",
                hint=f"install version 2 (its verb is {VERBS[plan.workload_type]}), or submit"
                " with <tool> api or kubectl",
            )
        return answer

    return submit_by_verb


def runai_line(plan: LifecyclePlan, name: str) -> list[str]:
    """Arguments of the Run:ai command line that submit a workload; UsageError when it cannot."""
    if plan.workload_type not in VERBS:
        raise UsageError(
            f"the Run:ai command line cannot submit {plan.workload_type}",
            hint=f"give <workload_type> {', '.join(VERBS)}",
        )
    if plan.template_file:
        raise UsageError(
            "the Run:ai command line takes no template", hint="submit it with <tool> api or kubectl"
        )
    arguments = [
        *(*VERBS[plan.workload_type].split(), name, "-p", plan.project, "-i", plan.image),
        *_devices(plan.gpus),
        *("--cpu-core-request", "0.05", "--cpu-memory-request", "1M"),
        *("--image-pull-policy", "IfNotPresent"),
    ]
    if plan.workload_type == "runai-distributed":
        arguments += ["--workers", str(plan.workers)]
    if plan.pvc:
        claim = f"claimname={name},size=1Mi,path=/path-new,accessmode-rwo,ephemeral"
        arguments += ["--new-pvc", claim]
    return [*arguments, "--command", "--", "sleep", plan.seconds]


def _devices(gpus: str) -> list[str]:
    """Whole devices, or a part of one."""
    if "." in gpus:
        portion = ["--gpu-request-type", "portion", "--gpu-portion-request", gpus]
        return ["--gpu-devices-request", "1", *portion]
    return ["--gpu-devices-request", gpus] if gpus != "0" else []


def delete_all(plan: LifecyclePlan, objects: Objects) -> int:
    """Delete what the run submitted; how many objects there were. Raises Refused, Unreachable."""
    resource = objects.resource(plan.api_version, plan.object_kind)
    labelled = plan.tool != "runai"
    names = objects.names(resource, plan.namespace, plan.label if labelled else "")
    if not labelled:
        present = set(names)
        names = [name for name in plan.names() if name in present]
    objects.delete(resource, plan.namespace, names)
    return len(names)
