"""Any program as a workload: the worker's command with the request's arguments.

Figures of known tools are read from their output.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePath

from scaletest.model import Outcome, Reason
from scaletest_workers.devices import ChosenDevice
from scaletest_workers.workloads.base import Result
from scaletest_workers.workloads.program import ProgramEnd, ProgramWorkload
from scaletest_workers.workloads.transcode import ffmpeg, onevpl
from scaletest_workers.workloads.transcode.reading import TranscodeReading

# Replaced with the device path in any argument.
PLACEHOLDER = "FILENAME"

# Reads what a tool wrote to its standard output and to its standard error.
Reader = Callable[[str, str], TranscodeReading]

# By the name of the program.
READERS: dict[str, Reader] = {
    "ffmpeg": ffmpeg.read_output,
    "sample_multi_transcode": onevpl.read_output,
}


class Command(ProgramWorkload):
    """Runs the worker's program with the request's arguments; FILENAME becomes the device path."""

    def run(
        self, arguments: tuple[str, ...], limit_s: float, device: ChosenDevice | None
    ) -> Result:
        """Run the program to its end or limit; then all of its processes are gone."""
        argv = [*self._setup.command, *arguments]
        environment: Mapping[str, str] = {}
        if device is not None:
            argv = [part.replace(PLACEHOLDER, device.device.path) for part in argv]
            environment = self._setup.devices.environment(device)
        elif any(PLACEHOLDER in part for part in argv):
            return Result(
                Outcome.FAILED,
                Reason.NO_DEVICE,
                error=f"{PLACEHOLDER} is used, but no --device-glob was given",
            )
        reader = READERS.get(PurePath(argv[0]).name)
        ended = self._program.run(argv, limit_s, environment, capture=reader is not None)
        return ended.result if reader is None else result_with_figures(ended, reader)


def result_with_figures(ended: ProgramEnd, reader: Reader) -> Result:
    """Return the result with the tool's figures, and a reason from its messages."""
    reading = reader(ended.output, ended.errors)
    result = replace(ended.result, figures=reading.figures) if reading.figures else ended.result
    if result.outcome is not Outcome.FAILED or not reading.complaint:
        return result
    return replace(
        result,
        reason=Reason.NO_DEVICE if reading.no_device else result.reason,
        error=f"{reading.complaint}: {result.error}",
    )
