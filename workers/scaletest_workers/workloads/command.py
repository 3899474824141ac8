"""Any program as a workload: the worker's command with the request's arguments.

A program runs without a shell, in a process group that ends with it, its limit or worker. Figures
of known tools are read from its output.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from scaletest.model import Outcome, Reason, checks
from scaletest.model.masking import without_secrets
from scaletest.observe.sampler import ProgramWatch, RequestSampler
from scaletest.processes.children import end_group, wait_child
from scaletest.processes.guard import Guard
from scaletest.processes.orphans import end_orphans, own_children
from scaletest.processes.wake import Wake
from scaletest_workers.devices import DEVICE_VARIABLE, Chosen, DeviceChooser
from scaletest_workers.options.transcode_tools import READERS, Reader
from scaletest_workers.workloads.base import SUCCEEDED, Interrupted, Result, timed_out
from scaletest_workers.workloads.making import Making, ProgramOptions
from scaletest_workers.workloads.output import OutputTail

# How much of a program's standard error goes into an error reply.
TAIL_BYTES = 600


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
        self, options: ProgramOptions, interrupt: Wake, sampler: RequestSampler | None = None
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
        """Run it to its end, or to the limit; all of its processes are gone afterwards. Raises
        Interrupted.

        capture: keep standard output to be read. quiet: keep what it writes, and pass nothing on.
        """
        watch = self._sampler.draw(environment.get(DEVICE_VARIABLE, "")) if self._sampler else None
        options = self._options
        plain = subprocess.DEVNULL if options.null_output else None
        known = own_children()
        try:
            process = subprocess.Popen(
                list(argv),
                cwd=options.directory or None,
                env={**self._environment, **environment},
                stdin=subprocess.DEVNULL if options.null_input else None,
                stdout=subprocess.PIPE if capture else plain,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            text = why_not_started(argv[0], error, options)
            return Ended(Result(Outcome.FAILED, Reason.NO_BINARY, error=text))
        return self._wait(process, argv[0], limit_s, quiet or options.null_output, watch, known)

    def close(self) -> None:
        """End the guard."""
        self._guard.close()

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        program: str,
        limit_s: float,
        silent: bool,
        watch: ProgramWatch | None,
        known: Collection[int],
    ) -> Ended:
        self._guard.watch(process.pid)
        if watch is not None:
            watch.start(process.pid)
        errors = OutputTail(process.stderr, None if silent else sys.stderr)
        output = OutputTail(process.stdout, None if silent else sys.stdout)
        try:
            deadline = time.monotonic() + (limit_s or float("inf"))
            ended = wait_child(process, deadline, self._interrupt.fileno(), watch=watch)
            late = time.monotonic() >= deadline
        finally:
            usage = end_group(process, self._options.kill_grace_s, watch)
            end_orphans(known)
            self._guard.watch(None)
            texts = output.close(), errors.close()
            activity = watch.close(usage) if watch is not None else None
        if not ended and not late:
            raise Interrupted
        result = (
            _result(process.returncode, program, texts[1])
            if ended
            else replace(timed_out(limit_s, program), exit_code=process.returncode)
        )
        return Ended(result if activity is None else replace(result, activity=activity), *texts)


def _result(code: int, program: str, errors: str) -> Result:
    if code == 0:
        return SUCCEEDED
    detail = last_words(errors)
    if code < 0:
        name = signal_name(-code)
        return Result(Outcome.FAILED, Reason.SIGNAL, code, f"{program} was ended by {name}{detail}")
    return Result(
        Outcome.FAILED, Reason.EXIT, code, f"{program} returned error code {code}{detail}"
    )


def last_words(errors: str) -> str:
    """The end of what a program wrote, behind a colon and safe for a reply; "" for nothing."""
    detail = checks.cut(errors[-TAIL_BYTES:].strip(), TAIL_BYTES)
    return f": {detail}" if detail else ""


def signal_name(number: int) -> str:
    """The name of a signal, such as SIGKILL."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def why_not_started(program: str, error: OSError, options: ProgramOptions) -> str:
    """Why a program did not start, or will not, in words."""
    if options.directory and not Path(options.directory).is_dir():
        return f"the work directory {options.directory} is not there"
    path = Path(program)
    if path.is_char_device() or path.is_block_device():
        return f"{program} is a device, not a program: put the pattern of --device-glob into quotes"
    return f"{program} cannot be started: {error.strerror}"


# Replaced with the device path in any argument.
PLACEHOLDER = "FILENAME"


def make(making: Making) -> Command:
    """The workload that runs the worker's command."""
    return Command(making.command, program(making), making.devices)


def program(making: Making) -> Program:
    """What runs the programs of a workload."""
    return Program(making.program, making.interrupt, making.sampler)


class Command:
    """Runs the worker's program with the request's arguments; FILENAME becomes the device path."""

    def __init__(
        self,
        command: tuple[str, ...],
        program: Program,
        devices: DeviceChooser,
    ) -> None:
        self._command = command
        self._program = program
        self._devices = devices

    def run(self, arguments: tuple[str, ...], limit_s: float, device: Chosen | None) -> Result:
        """Run the program to its end or limit; then all of its processes are gone."""
        argv = [*self._command, *arguments]
        environment: Mapping[str, str] = {}
        if device is not None:
            argv = [part.replace(PLACEHOLDER, device.device.path) for part in argv]
            environment = self._devices.environment(device)
        elif any(PLACEHOLDER in part for part in argv):
            return Result(
                Outcome.FAILED,
                Reason.NO_DEVICE,
                error=f"{PLACEHOLDER} is used, but no --device-glob was given",
            )
        reader = READERS.get(PurePath(argv[0]).name)
        ended = self._program.run(argv, limit_s, environment, capture=reader is not None)
        return ended.result if reader is None else read(ended, reader)

    def close(self) -> None:
        """End the guard of its programs."""
        self._program.close()


def read(ended: Ended, reader: Reader) -> Result:
    """The result with the tool's figures, and a better reason where its messages have one."""
    reading = reader(ended.output, ended.errors)
    result = replace(ended.result, figures=reading.figures) if reading.figures else ended.result
    if result.outcome is not Outcome.FAILED or not reading.complaint:
        return result
    reason = Reason.NO_DEVICE if reading.no_device else result.reason
    return replace(result, reason=reason, error=f"{reading.complaint}: {result.error}")
