"""Any program: the worker's command with the request's arguments; reads known tools' figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from scaletest.kinds.transcode_output import READERS, Reader
from scaletest.model import Outcome, Reason
from workers.devices import Chosen, DeviceChooser
from workers.workloads.base import Result
from workers.workloads.program import Ended, Program

# Replaced with the device path in any argument.
PLACEHOLDER = "FILENAME"


class Command:
    """Runs the worker's program with the request's arguments; FILENAME becomes the device path."""

    def __init__(
        self,
        command: tuple[str, ...],
        program: Program,
        devices: DeviceChooser,
        *,
        ignore_arguments: bool = False,
    ) -> None:
        self._command = command
        self._program = program
        self._devices = devices
        self._ignore_arguments = ignore_arguments

    def run(self, arguments: tuple[str, ...], limit_s: float, device: Chosen | None) -> Result:
        """Run the program to its end or limit; then its whole process group is gone."""
        argv = [*self._command, *(() if self._ignore_arguments else arguments)]
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
        """End the guard."""
        self._program.close()


def read(ended: Ended, reader: Reader) -> Result:
    """The result with the tool's figures, and a better reason where its messages have one."""
    reading = reader(ended.output, ended.errors)
    result = replace(ended.result, figures=reading.figures) if reading.figures else ended.result
    if result.outcome is not Outcome.FAILED or not reading.complaint:
        return result
    reason = Reason.NO_DEVICE if reading.no_device else result.reason
    return replace(result, reason=reason, error=f"{reading.complaint}: {result.error}")
