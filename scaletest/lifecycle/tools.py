"""Ways to submit: the API itself, kubectl, the Run:ai command line. The last two start a process
for each workload.

Programs get their arguments as a list, never through a shell, and 60 s.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable

from scaletest.cluster.objects import Objects
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.submitting import SubmissionOutcome
from scaletest.lifecycle.templating import Workloads
from scaletest.model.checks import cut
from scaletest.model.errors import UsageError

LIMIT_S = 60.0


class Api:
    """Server-side apply."""

    def __init__(self, plan: LifecyclePlan, objects: Objects, workloads: Workloads) -> None:
        self._plan, self._objects, self._workloads = plan, objects, workloads

    def submit(self, name: str) -> SubmissionOutcome:
        """Apply it."""
        found = self._objects.apply(self._workloads.make(name), self._plan.namespace)
        return SubmissionOutcome(
            found.accepted, found.created, found.status, found.reason, found.tries, found.throttled
        )


class SubmitProgram:
    """A program that is given one workload. line: its arguments; stdin: what it reads."""

    def __init__(
        self,
        program: str,
        line: Callable[[str], list[str]],
        stdin: Callable[[str], str] = lambda name: "",
    ) -> None:
        found = shutil.which(program)
        if found is None:
            raise UsageError(
                f"{cut(program, 80)} is not installed", hint="install it, or submit with --tool api"
            )
        self._program, self._line, self._stdin = found, line, stdin

    def submit(self, name: str) -> SubmissionOutcome:
        """Run it to its end."""
        try:
            done = subprocess.run(
                [self._program, *self._line(name)],
                input=self._stdin(name),
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return SubmissionOutcome(False, False, 124, f"it took longer than {LIMIT_S:.0f} s")
        except OSError as error:
            return SubmissionOutcome(False, False, 126, cut(str(error), 200))
        if done.returncode:
            return SubmissionOutcome(
                False, False, done.returncode, cut((done.stderr or done.stdout).strip(), 200)
            )
        return SubmissionOutcome(
            True, "unchanged" not in done.stdout and "configured" not in done.stdout, 0, ""
        )


def kubectl(plan: LifecyclePlan, workloads: Workloads, context: str) -> SubmitProgram:
    """kubectl apply, as the original does."""
    line = [
        "--namespace",
        plan.namespace,
        *(["--context", context] if context else []),
        "apply",
        "-f",
        "-",
    ]
    return SubmitProgram(
        plan.tool_path or "kubectl",
        lambda name: line,
        lambda name: json.dumps(workloads.make(name)),
    )


def runai(plan: LifecyclePlan) -> SubmitProgram:
    """The Run:ai command line, version 2: training, distributed training, workspace."""
    verbs = {
        "runai-training": ["training", "standard", "submit"],
        "runai-distributed": ["training", "pytorch", "submit"],
        "runai-interactive": ["workspace", "submit"],
    }
    if plan.kind not in verbs:
        raise UsageError(
            f"the Run:ai command line cannot submit {plan.kind}",
            hint=f"give --workload-type {', '.join(verbs)}",
        )
    if plan.template_file:
        raise UsageError(
            "the Run:ai command line takes no template", hint="submit it with --tool api or kubectl"
        )

    def line(name: str) -> list[str]:
        words = [
            *verbs[plan.kind],
            name,
            "-p",
            plan.project,
            "-i",
            plan.image,
            *_devices(plan.gpus),
        ]
        words += [
            "--cpu-core-request",
            "0.05",
            "--cpu-memory-request",
            "1M",
            "--image-pull-policy",
            "IfNotPresent",
        ]
        if plan.kind == "runai-distributed":
            words += ["--workers", str(plan.workers)]
        if plan.pvc:
            given = "size=1Mi,path=/path-new,accessmode-rwo,ephemeral"
            words += [
                "--new-pvc",
                given + (f",storageclass={plan.storage_class}" if plan.storage_class else ""),
            ]
        return [*words, "--command", "--", "sleep", plan.seconds]

    return SubmitProgram(plan.tool_path or "runai", line)


def _devices(gpus: str) -> list[str]:
    """Whole devices, or a part of one."""
    if "." in gpus:
        return ["--gpu-request-type", "portion", "--gpu-portion-request", gpus]
    return ["--gpu-devices-request", gpus] if gpus != "0" else []
