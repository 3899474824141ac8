"""Run programs one after the other, without a shell.

Each has a process group that ends with it, its limit or the worker. Their output is passed on while
it comes, and its end kept.
"""

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

from scaletest.model import Outcome, Reason, checks
from scaletest.model.masking import without_secrets
from scaletest.observe.sampler import RequestSampler
from scaletest.processes.children import end_group, wait_child
from scaletest.processes.guard import Guard
from scaletest.processes.orphans import end_orphans, own_children
from scaletest.processes.wake import Wake
from scaletest_workers.devices import DEVICE_VARIABLE
from scaletest_workers.workloads.base import (
    SUCCEEDED,
    Interrupted,
    ProgramOptions,
    Result,
    ServedWorkload,
    WorkloadSetup,
    timed_out_result,
)

# How much output of a process is kept, to be parsed for figures or for an error.
OUTPUT_BYTES = 262_144
# How much of a program's standard error goes into an error reply.
TAIL_BYTES = 600


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How a program ended, with the ends of what it wrote."""

    result: Result  # derived from the exit code alone
    output: str = ""  # empty unless it was captured
    errors: str = ""


class Program:
    """Runs the programs of one worker."""

    def __init__(
        self, options: ProgramOptions, interrupt: Wake, sampler: RequestSampler | None = None
    ) -> None:
        """Prepare to run. sampler: None to leave out where programs spend their time."""
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
    ) -> ProgramEnd:
        """Run it to its end, or to the limit; all of its processes are gone afterwards.

        capture: keep standard output to be read. quiet: keep what it writes, and pass nothing on.
        Raises Interrupted.
        """
        watch = None
        if self._sampler is not None:
            watch = self._sampler.draw(environment.get(DEVICE_VARIABLE, ""))
        options = self._options
        name = argv[0]
        children_before = own_children()

        # start it, with readers of its output
        shown_output = subprocess.DEVNULL if options.null_output else None
        try:
            process = subprocess.Popen(
                list(argv),
                cwd=options.directory or None,
                env={**self._environment, **environment},
                stdin=subprocess.DEVNULL if options.null_input else None,
                stdout=subprocess.PIPE if capture else shown_output,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            return ProgramEnd(
                Result(
                    Outcome.FAILED, Reason.NO_BINARY, error=why_not_started(name, error, options)
                )
            )
        self._guard.watch(process.pid)
        if watch is not None:
            watch.start(process.pid)
        is_silent = quiet or options.null_output
        errors = OutputTail(process.stderr, None if is_silent else sys.stderr)
        output = OutputTail(process.stdout, None if is_silent else sys.stdout)

        # wait for its end, and end what it leaves behind
        try:
            deadline = time.monotonic() + (limit_s or float("inf"))
            has_ended = wait_child(process, deadline, self._interrupt.fileno(), watch=watch)
            is_late = time.monotonic() >= deadline
        finally:
            usage = end_group(process, options.kill_grace_s, watch)
            end_orphans(children_before)
            self._guard.watch(None)
            output_text = output.close()
            errors_text = errors.close()
            activity = watch.close(usage) if watch is not None else None

        # say how it ended
        code = process.returncode
        if not has_ended and not is_late:
            raise Interrupted
        if not has_ended:
            result = replace(timed_out_result(limit_s, name), exit_code=code)
        elif code == 0:
            result = SUCCEEDED
        else:
            reason = Reason.EXIT
            end = f"returned error code {code}"
            if code < 0:
                reason = Reason.SIGNAL
                end = f"was ended by {signal_name(-code)}"
            result = Result(Outcome.FAILED, reason, code, f"{name} {end}{last_words(errors_text)}")
        if activity is not None:
            result = replace(result, activity=activity)
        return ProgramEnd(result, output_text, errors_text)

    def close(self) -> None:
        """End the guard."""
        self._guard.close()


class ProgramWorkload(ServedWorkload):
    """A workload that runs a program for each request."""

    def __init__(self, setup: WorkloadSetup) -> None:
        """Prepare to run programs as the worker's options say."""
        self._setup = setup
        self._program = Program(setup.program, setup.interrupt, setup.sampler)

    def close(self) -> None:
        """End the guard of its programs."""
        self._program.close()


def signal_name(number: int) -> str:
    """Return the name of a signal; most real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def last_words(errors: str) -> str:
    """Return the end of what a program wrote, behind a colon; "" for nothing."""
    detail = checks.cut_text(errors[-TAIL_BYTES:].strip(), TAIL_BYTES)
    return f": {detail}" if detail else ""


def why_not_started(program: str, error: OSError, options: ProgramOptions) -> str:
    """Say why a program did not start, or will not."""
    if options.directory and not Path(options.directory).is_dir():
        return f"the work directory {options.directory} does not exist"
    path = Path(program)
    if path.is_char_device() or path.is_block_device():
        return f"{program} is a device, not a program: put the pattern of --device-glob into quotes"
    return f"{program} cannot be started: {error.strerror}"


class OutputTail:
    """Forwards the output of a process and keeps its end. Its thread ends with the pipe."""

    def __init__(
        self,
        stream: IO[bytes] | None,
        echo: IO[str] | None,
    ) -> None:
        """Forward `stream` to `echo`, where both are given."""
        self._stream = stream
        self._echo = echo
        self._end = b""
        self._thread = threading.Thread(target=self._read, name="scaletest-output", daemon=True)
        if stream is not None:
            self._thread.start()

    def begin(self) -> None:
        """Forget what was kept so far, as a new request begins."""
        self._end = b""

    def close(self) -> str:
        """Return the end of the output. The process group is dead, so the pipe is at its end.

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
                if self._echo is not None:
                    try:
                        self._echo.buffer.write(chunk)  # type: ignore[attr-defined]
                        self._echo.buffer.flush()  # type: ignore[attr-defined]
                    except Exception:  # a full disk, or no reader: not the program's concern
                        self._echo = None
                self._end = (self._end + chunk)[-OUTPUT_BYTES:]
