"""Submit exactly N workloads, in bursts of which each waits for the one before and a delay.

Names follow from the plan, so an interrupted submit resumes: what is on record as accepted or
refused for good is left alone, everything else is sent.

A workload is submitted by the API itself, by kubectl, or by the Run:ai command line. The last two
start a process for each. Programs get their arguments as a list, never through a shell, and 60 s.
"""

import json
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import IO

from scaletest.cluster.bulk_objects import Applied, Objects
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.measure.templating import Workloads
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.records import Submission
from scaletest.model.checks import cut_text
from scaletest.model.errors import ScaletestError, UsageError

# Statuses of a refusal that would come again: the object itself is wrong.
LASTING_REFUSALS = (400, 404, 405, 409, 413, 415, 422)
# When so many are refused, and none is accepted, submitting ends.
MOST_REFUSALS = 20
# Submits the workload of that name, in any thread, and returns what became of it.
Tool = Callable[[str], Applied]
PROGRAM_LIMIT_S = 60.0
# The exit code of a program that took longer, as timeout(1) has it.
TIMED_OUT = 124
CANNOT_START = 126  # as shells have it
# The verbs of the Run:ai command line, version 2.
VERBS = {
    "runai-training": "training standard submit",
    "runai-distributed": "training pytorch submit",
    "runai-interactive": "workspace submit",
}


class AllRefused(ScaletestError):
    """Nothing that was submitted was accepted."""

    exit_code = 3


class Submitter:
    """Submits the workloads of a plan. clock: epoch seconds. fresh: none was submitted before."""

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
        self._plan, self._store, self._tool, self._clock = plan, store, tool, clock
        self._fresh, self._stopping, self._pause = fresh, stopping, pause
        self._lock = threading.Lock()
        self.count_by_accepted: Counter[bool] = Counter()  # of all submissions so far

    def run(self) -> None:
        """Submit what is missing. Raises AllRefused when nothing at all is accepted."""
        settled = {
            row.name: row.accepted
            for row in self._store.submissions()
            if row.accepted or row.status in LASTING_REFUSALS
        }
        self.count_by_accepted.update(settled.values())
        names = [name for name in self._plan.names() if name not in settled]
        size = self._plan.processes
        with (
            self._store.open_submissions() as file,
            ThreadPoolExecutor(min(size, max(1, len(names)))) as pool,
        ):
            for first in range(0, len(names), size):
                if self._stopping():
                    break
                rows = list(pool.map(self._submit, names[first : first + size], repeat(file)))
                # after so many refusals from the start the rest would be refused as well
                refused = self.count_by_accepted[False]
                is_hopeless = refused >= min(MOST_REFUSALS, self._plan.count)
                if is_hopeless and not self.count_by_accepted[True]:
                    last = rows[-1]
                    raise AllRefused(
                        f"none of {refused} workloads was accepted: {last.status} {last.reason}"
                    )
                if self._plan.delay_s:
                    self._pause(self._plan.delay_s)
        self._store.keep_submitted()

    def _submit(self, name: str, file: IO[str]) -> Submission:
        """Submit a workload, and note the answer as soon as it comes."""
        submitted_s = self._clock()
        answer = self._tool(name)
        # what was there already was sent by an earlier process, which did not note when; unless we
        # sent it ourselves, and the answer was lost
        is_time_known = answer.created or not answer.accepted or (self._fresh and answer.tries > 1)
        row = Submission(
            name=name,
            namespace=self._plan.namespace,
            project=self._plan.project,
            accepted=answer.accepted,
            submitted_s=submitted_s if is_time_known else None,
            accepted_s=self._clock() if is_time_known else None,
            status=answer.status if not answer.accepted else 0,
            reason=answer.reason,
            tries=answer.tries,
        )
        with self._lock:
            file.write(row.to_json() + "\n")
            self.count_by_accepted[row.accepted] += 1
        return row


def make_tool(plan: LifecyclePlan, objects: Objects) -> Tool:
    """Return the tool that submits the plan's workloads.

    Raises Missing when the cluster does not know their kind, and UsageError without the program.
    """
    if plan.tool == "runai":
        runai_line(plan, "j-000000")  # refuses a plan that it cannot submit
        runai_path = _find_program("runai")
        return lambda name: _run_program([runai_path, *runai_line(plan, name)])
    workloads = Workloads(plan)
    objects.resource(workloads.api_version, workloads.kind)
    if plan.tool == "api":
        return lambda name: objects.apply(workloads.make(name), plan.namespace)
    # as the Run:ai scale test tool does
    path = _find_program("kubectl")
    context = ["--context", plan.context] if plan.context else []
    line = [path, "--namespace", plan.namespace, *context, "apply", "-f", "-"]
    return lambda name: _run_program(line, json.dumps(workloads.make(name)))


def _find_program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise UsageError(
            f"there is no {name} on the PATH", hint="install it, or submit with <tool> api"
        )
    return path


def _run_program(line: list[str], stdin: str = "") -> Applied:
    """Run a program that submits one workload."""
    try:
        done = subprocess.run(
            line, input=stdin, capture_output=True, text=True, timeout=PROGRAM_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return _failure(TIMED_OUT, f"it took longer than {PROGRAM_LIMIT_S:.0f} s")
    except OSError as error:  # as when there may be no more processes
        return _failure(CANNOT_START, str(error))
    if done.returncode:
        return _failure(done.returncode, " ".join((done.stderr or done.stdout).split()))
    # kubectl says so where the object was there before
    is_created = "unchanged" not in done.stdout and "configured" not in done.stdout
    return Applied(accepted=True, created=is_created, status=0)


def _failure(exit_code: int, message: str) -> Applied:
    return Applied(accepted=False, created=False, status=exit_code, reason=cut_text(message, 200))


def runai_line(plan: LifecyclePlan, name: str) -> list[str]:
    """Return the arguments of the Run:ai command line that submit a workload.

    UsageError when it cannot submit such a plan.
    """
    if plan.workload_type not in VERBS:
        raise UsageError(
            f"the Run:ai command line cannot submit {plan.workload_type}",
            hint=f"give <workload_type> {', '.join(VERBS)}",
        )
    if plan.template_file:
        raise UsageError(
            "the Run:ai command line takes no template", hint="submit it with <tool> api or kubectl"
        )
    # whole devices, or a part of one
    devices = ["--gpu-devices-request", plan.gpus] if plan.gpus != "0" else []
    if "." in plan.gpus:
        devices = [
            *("--gpu-devices-request", "1", "--gpu-request-type", "portion"),
            *("--gpu-portion-request", plan.gpus),
        ]
    arguments = [
        *(*VERBS[plan.workload_type].split(), name, "-p", plan.project, "-i", plan.image),
        *devices,
        *("--cpu-core-request", "0.05", "--cpu-memory-request", "1M"),
        *("--image-pull-policy", "IfNotPresent"),
    ]
    if plan.workload_type == "runai-distributed":
        arguments += ["--workers", str(plan.workers)]
    if plan.pvc:
        arguments += [
            "--new-pvc",
            f"claimname={name},size=1Mi,path=/path-new,accessmode-rwo,ephemeral",
        ]
    return [*arguments, "--command", "--", "sleep", plan.seconds]
