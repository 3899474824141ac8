"""Any program: run without a shell, in a process group of its own, which ends with it, its limit, or its worker."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from scaletest.model import Outcome, Reason
from scaletest.model.checks import cut
from scaletest.system.guard import Guard
from scaletest.system.waiting import end_group, wait_child
from workers.devices import DeviceChooser, NoDevice
from workers.workloads.base import SUCCEEDED, Interrupt, Interrupted, Result

# Stands for the device path in any argument, as in the tool that this replaces.
PLACEHOLDER = "FILENAME"
DEVICE_VARIABLE = "SCALETEST_DEVICE"
DEFAULT_KILL_GRACE_S = 5.0
# How much of a program's standard error goes into an error reply.
TAIL_BYTES = 600


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """How a program is run.

    kill_grace_s: seconds between TERM and KILL when the time limit is exceeded.
    """

    command: tuple[str, ...]
    directory: str = ""
    null_input: bool = False
    null_output: bool = False
    ignore_arguments: bool = False
    kill_grace_s: float = DEFAULT_KILL_GRACE_S
    environment: dict[str, str] = field(default_factory=dict)


class Command:
    """Runs the worker's program with the request's arguments added, FILENAME replaced by the device's path."""

    def __init__(self, options: CommandOptions, devices: DeviceChooser, interrupt: Interrupt) -> None:
        self._options = options
        self._devices = devices
        self._interrupt = interrupt
        self._guard = Guard("KILL")
        # the workload has no business with our Redis, whose URL may hold a password
        ours = {name: value for name, value in os.environ.items() if not name.startswith("SCALETEST_REDIS")}
        self._environment = self._guard.environment({**ours, **options.environment})

    def run(self, arguments: tuple[str, ...], limit_s: float) -> Result:
        """Run the program to its end, or to the limit; its whole process group is gone afterwards."""
        extra = () if self._options.ignore_arguments else arguments
        argv = [*self._options.command, *extra]
        environment = self._environment
        device = ""
        try:
            device = self._devices.choose(required=any(PLACEHOLDER in part for part in argv))
        except NoDevice as error:
            return Result(Outcome.FAILED, Reason.NO_DEVICE, error=str(error))
        if device:
            argv = [part.replace(PLACEHOLDER, device) for part in argv]
            environment = {**environment, DEVICE_VARIABLE: device}
        try:
            process = self._start(argv, environment)
        except OSError as error:
            return Result(Outcome.FAILED, Reason.NO_BINARY, error=_cannot_start(argv[0], error, self._options))
        return self._watch(process, argv[0], limit_s, device)

    def close(self) -> None:
        """End the guard."""
        self._guard.close()

    def _start(self, argv: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        options = self._options
        return subprocess.Popen(
            argv,
            cwd=options.directory or None,
            env=environment,
            stdin=subprocess.DEVNULL if options.null_input else None,
            stdout=subprocess.DEVNULL if options.null_output else None,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def _watch(self, process: subprocess.Popen[bytes], program: str, limit_s: float, device: str) -> Result:
        self._guard.watch(process.pid)
        tail = _Tail(process, echo=not self._options.null_output)
        try:
            deadline = time.monotonic() + limit_s if limit_s > 0 else float("inf")
            ended = wait_child(process, deadline, self._interrupt.fileno())
            late = time.monotonic() >= deadline
        finally:
            end_group(process, self._options.kill_grace_s)
            self._guard.watch(None)
            error_text = tail.close()
        if ended:
            return _result(process.returncode, program, error_text, device)
        if not late:
            raise Interrupted
        return Result(
            Outcome.TIMED_OUT,
            exit_code=process.returncode,
            error=f"{program} timed out after {limit_s:g} s",
            timeout_s=limit_s,
            device=device,
        )


class _Tail:
    """Passes a program's standard error on to ours and keeps its end. Its thread ends with the pipe, or at close."""

    def __init__(self, process: subprocess.Popen[bytes], *, echo: bool) -> None:
        assert process.stderr is not None
        self._stream = process.stderr
        self._echo = echo and sys.stderr is not None
        self._kept = b""
        self._thread = threading.Thread(target=self._read, name="scaletest-stderr", daemon=True)
        self._thread.start()

    def close(self) -> str:
        """The end of what was written, as text safe for a reply. The group is dead, so the pipe is at its end.

        A process that left the group may still hold it open; it is not waited for.
        """
        self._thread.join(timeout=0.2)
        if not self._thread.is_alive():
            self._stream.close()
        return cut(self._kept.decode(errors="replace").strip(), TAIL_BYTES)

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._stream.fileno(), 65536):
                self._pass_on(chunk)
                self._kept = (self._kept + chunk)[-TAIL_BYTES:]

    def _pass_on(self, chunk: bytes) -> None:
        """Echo while that is possible. When it is not (disk full, reader gone) the program must not notice."""
        if self._echo:
            try:
                sys.stderr.buffer.write(chunk)
                sys.stderr.buffer.flush()
            except Exception:
                self._echo = False


def _result(code: int, program: str, error_text: str, device: str) -> Result:
    if code == 0:
        return SUCCEEDED if not device else Result(Outcome.SUCCEEDED, exit_code=0, device=device)
    detail = f": {error_text}" if error_text else ""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return Result(Outcome.FAILED, Reason.SIGNAL, code, f"{program} was ended by {name}{detail}", device=device)
    return Result(Outcome.FAILED, Reason.EXIT, code, f"{program} returned error code {code}{detail}", device=device)


def _cannot_start(program: str, error: OSError, options: CommandOptions) -> str:
    if options.directory and not Path(options.directory).is_dir():
        return f"the work directory {options.directory} is not there"
    return f"{program} cannot be started: {error.strerror}"
