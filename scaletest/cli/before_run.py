"""Checks before a run on this machine: a program that cannot be started, or a device that nobody
may open, would otherwise cost a run of requests that fail.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from scaletest.model import Plan
from scaletest.model.errors import UsageError
from workers.devices import DeviceChooser, DeviceOptions
from workers.workloads.command import PLACEHOLDER, ProgramOptions, why_not_started

# What workers run without a program.
WORKLOADS = ("bench", "fakedev", "sleep", "torch", "transcode")


def check_plan(plan: Plan) -> None:
    """UsageError when a program or a device of a plan, or of its background loads, cannot be used
    here.
    """
    check_program(plan.command)
    # who leases slots may get any of the devices
    most = None if plan.per_device else plan.limit
    check_devices(DeviceOptions(plan.device_glob, preset=plan.preset), most)
    for load in plan.background:
        check_program(load.command)
        check_devices(DeviceOptions(load.device_glob), load.workers)


def device_names(plan: Plan) -> list[str]:
    """The devices that a plan's workers share; none where no slots are leased. Raises NoDevice."""
    if not plan.per_device or not (plan.device_glob or plan.preset):
        return []
    chooser = DeviceChooser(DeviceOptions(plan.device_glob, preset=plan.preset))
    return [f"{device.vendor} {device.model}".strip() for device in chooser.devices()]


def check_program(command: tuple[str, ...], options: ProgramOptions | None = None) -> None:
    """UsageError when the first word names no program that can be started."""
    options = options or ProgramOptions()
    program = "".join(command[:1])
    path = str(Path(options.directory, program)) if "/" in program else program
    if program in (*WORKLOADS, "") or PLACEHOLDER in program or shutil.which(path):
        return
    error, hint = OSError(0, "there is no such program"), "install it, or give its path"
    if Path(path).is_file():
        error = OSError(0, "it is not executable")
        hint = f"chmod +x {path}, or name its interpreter"
    raise UsageError(why_not_started(program, error, options), hint=hint)


def check_devices(options: DeviceOptions, most: int | None) -> None:
    """NoDevice when there is none, or one of the first `most` cannot be used; None for all."""
    chooser = DeviceChooser(options)
    if chooser.wanted:
        chooser.check(most)
