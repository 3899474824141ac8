"""A process that stays alive between requests: a line of JSON goes in, an answer comes out.

It starts with the first request, in the environment that restricts it to the worker's device, and
again when the device changes or a request had to be ended. It dies with the worker.
"""

import json
import os
import resource
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
from scaletest.processes.wake import Wake
from scaletest_workers.child_answers import ANSWERS_CLOSED, PEAK_MEMORY
from scaletest_workers.devices import Chosen
from scaletest_workers.workloads.base import Interrupted, Making, Result, timed_out_result
from scaletest_workers.workloads.program import OutputTail, last_words, signal_name, why_not_started

# What a process may write while it runs one request, and how long its answer may be.
MOST_OUTPUT_BYTES = 16 * 1024 * 1024
MOST_ANSWER_BYTES = 1024 * 1024
# How long it may take to end by itself.
EXIT_S = 2.0
# How long a new process may take to get ready, where requests have a time limit.
READY_LIMIT_S = 600.0
# Why a process gave no answer that has lost its way of answering.
CLOSED = "closed the descriptor that its answers go to, as os.closerange does"


class PersistentChild:
    """The process of one workload. name: as errors call it."""

    def __init__(self, name: str, argv: Sequence[str], making: Making) -> None:
        self._name = name
        self._argv = list(argv)
        self._making = making
        self._guard = Guard("KILL")
        self._full = Wake()
        self._process: subprocess.Popen[bytes] | None = None
        # children that this process had before it
        self._known: frozenset[int] = frozenset()
        # of the last request that was sent; its answer has the same
        self._number = 0
        self._environment: Mapping[str, str] = {}
        self._output = OutputTail(None, None)
        self._errors = ""
        self._tree: Tree | None = None

    def run(
        self, request: object, limit_s: float, device: Chosen | None, *, first: object = None
    ) -> Result:
        """Return the result of a request, with where its time went. Raises Interrupted.

        first: the request by which a new process gets ready. That takes its own time: else a limit
        that is shorter would end every process before it is ready.
        """
        path = device.device.path if device else ""
        watch = self._making.sampler.draw(path) if self._making.sampler else None
        before = self._process
        try:
            process = self._start(device)
        except OSError as error:
            return Result(
                Outcome.FAILED,
                Reason.NO_BINARY,
                error=why_not_started(self._argv[0], error, self._making.program),
            )
        if watch is not None and self._tree is not None:
            watch.resume(self._tree)
        requests = [(request, limit_s)]
        if first is not None and process is not before:
            requests.insert(0, (first, READY_LIMIT_S if limit_s else 0.0))
        answers: list[dict[str, Any] | str | None] = []
        for question, limit_s in requests:
            answer: dict[str, Any] | str | None = None
            try:
                answer = self._ask(process, question, limit_s, watch)
            finally:
                # it can take another request only after a complete answer
                if not isinstance(answer, dict) or answer.get("last"):
                    self._end()
            answers.append(answer)
            if not isinstance(answer, dict) or "error" in answer:
                break
        activity = watch.close(_usage(answers)) if watch else None
        return replace(
            self._result(answers[-1], limit_s, process.returncode or 0), activity=activity
        )

    def close(self) -> None:
        """End the process and the guard."""
        self._end()
        self._guard.close()

    def _start(self, device: Chosen | None) -> subprocess.Popen[bytes]:
        """Return the process, a new one unless the last one lives and is for this device."""
        environment = self._making.devices.environment(device) if device else {}
        if self._process is not None and (
            self._environment != environment or self._process.poll() is not None
        ):
            self._end()
        if self._process is None:
            self._full = Wake()
            self._known = own_children()
            self._process = subprocess.Popen(
                self._argv,
                cwd=self._making.program.directory or None,
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
                None if self._making.program.null_output else sys.stderr,
                most_bytes=MOST_OUTPUT_BYTES,
                full=self._full,
            )
            self._tree = (
                Tree(self._process.pid, self._making.sampler.blocking)
                if self._making.sampler
                else None
            )
        return self._process

    def _ask(
        self,
        process: subprocess.Popen[bytes],
        request: object,
        limit_s: float,
        watch: ProgramWatch | None,
    ) -> dict[str, Any] | str | None:
        """Send a request; return its answer, or why there is none, "" when the process ended; None
        when that took too long. Raises Interrupted.
        """
        assert process.stdin is not None and process.stdout is not None
        deadline = time.monotonic() + (limit_s or float("inf"))
        self._output.begin()
        self._number += 1
        try:
            process.stdin.write(json.dumps([self._number, request]).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            return ""
        stream, answer = process.stdout.fileno(), b""
        handles = [stream, self._making.interrupt.fileno(), self._full.fileno()]
        while not answer.endswith(b"\n"):
            # its end, too: what it forked may keep its output open
            with end_handle(process) as end:
                ready = wait_ready([*handles, *end], deadline, watch)
            if not ready:
                return None
            if stream not in ready:
                if self._full.is_set():
                    return f"wrote more than {MOST_OUTPUT_BYTES} bytes in one request"
                if self._making.interrupt.fileno() in ready:
                    raise Interrupted
                return ""
            part = os.read(stream, 65536)
            answer += part
            if not part:
                # it closes its output before it ends
                ended = wait_child(process, min(deadline, time.monotonic() + EXIT_S))
                return "" if ended else CLOSED
            if len(answer) > MOST_ANSWER_BYTES:
                return f"answered with more than {MOST_ANSWER_BYTES} bytes"
        try:
            document = json.loads(answer)
        except ValueError:
            document = None
        is_answer = isinstance(document, dict) and document.get("number") == self._number
        # else the workload writes where answers go: what comes next may not be ours either
        return (
            document
            if is_answer
            else f"answered {cut_text(repr(answer), 60)}, which does not answer this request"
        )

    def _end(self) -> None:
        process, self._process = self._process, None
        if self._tree is not None:
            self._tree.close()
        if process is None:
            return
        end_group(process, self._making.program.kill_grace_s)
        end_orphans(self._known)
        self._guard.watch(None)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):  # the process died before it read everything
                    stream.close()
        self._errors = self._output.close()

    def _result(self, answer: dict[str, Any] | str | None, limit_s: float, code: int) -> Result:
        """Return the result of a request that was answered, or that was not. code: of the process,
        when it ended.
        """
        if answer is None:
            return timed_out_result(limit_s, self._name)
        if answer == "":
            # the process died, by a crash or for lack of memory
            text = last_words(self._errors)
            if code == UNAVAILABLE:
                text = f"{self._name} cannot be used here{text}"
                return Result(Outcome.FAILED, Reason.NO_BINARY, code, text)
            if code == ANSWERS_CLOSED:
                return Result(Outcome.FAILED, Reason.EXIT, code, f"{self._name} {CLOSED}")
            if code < 0:
                why = "; the memory limit of its container may be the reason" if code == -9 else ""
                text = f"{self._name} was ended by {signal_name(-code)}{why}{text}"
                return Result(Outcome.FAILED, Reason.SIGNAL, code, text)
            text = f"{self._name} ended by itself with code {code}{text}"
            return Result(Outcome.FAILED, Reason.EXIT, code, text)
        if isinstance(answer, str):
            return Result(Outcome.FAILED, Reason.EXIT, error=f"{self._name} {answer}")
        figures = answer.get("figures", {})
        if "error" not in answer:
            return Result(Outcome.SUCCEEDED, exit_code=0, figures=figures)
        reason = Reason.NO_DEVICE if answer.get("no_device") else Reason.EXIT
        reason = Reason.NO_BINARY if answer.get("unavailable") else reason
        return Result(Outcome.FAILED, reason, error=cut_text(answer["error"]), figures=figures)


def _usage(answers: Sequence[Any]) -> resource.struct_rusage | None:
    """Return what the process used for these answers; None when one of them does not say."""
    try:
        usages = [answer["usage"] for answer in answers]
        used = [sum(column) for column in zip(*usages, strict=True)]
        used[PEAK_MEMORY] = usages[-1][PEAK_MEMORY]  # the peak of its whole life
        return resource.struct_rusage([*map(float, used[:2]), *map(int, used[2:])])
    except (IndexError, KeyError, TypeError, ValueError):
        return None
