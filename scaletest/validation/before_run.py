"""Checks of a plan on this machine before its run.

A program that cannot be started, or a device that nobody may open, would otherwise cost a run of
requests that fail.
"""

from scaletest.validation.plan import Plan
from scaletest_workers.before_run import check_here
from scaletest_workers.devices import DeviceChooser, DeviceOptions


def check_plan(plan: Plan) -> None:
    """Raise UsageError when a program or device of a plan, or of its background loads, is unusable.

    That is when it cannot be started or opened here.
    """
    # workers that lease slots may get any of the devices
    devices_needed = None if plan.per_device else plan.limit
    check_here(plan.command, DeviceOptions(plan.device_glob, preset=plan.preset), devices_needed)
    for load in plan.background:
        check_here(load.command, DeviceOptions(load.device_glob), load.workers)


def device_names(plan: Plan) -> list[str]:
    """Return the devices that a plan's workers share; none where no slots are leased.

    NoDevice where none matches.
    """
    if not plan.per_device or not (plan.device_glob or plan.preset):
        return []
    chooser = DeviceChooser(DeviceOptions(plan.device_glob, preset=plan.preset))
    return [device.product for device in chooser.devices()]
