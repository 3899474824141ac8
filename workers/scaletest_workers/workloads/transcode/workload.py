"""Transcode: one description, run by oneVPL's tool or FFmpeg on this worker's device."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from scaletest.model import Outcome, Reason
from scaletest.model.errors import InvalidValue
from scaletest_workers.devices import ChosenDevice
from scaletest_workers.workloads.base import Result, WorkloadSetup, failed_result
from scaletest_workers.workloads.command import result_with_figures
from scaletest_workers.workloads.program import ProgramWorkload
from scaletest_workers.workloads.transcode import ffmpeg, onevpl
from scaletest_workers.workloads.transcode.options import (
    Acceleration,
    Transcode,
    TranscodeEngine,
    from_words,
)


class TranscodeWorkload(ProgramWorkload):
    """Runs the worker's description with the request's changes."""

    def __init__(self, setup: WorkloadSetup) -> None:
        """Check the worker's description. InvalidValue for words that cannot be read."""
        from_words(("--input", "any", *setup.options))
        super().__init__(setup)

    def run(
        self, arguments: tuple[str, ...], limit_s: float, device: ChosenDevice | None
    ) -> Result:
        """Transcode once. Raises Interrupted."""
        try:
            work = from_words(self._setup.options, arguments)
            file = Path(self._setup.program.directory, work.input)
            if not file.is_file():  # no pipe, and no device
                raise InvalidValue(
                    f"the input {file} is not a plain file", hint="give a media file"
                )
            path = ""
            if device and work.acceleration is not Acceleration.SOFTWARE:
                path = device.device.path
            environment = self._setup.devices.environment(device) if device else {}
            with _command_line(work, path) as argv:
                ended = self._program.run(argv, limit_s, environment, capture=True, quiet=True)
        except InvalidValue as error:
            return failed_result(error)
        engine = ffmpeg if work.engine is TranscodeEngine.FFMPEG else onevpl
        result = result_with_figures(ended, engine.read_output)
        if result.outcome is Outcome.SUCCEEDED and not result.figures.get("frames"):
            return replace(
                result,
                outcome=Outcome.FAILED,
                reason=Reason.EXIT,
                error=f"{work.command} encoded no frame",
            )
        return result


@contextmanager
def _command_line(work: Transcode, device: str) -> Iterator[list[str]]:
    """Yield the command line, while its par file exists, where the engine wants one."""
    if work.engine is TranscodeEngine.FFMPEG:
        yield ffmpeg.command_line(work, device)
        return
    text = onevpl.par_file(work, device)
    if not text:
        yield onevpl.command_line(work, device)
        return
    with tempfile.NamedTemporaryFile(
        "w", prefix="scaletest-", suffix=".par", encoding="utf-8"
    ) as file:
        file.write(text)
        file.flush()
        yield onevpl.command_line(work, device, file.name)
