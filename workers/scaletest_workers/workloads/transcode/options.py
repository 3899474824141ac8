"""Options of a transcode, the same for all engines: input, outputs, quality.

The worker's options may set everything. The options of a request are added to them and may only
change the work, never which program runs or where it writes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Annotated

from msgspec import Meta

from scaletest.documents.typed_arguments import TypedArguments
from scaletest.model.checks import one_of, raise_first_mistake, show_value
from scaletest.model.declared import choice, named_in_files, parsed_by
from scaletest.model.document import check_fields
from scaletest.model.errors import InvalidValue

CODECS = ("h264", "h265", "av1", "mpeg2", "vp9")
# Suffixes of files that hold nothing but one stream of a codec.
STREAM_SUFFIXES = {
    "h264": (".h264", ".264", ".avc"),
    "h265": (".h265", ".265", ".hevc"),
    "av1": (".av1", ".obu"),
    "mpeg2": (".m2v", ".mpeg2", ".mpg2"),
    "vp9": (".vp9",),
}
# The codec of an output that is decoded only.
NULL = "null"
_SIZE = re.compile(r"(\d{2,5})x(\d{2,5})")
# Options that a request may not change.
_WORKER_ONLY = {"engine", "acceleration", "output", "program", "threads"}


class TranscodeEngine(StrEnum):
    """The program that transcodes."""

    FFMPEG = "ffmpeg"
    ONEVPL = "onevpl"


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
    """One encoded output."""

    codec: str  # NULL to decode only
    width: int = 0  # in pixels; 0 as the input
    height: int = 0

    @property
    def area(self) -> int:
        """Its pixels; 0 as the input."""
        return self.width * self.height


def _parse_size(text: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(text)
    if not match:
        raise InvalidValue(f"{show_value(text)} is not a size", hint="write e.g. 1920x1080")
    return int(match[1]), int(match[2])


def _parse_outputs(text: str) -> tuple[EncodedOutput, ...]:
    """Read outputs, separated by commas."""
    outputs = []
    for part in text.split(","):
        codec, _, size = part.partition(":")
        one_of(codec, CODECS, "codec")
        outputs.append(EncodedOutput(codec, *(_parse_size(size) if size else (0, 0))))
    return tuple(outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcode:
    """One transcode. A number that is 0 leaves it to the engine."""

    input: str
    codec: Annotated[str, choice(("", *CODECS))] = ""  # of the input; "" if unknown
    # of the first output
    output_codec: Annotated[str, choice((*CODECS, NULL))] = "h264"
    size: Annotated[tuple[int, int], parsed_by(_parse_size)] = (0, 0)
    # more outputs of the same decoding (cascade)
    also: Annotated[tuple[EncodedOutput, ...], parsed_by(_parse_outputs)] = ()
    output: str = ""  # a file, "" to write nothing
    frames: Annotated[int, Meta(ge=0, le=10**9)] = 0  # of each output, 0 for all
    quality: Quality = Quality.BALANCED
    bitrate_kbps: Annotated[int, Meta(ge=0, le=10**6), named_in_files("bitrate")] = 0
    depth: Annotated[int, Meta(ge=0, le=64)] = 0  # of the asynchronous pipeline
    threads: Annotated[int, Meta(ge=0, le=1024)] = 0  # of each software codec
    parallel: Annotated[int, Meta(ge=1, le=16)] = 1  # encoders that share one output's frames
    engine: TranscodeEngine = TranscodeEngine.FFMPEG
    acceleration: Acceleration = Acceleration.SOFTWARE
    program: str = ""  # path of the engine, "" to search it

    def __post_init__(self) -> None:
        check_fields(self)
        is_onevpl = self.engine is TranscodeEngine.ONEVPL
        outputs = len(self.outputs)
        raise_first_mistake(
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
    def outputs(self) -> tuple[EncodedOutput, ...]:
        """All outputs, which are encoded from one decoding."""
        return (EncodedOutput(self.output_codec, *self.size), *self.also)

    @property
    def command(self) -> str:
        """Path or name of the program to start."""
        is_ffmpeg = self.engine is TranscodeEngine.FFMPEG
        return self.program or ("ffmpeg" if is_ffmpeg else "sample_multi_transcode")

    @property
    def known_codec(self) -> str:
        """The codec of the input. InvalidValue when it is unknown."""
        raise_first_mistake(
            (
                not self.codec,
                f"the codec of {self.input} is unknown",
                "set it with --codec; oneVPL's tool reads elementary streams, no containers",
            )
        )
        return self.codec


def option_words(name: str, setting: object) -> list[str]:
    """Return an option with its setting; nothing where it is not set."""
    return [name, str(setting)] if setting else []


def codec_of_name(name: str) -> str:
    """Return the codec that a file's suffix names; "" if unknown."""
    suffix = PurePath(name).suffix.lower()
    for codec, suffixes in STREAM_SUFFIXES.items():
        if suffix in suffixes:
            return codec
    return ""


def from_words(own: Sequence[str], requested: Sequence[str] = ()) -> Transcode:
    """Parse the worker's options and those of a request, which override them."""
    words = TypedArguments(Transcode, "transcode")
    changes = words.values(requested)
    forbidden = sorted(_WORKER_ONLY & changes.keys())
    raise_first_mistake(
        (
            forbidden,
            f"a request may not set {', '.join(f'--{name}' for name in forbidden)} of a transcode",
            "set it for the worker: scaletest worker -- transcode ...",
        )
    )
    options = {"input": "", **words.values(own), **changes}
    if not options.get("codec"):
        options["codec"] = codec_of_name(options["input"])
    if options.get("engine") is TranscodeEngine.ONEVPL:
        options.setdefault("acceleration", Acceleration.QSV)
    return Transcode(**options)
