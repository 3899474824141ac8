"""Runs one program without a shell, in a process group that ends with it, its limit or worker."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from scaletest.model import Outcome, Reason
from scaletest.model.checks import cut
from scaletest.model.secrets import without_secrets
from scaletest.system.guard import Guard
from scaletest.system.sampler import ProgramWatch, RequestSampler
from scaletest.system.waiting import end_group, wait_child
from workers.devices import DEVICE_VARIABLE
from workers.workloads.base import SUCCEEDED, Interrupt, Interrupted, Result

DEFAULT_KILL_GRACE_S = 5.0
# How much of a program's standard error goes into an error reply.
TAIL_BYTES = 600
# How much of its output is kept to be parsed for figures.
OUTPUT_BYTES = 262_144


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """How programs are run.

    kill_grace_s: seconds between TERM and KILL when the time limit is exceeded.
    """

    directory: str = ""
    null_input: bool = False
    null_output: bool = False
    kill_grace_s: float = DEFAULT_KILL_GRACE_S


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended, with the ends of what it wrote; output is empty unless it was captured.

    result: derived from the exit code alone.
    """

    result: Result
    output: str = ""
    errors: str = ""


class Program:
    """Runs programs one after the other."""

    def __init__(
        self, options: ProgramOptions, interrupt: Interrupt, sampler: RequestSampler | None = None
    ) -> None:
        """sampler: None to leave out where programs spend their time."""
        self._options = options
        self._sampler = sampler
        self._interrupt = interrupt
        self._guard = Guard("KILL")
        self._environment = self._guard.environment(without_secrets(os.environ))

    def run(
        self,
        argv: Sequence[str],
        limit_s: float,
        environment: Mapping[str, str],
        *,
        capture: bool = False,
        quiet: bool = False,
    ) -> Ended:
        """Run it to its end, or to the limit; its whole process group is gone afterwards. Raises
        Interrupted.

        capture: keep standard output to be read. quiet: keep what it writes, and pass nothing on.
        """
        watch = self._sampler.draw(environment.get(DEVICE_VARIABLE, "")) if self._sampler else None
        try:
            process = self._start(argv, {**self._environment, **environment}, capture)
        except OSError as error:
            text = _cannot_start(argv[0], error, self._options)
            return Ended(Result(Outcome.FAILED, Reason.NO_BINARY, error=text))
        return self._wait(process, argv[0], limit_s, quiet or self._options.null_output, watch)

    def close(self) -> None:
        """End the guard."""
        self._guard.close()

    def _start(
        self, argv: Sequence[str], environment: dict[str, str], capture: bool
    ) -> subprocess.Popen[bytes]:
        options = self._options
        plain = subprocess.DEVNULL if options.null_output else None
        return subprocess.Popen(
            list(argv),
            cwd=options.directory or None,
            env=environment,
            stdin=subprocess.DEVNULL if options.null_input else None,
            stdout=subprocess.PIPE if capture else plain,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        program: str,
        limit_s: float,
        silent: bool,
        watch: ProgramWatch | None,
    ) -> Ended:
        self._guard.watch(process.pid)
        if watch is not None:
            watch.start(process.pid)
        errors = _Tail(process.stderr, None if silent else sys.stderr)
        output = _Tail(process.stdout, None if silent else sys.stdout)
        try:
            deadline = time.monotonic() + limit_s if limit_s > 0 else float("inf")
            ended = wait_child(process, deadline, self._interrupt.fileno(), watch=watch)
            late = time.monotonic() >= deadline
        finally:
            usage = end_group(process, self._options.kill_grace_s, watch)
            self._guard.watch(None)
            texts = output.close(), errors.close()
            activity = watch.close(usage) if watch is not None else None
        if not ended and not late:
            raise Interrupted
        result = (
            _result(process.returncode, program, texts[1])
            if ended
            else _timed_out(process, program, limit_s)
        )
        return Ended(result if activity is None else replace(result, activity=activity), *texts)


class _Tail:
    """Forwards the output of a program and keeps its end. Its thread ends with the pipe."""

    def __init__(self, stream: IO[bytes] | None, echo: IO[str] | None) -> None:
        self._stream = stream
        self._echo = echo
        self._end = b""
        self._thread = threading.Thread(target=self._read, name="scaletest-output", daemon=True)
        if stream is not None:
            self._thread.start()

    def close(self) -> str:
        """The end of the output. The process group is dead, so the pipe is at its end.

        A process that left the group may still hold it open; it is not waited for.
        """
        if self._stream is None:
            return ""
        self._thread.join(timeout=0.2)
        if not self._thread.is_alive():
            self._stream.close()
        return self._end.decode(errors="replace")

    def _read(self) -> None:
        assert self._stream is not None
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._stream.fileno(), 65536):
                self._pass_on(chunk)
                self._end = (self._end + chunk)[-OUTPUT_BYTES:]

    def _pass_on(self, chunk: bytes) -> None:
        """Echo while possible. Errors (disk full, reader gone) must not reach the program."""
        if self._echo is not None:
            try:
                self._echo.buffer.write(chunk)  # type: ignore[attr-defined]
                self._echo.buffer.flush()  # type: ignore[attr-defined]
            except Exception:
                self._echo = None


def end_of(text: str) -> str:
    """The end of a program's errors, safe for a reply."""
    return cut(text[-TAIL_BYTES:].strip(), TAIL_BYTES)


def _timed_out(process: subprocess.Popen[bytes], program: str, limit_s: float) -> Result:
    error = f"{program} timed out after {limit_s:g} s"
    return Result(Outcome.TIMED_OUT, exit_code=process.returncode, error=error, timeout_s=limit_s)


def _result(code: int, program: str, errors: str) -> Result:
    if code == 0:
        return SUCCEEDED
    detail = end_of(errors)
    detail = f": {detail}" if detail else ""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return Result(Outcome.FAILED, Reason.SIGNAL, code, f"{program} was ended by {name}{detail}")
    return Result(
        Outcome.FAILED, Reason.EXIT, code, f"{program} returned error code {code}{detail}"
    )


def _cannot_start(program: str, error: OSError, options: ProgramOptions) -> str:
    if options.directory and not Path(options.directory).is_dir():
        return f"the work directory {options.directory} is not there"
    path = Path(program)
    if path.is_char_device() or path.is_block_device():
        return f"{program} is a device, not a program: put the pattern of --device-glob into quotes"
    return f"{program} cannot be started: {error.strerror}"
