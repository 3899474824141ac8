"""PyTorch's part of the work: a process of this worker's own that keeps torch, the model and the device warm.

It is started with the first request, with the environment that restricts it to the worker's device, and anew when that
is another device, or when a request had to be ended. It dies with the worker.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from scaletest.kinds.torch import UNAVAILABLE, from_words
from scaletest.model import Outcome, Reason
from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.secrets import without_secrets
from scaletest.system.guard import Guard
from scaletest.system.waiting import end_group
from workers.devices import Chosen, DeviceChooser
from workers.workloads.base import Interrupt, Interrupted, Result


class TorchWorkload:
    """Runs the worker's description with the request's changes."""

    def __init__(
        self,
        words: tuple[str, ...],
        interrupt: Interrupt,
        devices: DeviceChooser,
        kill_grace_s: float,
        *,
        ignore_arguments: bool = False,
    ) -> None:
        """Raises InvalidValue for words that cannot be read, UsageError without torch."""
        from_words(words)
        if find_spec("torch") is None:
            raise UsageError("torch is not installed here", hint="pip install 'scaletest[torch]'")
        self._words = words
        self._interrupt = interrupt
        self._devices = devices
        self._grace_s = kill_grace_s
        self._ignore_arguments = ignore_arguments
        self._guard = Guard("KILL")
        self._process: subprocess.Popen[bytes] | None = None
        self._environment: Mapping[str, str] = {}

    def run(self, arguments: tuple[str, ...], limit_s: float, device: Chosen | None) -> Result:
        """Compute once. Raises Interrupted."""
        words = [*self._words, *(() if self._ignore_arguments else arguments)]
        try:
            from_words(words)
        except InvalidValue as error:
            return Result(Outcome.FAILED, Reason.EXIT, error=error.message)
        deadline = time.monotonic() + limit_s if limit_s > 0 else float("inf")
        process = self._ready(self._devices.environment(device) if device else {})
        done = False
        try:
            line = self._ask(process, json.dumps(words).encode() + b"\n", deadline)
            done = bool(line)
        finally:
            if not done:
                self._end()
        if line:
            return _result(json.loads(line))
        if line is None:
            return Result(Outcome.TIMED_OUT, error=f"torch timed out after {limit_s:g} s", timeout_s=limit_s)
        return _died(process.returncode)

    def close(self) -> None:
        """End the process and the guard."""
        self._end()
        self._guard.close()

    def _ready(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        if self._process is not None and (self._environment != environment or self._process.poll() is not None):
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
        return self._process

    def _ask(self, process: subprocess.Popen[bytes], line: bytes, deadline: float) -> bytes | None:
        """The answer; b"" when the process died, None at the deadline. Raises Interrupted."""
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except OSError:
            return b""
        found = b""
        while not found.endswith(b"\n"):
            left = None if deadline == float("inf") else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([process.stdout, self._interrupt], [], [], left)
            if process.stdout in ready:
                part = os.read(process.stdout.fileno(), 65536)
                if not part:
                    return b""
                found += part
            elif ready:
                raise Interrupted
            else:
                return None
        return found

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        end_group(process, self._grace_s)
        self._guard.watch(None)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:  # it died before it read everything
                    pass


def _result(answer: dict[str, Any]) -> Result:
    figures = answer.get("figures", {})
    if "error" not in answer:
        return Result(Outcome.SUCCEEDED, exit_code=0, figures=figures)
    reason = Reason.NO_DEVICE if answer.get("no_device") else Reason.EXIT
    reason = Reason.NO_BINARY if answer.get("unavailable") else reason
    return Result(Outcome.FAILED, reason, error=cut(answer["error"]), figures=figures)


def _died(code: int | None) -> Result:
    """The process ended by itself, which its own errors do not do: a crash, or the system's want of memory."""
    code = code or 0
    if code == UNAVAILABLE:
        error = "PyTorch cannot be used here; the worker's log says why"
        return Result(Outcome.FAILED, Reason.NO_BINARY, code, error)
    if code >= 0:
        return Result(
            Outcome.FAILED, Reason.EXIT, code, f"torch ended by itself with code {code}; the worker's log says why"
        )
    text = f"torch was ended by signal {-code}" + (
        "; the memory limit of its container may be the reason" if code == -9 else ""
    )
    return Result(Outcome.FAILED, Reason.SIGNAL, code, text)
