"""Run PyTorch in a process of its own, which keeps torch, the model and the device warm between
requests.

The process starts with the first request, in the environment that restricts it to the worker's
device, and again when the device changes or a request had to be ended. It dies with the worker.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from scaletest.kinds.torch import UNAVAILABLE, from_words
from scaletest.model import Outcome, Reason
from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.texts import without_secrets
from scaletest.system.children import Guard, end_group, wait_ready
from scaletest.system.sampler import ProgramWatch, RequestSampler
from scaletest.system.tree import Tree
from scaletest.system.wake import Wake
from workers.devices import Chosen, DeviceChooser
from workers.workloads.base import Interrupted, Result, failed, timed_out


class TorchWorkload:
    """Runs the worker's description with the request's changes."""

    def __init__(
        self,
        options: tuple[str, ...],
        interrupt: Wake,
        devices: DeviceChooser,
        kill_grace_s: float,
        sampler: RequestSampler | None = None,
    ) -> None:
        """Raises InvalidValue for words that cannot be read, UsageError without torch. sampler:
        None to leave out where the time went.
        """
        from_words(options)
        if find_spec("torch") is None:
            raise UsageError("torch is not installed here", hint="pip install 'scaletest[torch]'")
        self._options = options
        self._interrupt = interrupt
        self._devices = devices
        self._grace_s = kill_grace_s
        self._guard = Guard("KILL")
        self._process: subprocess.Popen[bytes] | None = None
        self._environment: Mapping[str, str] = {}
        self._sampler = sampler
        self._tree: Tree | None = None

    def run(self, arguments: tuple[str, ...], limit_s: float, device: Chosen | None) -> Result:
        """Compute once. Raises Interrupted."""
        options = [*self._options, *arguments]
        try:
            from_words(options)
        except InvalidValue as error:
            return failed(error)
        return self._compute(json.dumps(options).encode() + b"\n", limit_s, device)

    def _compute(self, line: bytes, limit_s: float, device: Chosen | None) -> Result:
        """The result of a request, with where its time went. Raises Interrupted."""
        deadline = time.monotonic() + (limit_s or float("inf"))
        path = device.device.path if device else ""
        watch = self._sampler.draw(path) if self._sampler else None
        process = self._ready(self._devices.environment(device) if device else {})
        if watch is not None and self._tree is not None:
            watch.resume(self._tree)
        answer: bytes | None = None
        try:
            answer = self._ask(process, line, deadline, watch)
        finally:
            if not answer:
                self._end()
        usage = None
        if answer:
            document = json.loads(answer)
            usage, result = _usage(document), _result(document)
        elif answer is None:
            result = timed_out(limit_s, "torch")
        else:
            result = _died(process.returncode)
        return replace(result, activity=watch.close(usage) if watch else None)

    def close(self) -> None:
        """End the process and the guard."""
        self._end()
        self._guard.close()

    def _ready(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        if self._process is not None and (
            self._environment != environment or self._process.poll() is not None
        ):
            self._end()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "workers.torch_child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._guard.environment({**without_secrets(os.environ), **environment}),
                start_new_session=True,
            )
            self._guard.watch(self._process.pid)
            self._environment = environment
            self._tree = Tree(self._process.pid, self._sampler.blocking) if self._sampler else None
        return self._process

    def _ask(
        self,
        process: subprocess.Popen[bytes],
        line: bytes,
        deadline: float,
        watch: ProgramWatch | None,
    ) -> bytes | None:
        """Send a request; b"" when the process died, None at the deadline. Raises Interrupted."""
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except OSError:
            return b""
        output, answer = process.stdout.fileno(), b""
        while not answer.endswith(b"\n"):
            ready = wait_ready([output, self._interrupt.fileno()], deadline, watch)
            if output in ready:
                part = os.read(output, 65536)
                if not part:
                    return b""
                answer += part
            elif ready:
                raise Interrupted
            else:
                return None
        return answer

    def _end(self) -> None:
        process, self._process = self._process, None
        if self._tree is not None:
            self._tree.close()
        if process is None:
            return
        end_group(process, self._grace_s)
        self._guard.watch(None)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):  # the process died before it read everything
                    stream.close()


def _usage(answer: dict[str, Any]) -> resource.struct_rusage | None:
    """Resources that the process used for the request; None when the answer lacks them."""
    try:
        times, counts = answer["usage"][:2], answer["usage"][2:]
        return resource.struct_rusage([*map(float, times), *map(int, counts)])
    except (KeyError, TypeError, ValueError):
        return None


def _result(answer: dict[str, Any]) -> Result:
    figures = answer.get("figures", {})
    if "error" not in answer:
        return Result(Outcome.SUCCEEDED, exit_code=0, figures=figures)
    reason = Reason.NO_DEVICE if answer.get("no_device") else Reason.EXIT
    reason = Reason.NO_BINARY if answer.get("unavailable") else reason
    return Result(Outcome.FAILED, reason, error=cut(answer["error"]), figures=figures)


def _died(code: int | None) -> Result:
    """The result when the process died, by a crash or for lack of memory, not by torch's errors."""
    code = code or 0
    reason, text = Reason.EXIT, f"torch ended by itself with code {code}; the worker's log says why"
    if code == UNAVAILABLE:
        reason, text = Reason.NO_BINARY, "PyTorch cannot be used here; the worker's log says why"
    elif code < 0:
        why = "; the memory limit of its container may be the reason" if code == -9 else ""
        reason, text = Reason.SIGNAL, f"torch was ended by signal {-code}{why}"
    return Result(Outcome.FAILED, reason, code, text)
