"""scaletest devices: the devices that workers would find on this machine."""

import contextlib
import os
from dataclasses import asdict
from pathlib import Path

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli.output import Output
from scaletest.model.errors import NoDevice
from scaletest.model.presets import PRESETS
from scaletest.model.workload import Device
from scaletest_workers.devices import DeviceChooser, DeviceOptions


@cloup.command("devices")
@shared.under_heading("Devices")
@shared.preset("List the devices of this vendor. [default: of all]")
@click.option(
    "--device-glob",
    default="",
    metavar="GLOB",
    help="List the devices whose files match this pattern.",
)
@shared.under_heading("Output")
@shared.output()
def command(preset: str, device_glob: str, output: Output) -> None:
    """List devices that workers would find here: what they are, and who may use them.

    \b
    scaletest devices
    scaletest devices --device-glob '/dev/dri/renderD*'
    """
    if preset or device_glob:
        devices = DeviceChooser(DeviceOptions(device_glob, preset=preset)).devices()
    else:
        # of all vendors, since none was named; a device may fit several presets
        by_id: dict[str, Device] = {}
        for name in PRESETS:
            with contextlib.suppress(NoDevice):
                for device in DeviceChooser(DeviceOptions(preset=name)).devices():
                    by_id[device.id] = device
        if not by_id:
            raise NoDevice(
                f"this machine has no device of {', '.join(PRESETS)}",
                hint="for other device files: --device-glob PATTERN",
            )
        devices = list(by_id.values())
    # who may use each: workers run as the user of this command
    rows: list[dict[str, object]] = []
    lines = []
    for device in devices:
        group = Path(device.path).stat().st_gid
        is_usable = os.access(device.path, os.R_OK | os.W_OK)
        rows.append({**asdict(device), "group": group, "usable": is_usable})
        remark = "" if is_usable else ", not for this user"
        product = device.product or "unknown"
        lines.append(f"{device.path}  {device.id}  {product}, group {group}{remark}")
    output.show(rows, lines)
