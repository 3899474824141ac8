"""A process that stays alive between requests: a line of JSON goes in, an answer comes out.

It starts with the first request, in the environment that restricts it to the worker's device, and
again when the device changes or a request had to be ended. It dies with the worker. What runs in it
is child_answers.py.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from scaletest.model import Outcome, Reason
from scaletest.model.checks import cut_text
from scaletest.model.masking import without_secrets
from scaletest.model.workload import UNAVAILABLE
from scaletest.observe.sampler import ProgramWatch
from scaletest.observe.tree import Tree
from scaletest.processes.children import end_group, end_handle, wait_child, wait_ready
from scaletest.processes.guard import Guard
from scaletest.processes.orphans import end_orphans, own_children
from scaletest_workers.child_answers import PEAK_MEMORY
from scaletest_workers.devices import ChosenDevice
from scaletest_workers.workloads.base import Interrupted, Result, WorkloadSetup, timed_out_result
from scaletest_workers.workloads.program import OutputTail, last_words, signal_name, why_not_started

# How long an answer may be.
MOST_ANSWER_BYTES = 1024 * 1024
# How long a process may take to end by itself, after it closed its output.
EXIT_LIMIT_S = 2.0
# How long a new process may take to get ready, where requests have a time limit.
READY_LIMIT_S = 600.0
# Reasons why a request got no answer, of which the result says more.
TIMED_OUT = "timed out"
ENDED = "ended"

# What a request got: its answer, or why there is none.
AnswerOrReason = dict[str, Any] | str


class PersistentChild:
    """The process of one workload."""

    def __init__(self, name: str, argv: list[str], setup: WorkloadSetup) -> None:
        """Prepare to start `argv`. name: as errors call it."""
        self._name = name
        self._argv = argv
        self._setup = setup
        self._guard = Guard("KILL")
        # the number of the last request that was sent; its answer has the same
        self._number = 0
        # the process, while there is one
        self._process: subprocess.Popen[bytes] | None = None
        self._environment: Mapping[str, str] = {}
        # what it writes to its standard error
        self._output = OutputTail(None, None)
        # the end of what the last process wrote
        self._errors = ""
        # children that the worker had before it started the process
        self._earlier_children: frozenset[int] = frozenset()
        # the process and what it starts, as the sampler sees them
        self._tree: Tree | None = None

    def run(
        self, request: object, limit_s: float, device: ChosenDevice | None, *, first: object = None
    ) -> Result:
        """Return the result of a request, with where its time went. Raises Interrupted.

        first: the request by which a new process gets ready. It has a limit of its own, since a
        shorter one would end every process before it is ready.
        """
        watch = None
        if self._setup.sampler:
            watch = self._setup.sampler.draw(device.device.path if device else "")
        process_before = self._process
        try:
            process = self._start_process(device)
        except OSError as error:
            return Result(
                Outcome.FAILED,
                Reason.NO_BINARY,
                error=why_not_started(self._argv[0], error, self._setup.program),
            )
        if watch is not None and self._tree is not None:
            watch.resume(self._tree)

        # ask it, up to the first request that has no good answer
        requests = [(request, limit_s)]
        if first is not None and process is not process_before:
            requests.insert(0, (first, READY_LIMIT_S if limit_s else 0.0))
        answers: list[AnswerOrReason] = []
        for asked, asked_limit_s in requests:
            answer: AnswerOrReason = ""
            try:
                answer = self._ask(process, asked, asked_limit_s, watch)
            finally:
                # it can take another request only after a complete answer
                if not isinstance(answer, dict) or answer.get("last"):
                    self._end_process()
            answers.append(answer)
            if not isinstance(answer, dict) or "error" in answer:
                break

        # say how it ended
        activity = watch.close(_sum_usage(answers)) if watch else None
        result = self._make_result(answers[-1], asked_limit_s, process.returncode or 0)
        return replace(result, activity=activity)

    def close(self) -> None:
        """End the process and the guard."""
        self._end_process()
        self._guard.close()

    def _start_process(self, device: ChosenDevice | None) -> subprocess.Popen[bytes]:
        """Return the process, a new one unless the last one lives and is for this device."""
        environment = self._setup.devices.environment(device) if device else {}
        if self._process is not None and (
            self._environment != environment or self._process.poll() is not None
        ):
            self._end_process()
        if self._process is None:
            self._earlier_children = own_children()
            self._process = subprocess.Popen(
                self._argv,
                cwd=self._setup.program.directory or None,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._guard.environment({**without_secrets(os.environ), **environment}),
                start_new_session=True,
            )
            self._guard.watch(self._process.pid)
            self._environment = environment
            self._output = OutputTail(
                self._process.stderr,
                None if self._setup.program.null_output else sys.stderr,
            )
            if self._setup.sampler:
                self._tree = Tree(self._process.pid, self._setup.sampler.blocking)
        return self._process

    def _ask(
        self,
        process: subprocess.Popen[bytes],
        request: object,
        limit_s: float,
        watch: ProgramWatch | None,
    ) -> AnswerOrReason:
        """Send a request and wait for its answer. Raises Interrupted."""
        assert process.stdin is not None and process.stdout is not None
        deadline = time.monotonic() + (limit_s or float("inf"))
        self._output.begin()
        self._number += 1
        try:
            process.stdin.write(json.dumps([self._number, request]).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            return ENDED
        stdout = process.stdout.fileno()
        interrupt = self._setup.interrupt.fileno()
        line = b""
        while not line.endswith(b"\n"):
            # wait for the end of the process, too: what it forked may keep its output open
            with end_handle(process) as end:
                ready = wait_ready([stdout, interrupt, *end], deadline, watch)
            if not ready:
                return TIMED_OUT
            if stdout not in ready:
                if interrupt in ready:
                    raise Interrupted
                return ENDED
            chunk = os.read(stdout, 65536)
            line += chunk
            if not chunk:
                # it closes its output before it ends
                has_ended = wait_child(process, min(deadline, time.monotonic() + EXIT_LIMIT_S))
                return ENDED if has_ended else "closed its output without an answer"
            if len(line) > MOST_ANSWER_BYTES:
                return f"answered with more than {MOST_ANSWER_BYTES} bytes"
        with suppress(ValueError):
            answer = json.loads(line)
            if isinstance(answer, dict) and answer.get("number") == self._number:
                return answer
        # the workload writes where answers go: what comes next may not be ours either
        return f"answered {cut_text(repr(line), 60)}, which does not answer this request"

    def _end_process(self) -> None:
        """End the process, if there is one, and everything that it started."""
        process = self._process
        self._process = None
        if self._tree is not None:
            self._tree.close()
            self._tree = None
        if process is None:
            return
        end_group(process, self._setup.program.kill_grace_s)
        end_orphans(self._earlier_children)
        self._guard.watch(None)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):  # the process died before it read everything
                    stream.close()
        self._errors = self._output.close()

    def _make_result(self, answer: AnswerOrReason, limit_s: float, code: int) -> Result:
        """Return how a request ended. code: of the process, when it ended."""
        if answer == TIMED_OUT:
            return timed_out_result(limit_s, self._name)
        if answer == ENDED:
            return self._explain_end(code)
        if isinstance(answer, str):
            return Result(Outcome.FAILED, Reason.EXIT, error=f"{self._name} {answer}")
        figures = answer.get("figures", {})
        if "error" not in answer:
            value = answer.get("value")
            return Result(Outcome.SUCCEEDED, exit_code=0, figures=figures, value=value)
        reason = Reason.NO_DEVICE if answer.get("no_device") else Reason.EXIT
        if answer.get("unavailable"):
            reason = Reason.NO_BINARY
        return Result(Outcome.FAILED, reason, error=cut_text(answer["error"]), figures=figures)

    def _explain_end(self, code: int) -> Result:
        """Return the result of a request whose process ended before it answered."""
        reason = Reason.EXIT
        end = f"ended by itself with code {code}"
        if code == UNAVAILABLE:
            reason = Reason.NO_BINARY
            end = "cannot be used here"
        elif code < 0:
            reason = Reason.SIGNAL
            end = f"was ended by {signal_name(-code)}"
            if code == -signal.SIGKILL:
                end += "; the memory limit of its container may be the reason"
        return Result(Outcome.FAILED, reason, code, f"{self._name} {end}{last_words(self._errors)}")


def _sum_usage(answers: Sequence[Any]) -> resource.struct_rusage | None:
    """Return what the process used for these answers; None when one of them does not say."""
    try:
        usages = [answer["usage"] for answer in answers]
        used = [sum(column) for column in zip(*usages, strict=True)]
        used[PEAK_MEMORY] = usages[-1][PEAK_MEMORY]  # the peak of its whole life
        return resource.struct_rusage([*map(float, used[:2]), *map(int, used[2:])])
    except (IndexError, KeyError, TypeError, ValueError):
        return None
