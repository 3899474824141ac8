"""Submit a workload by the API itself, by kubectl, or by the Run:ai command line.

The last two start a process for each workload. Programs get their arguments as a list, never
through a shell, and 60 s.
"""

import json
import shutil
import subprocess
from collections.abc import Callable

from scaletest.cluster.bulk_objects import Applied, Objects
from scaletest.lifecycle.measure.templating import Workloads
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.model.checks import cut_text
from scaletest.model.errors import UsageError

# Submits the workload of that name, in any thread, and returns what became of it.
Tool = Callable[[str], Applied]
LIMIT_S = 60.0
# The verbs of the Run:ai command line, version 2.
VERBS = {
    "runai-training": "training standard submit",
    "runai-distributed": "training pytorch submit",
    "runai-interactive": "workspace submit",
}


def make_tool(plan: LifecyclePlan, objects: Objects) -> Tool:
    """Return the tool that submits the plan's workloads.

    Raises Missing when the cluster does not know their kind, and UsageError without the program.
    """
    if plan.tool == "runai":
        return runai_tool(plan)
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
            line, input=stdin, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return _failure(124, f"it took longer than {LIMIT_S:.0f} s")
    except OSError as error:
        return _failure(126, str(error))
    if done.returncode:
        return _failure(done.returncode, " ".join((done.stderr or done.stdout).split()))
    # kubectl says so where the object was there before
    is_created = "unchanged" not in done.stdout and "configured" not in done.stdout
    return Applied(accepted=True, created=is_created, status=0)


def _failure(exit_code: int, message: str) -> Applied:
    return Applied(accepted=False, created=False, status=exit_code, reason=cut_text(message, 200))


def runai_tool(plan: LifecyclePlan) -> Tool:
    """Return the command line of Run:ai as a tool."""
    runai_line(plan, "j-000000")  # refuses a plan that it cannot submit
    path = _find_program("runai")

    def submit(workload: str) -> Applied:
        answer = _run_program([path, *runai_line(plan, workload)])
        if "unknown command" in answer.reason:
            raise UsageError(
                f"the Run:ai command line is of version 1: {answer.reason}",
                hint=f"install version 2 (its verb is {VERBS[plan.workload_type]}), or submit"
                " with <tool> api or kubectl",
            )
        return answer

    return submit


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
