"""Options of a transcode, the same for all engines: input, outputs, quality.

The worker's options may set everything. The options of a request are added to them and may only
change the work, never which program runs or where it writes.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from scaletest.kinds.media import CODECS, codec_of_name
from scaletest.kinds.workload_options import WorkloadOptions, member
from scaletest.model import declared
from scaletest.model.checks import refuse

NULL = "null"
_SIZE = re.compile(r"(\d{2,5})x(\d{2,5})")
# Options that a request may not change.
_WORKER_ONLY = {"engine", "acceleration", "output", "program", "threads"}


class TranscodeEngine(StrEnum):
    """The program that transcodes."""

    FFMPEG = "ffmpeg"
    ONEVPL = "onevpl"

    @property
    def program(self) -> str:
        """Name of the program on the search path."""
        return {TranscodeEngine.FFMPEG: "ffmpeg", TranscodeEngine.ONEVPL: "sample_multi_transcode"}[
            self
        ]


class Acceleration(StrEnum):
    """The hardware interface for decoding, scaling and encoding."""

    SOFTWARE = "software"
    VAAPI = "vaapi"
    QSV = "qsv"
    NVENC = "nvenc"


class Quality(StrEnum):
    """The trade-off between speed and quality, in three grades that all engines have."""

    SPEED = "speed"
    BALANCED = "balanced"
    QUALITY = "quality"


@dataclass(frozen=True, slots=True)
class EncodedOutput:
    """One encoded output.

    codec: "null" to decode only. width, height: in pixels, 0: as the input.
    """

    codec: str
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class Transcode:
    """One transcode.

    codec: of the input; "" if unknown. outputs: all are encoded from one decoding (cascade).
    output: a file, "" to write nothing. frames: of each output, 0 for all. bitrate_kbps: 0 for
    the engine's default. depth: asynchronous pipeline depth, 0 for the engine's default.
    threads: of each software codec, 0 for its default. parallel: encoders that share the frames
    of one output. program: path of the engine, "" to search it.
    """

    input: str
    codec: str = ""
    outputs: tuple[EncodedOutput, ...] = (EncodedOutput("h264"),)
    output: str = ""
    frames: Annotated[int, Meta(ge=0, le=10**9)] = 0
    quality: Quality = Quality.BALANCED
    bitrate_kbps: Annotated[int, Meta(ge=0, le=10**6)] = 0
    depth: Annotated[int, Meta(ge=0, le=64)] = 0
    threads: Annotated[int, Meta(ge=0, le=1024)] = 0
    parallel: Annotated[int, Meta(ge=1, le=16)] = 1
    engine: TranscodeEngine = TranscodeEngine.FFMPEG
    acceleration: Acceleration = Acceleration.SOFTWARE
    program: str = ""

    def __post_init__(self) -> None:
        declared.check(self)
        is_onevpl = self.engine is TranscodeEngine.ONEVPL
        outputs = len(self.outputs)
        refuse(
            (not self.input, "transcode has no input", "set it with --input FILE"),
            (
                self.parallel > 1 and not (is_onevpl and outputs == 1),
                "parallel encoding requires oneVPL and one output",
                "use --engine onevpl without --also",
            ),
            (
                self.output and outputs > 1,
                "several outputs cannot be written to one file",
                "leave --output out",
            ),
            (
                is_onevpl and self.acceleration in (Acceleration.VAAPI, Acceleration.NVENC),
                f"oneVPL does not support {self.acceleration}",
                "leave --acceleration out, or use ffmpeg",
            ),
        )

    @property
    def command(self) -> str:
        """Path or name of the program to start."""
        return self.program or self.engine.program


def from_words(own: Sequence[str], requested: Sequence[str] = ()) -> Transcode:
    """Parse the worker's options and those of a request, which override them.

    Raises InvalidValue.
    """
    parser = WorkloadOptions("transcode", "docs/how-to/media.md", _OPTIONS)
    options, changes = parser.read(own), parser.read(requested)
    forbidden = sorted(_WORKER_ONLY & changes.keys())
    refuse(
        (
            forbidden,
            f"a request may not set {', '.join(f'--{name}' for name in forbidden)} of a transcode",
            "set it for the worker: scaletest worker -- transcode ...",
        )
    )
    options = {"input": "", "codec": "", **options, **changes}
    options["codec"] = options["codec"] or codec_of_name(options["input"])
    first = EncodedOutput(options.pop("output_codec", "h264"), *options.pop("size", (0, 0)))
    if options.get("engine") is TranscodeEngine.ONEVPL:
        options.setdefault("acceleration", Acceleration.QSV)
    return Transcode(outputs=(first, *options.pop("also", ())), **options)


def _size(text: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 1920x1080")
    return int(match[1]), int(match[2])


def _output(text: str) -> EncodedOutput:
    codec, _, size = text.partition(":")
    if codec not in CODECS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an output such as h264:1280x720 (codecs: {', '.join(CODECS)})"
        )
    return EncodedOutput(codec, *(_size(size) if size else (0, 0)))


_OPTIONS: dict[str, dict[str, Any]] = {
    "--input": {},
    "--codec": {"choices": CODECS},
    "--output-codec": {"choices": (*CODECS, NULL)},
    "--size": {"type": _size},
    "--also": {"type": _output, "action": "append", "metavar": "CODEC:WxH"},
    "--output": {},
    **{name: {"type": int} for name in ("--frames", "--depth", "--threads", "--parallel")},
    "--bitrate": {"type": int, "dest": "bitrate_kbps"},
    "--quality": {"type": member(Quality)},
    "--engine": {"type": member(TranscodeEngine)},
    "--acceleration": {"type": member(Acceleration)},
    "--program": {},
}
