"""Transcode: one description, run by oneVPL's tool or FFmpeg on this worker's device."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from scaletest.model import Outcome, Reason
from scaletest.model.errors import InvalidValue
from scaletest_workers.devices import Chosen, DeviceChooser
from scaletest_workers.options import transcode_tools
from scaletest_workers.options.media import HEAD_BYTES, codec_of_head, refusal
from scaletest_workers.options.transcode import Acceleration, Transcode, TranscodeEngine, from_words
from scaletest_workers.workloads.base import Result, failed
from scaletest_workers.workloads.command import Program, program, read
from scaletest_workers.workloads.making import Making

_READERS = {
    TranscodeEngine.FFMPEG: transcode_tools.ffmpeg,
    TranscodeEngine.ONEVPL: transcode_tools.onevpl,
}


def make(making: Making) -> TranscodeWorkload:
    """The workload of a worker."""
    directory = making.program.directory
    return TranscodeWorkload(making.options, program(making), making.devices, directory)


class TranscodeWorkload:
    """Runs the worker's description with the request's changes."""

    def __init__(
        self,
        options: tuple[str, ...],
        programs: Program,
        devices: DeviceChooser,
        directory: str = "",
    ) -> None:
        """InvalidValue for unreadable words. directory: base of relative paths, "" for ours."""
        from_words(("--input", "any", *options))
        self._options = options
        self._program = programs
        self._devices = devices
        self._directory = Path(directory)

    def run(self, arguments: tuple[str, ...], limit_s: float, device: Chosen | None) -> Result:
        """Transcode once. Raises Interrupted."""
        try:
            work = self._checked(from_words(self._options, arguments))
            in_software = work.acceleration is Acceleration.SOFTWARE
            path = device.device.path if device and not in_software else ""
            with _par_file(work, path) as par_file:
                argv = transcode_tools.arguments(work, path, par_file)
                environment = self._devices.environment(device) if device else {}
                ended = self._program.run(argv, limit_s, environment, capture=True, quiet=True)
        except InvalidValue as error:
            return failed(error)
        result = read(ended, _READERS[work.engine])
        if result.outcome is Outcome.SUCCEEDED and not result.figures.get("frames"):
            return replace(
                result,
                outcome=Outcome.FAILED,
                reason=Reason.EXIT,
                error=f"{work.command} encoded no frame",
            )
        return result

    def close(self) -> None:
        """End the guard of its programs."""
        self._program.close()

    def _checked(self, work: Transcode) -> Transcode:
        """The description with the codec read from the file. InvalidValue for an unusable file."""
        file = self._directory / work.input
        try:
            if file.exists() and not file.is_file():
                # reading a pipe could block without a limit, and a device never ends
                raise InvalidValue(
                    f"the input {file} is not a plain file", hint="give a media file"
                )
            with file.open("rb") as stream:
                head = stream.read(HEAD_BYTES)
        except OSError as error:
            raise InvalidValue(f"the input {file} cannot be read: {error.strerror}") from error
        if not head:
            raise InvalidValue(f"the input {file} is empty")
        is_onevpl = work.engine is TranscodeEngine.ONEVPL
        if is_onevpl and (text := refusal(work.input, head, work.codec)):
            raise InvalidValue(text)
        return work if work.codec else replace(work, codec=codec_of_head(head))


@contextmanager
def _par_file(work: Transcode, device: str) -> Iterator[str]:
    """A par file for one run, when the engine wants one."""
    text = transcode_tools.par(work, device)
    if not text:
        yield ""
        return
    with tempfile.NamedTemporaryFile(
        "w", prefix="scaletest-", suffix=".par", encoding="utf-8"
    ) as file:
        file.write(text)
        file.flush()
        yield file.name
