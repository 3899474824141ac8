"""Check before a run on this machine what would otherwise cost a run of requests that fail.

Such are a program that cannot be started, and a device that may not be opened.
"""

import shlex
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from scaletest.model.errors import UsageError
from scaletest.processes.wake import Wake
from scaletest_workers.devices import DeviceChooser, DeviceOptions
from scaletest_workers.runtime import Runtime
from scaletest_workers.settings import Settings
from scaletest_workers.workloads import registry
from scaletest_workers.workloads.base import ProgramOptions
from scaletest_workers.workloads.command import PLACEHOLDER
from scaletest_workers.workloads.program import why_not_started


def check_here(command: tuple[str, ...], devices: DeviceOptions, most: int | None) -> None:
    """Check the program, the devices, and that a class or function of Python can be made."""
    check_program(command)
    check_devices(devices, most)
    if registry.is_python(command):
        # with the first device, since there is no broker to lease one from
        first = replace(devices, device_index=0 if devices.glob else None)
        with closing(Runtime(Settings(command, devices=first, no_causes=True), Wake())) as runtime:
            runtime.prepare()


def check_program(command: tuple[str, ...], options: ProgramOptions | None = None) -> None:
    """Raise UsageError when the first word names no program that can be started.

    A class or function of Python is left to the worker, which imports it in a process of its own.
    """
    options = options or ProgramOptions()
    program = "".join(command[:1])
    path = str(Path(options.directory, program).absolute()) if "/" in program else program
    is_workload = program in (*registry.BUILT_IN, "") or registry.is_python(command)
    if is_workload or PLACEHOLDER in program or shutil.which(path):
        return
    error = OSError(0, "there is no such program")
    hint = "install it, or give its path"
    if len(program.split()) > 1:
        hint = (
            f"for a line of a shell: sh -c {shlex.quote(program)}; for a program, leave out these"
            " quotes"
        )
    elif Path(path).is_file():
        error = OSError(0, "it is not executable")
        hint = f"chmod +x {path}, or name its interpreter"
    raise UsageError(why_not_started(program, error, options), hint=hint)


def check_devices(options: DeviceOptions, most: int | None) -> None:
    """Raise NoDevice when there is none, or one of the first `most` (None: all) is unusable."""
    chooser = DeviceChooser(options)
    if chooser.wanted:
        chooser.check(most)
