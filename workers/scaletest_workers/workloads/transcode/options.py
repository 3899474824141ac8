"""Options of a transcode, the same for all engines: input, outputs, quality; and media files, with
codecs by name, and containers by their first bytes.

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
from scaletest.model.checks import one_of, refuse, shown
from scaletest.model.declared import choice, key, parsed
from scaletest.model.document import check
from scaletest.model.errors import InvalidValue

CODECS = ("h264", "h265", "av1", "mpeg2", "vp9")
# Suffixes of files that hold nothing but one stream.
_SUFFIXES = {
    "h264": (".h264", ".264", ".avc"),
    "h265": (".h265", ".265", ".hevc"),
    "av1": (".av1", ".obu"),
    "mpeg2": (".m2v", ".mpeg2", ".mpg2"),
    "vp9": (".vp9",),
}
# FFmpeg's names.
FFMPEG_CODECS = {"h264": "h264", "h265": "hevc", "av1": "av1", "mpeg2": "mpeg2video", "vp9": "vp9"}
# What FFmpeg writes elementary streams to. VP9 needs a container: IVF, which all tools read.
_STREAM_SUFFIXES = {
    "h264": ".h264",
    "h265": ".h265",
    "av1": ".obu",
    "mpeg2": ".m2v",
    "vp9": ".ivf",
}
_CONTAINERS = {
    b"\x1a\x45\xdf\xa3": "Matroska or WebM",
    b"FLV\x01": "FLV",
    b"OggS": "Ogg",
    b"\x00\x00\x01\xba": "MPEG program stream",
}
# Bytes of a file that `container` needs.
HEAD_BYTES = 400

# The codec of an output that is decoded only.
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
        return "ffmpeg" if self is TranscodeEngine.FFMPEG else "sample_multi_transcode"


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
        raise InvalidValue(f"{shown(text)} is not a size", hint="write it as in 1920x1080")
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
    size: Annotated[tuple[int, int], parsed(_parse_size)] = (0, 0)
    # more outputs of the same decoding (cascade)
    also: Annotated[tuple[EncodedOutput, ...], parsed(_parse_outputs)] = ()
    output: str = ""  # a file, "" to write nothing
    frames: Annotated[int, Meta(ge=0, le=10**9)] = 0  # of each output, 0 for all
    quality: Quality = Quality.BALANCED
    bitrate_kbps: Annotated[int, Meta(ge=0, le=10**6), key("bitrate")] = 0
    depth: Annotated[int, Meta(ge=0, le=64)] = 0  # of the asynchronous pipeline
    threads: Annotated[int, Meta(ge=0, le=1024)] = 0  # of each software codec
    parallel: Annotated[int, Meta(ge=1, le=16)] = 1  # encoders that share one output's frames
    engine: TranscodeEngine = TranscodeEngine.FFMPEG
    acceleration: Acceleration = Acceleration.SOFTWARE
    program: str = ""  # path of the engine, "" to search it

    def __post_init__(self) -> None:
        check(self)
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
    def outputs(self) -> tuple[EncodedOutput, ...]:
        """All outputs, which are encoded from one decoding."""
        return (EncodedOutput(self.output_codec, *self.size), *self.also)

    @property
    def command(self) -> str:
        """Path or name of the program to start."""
        return self.program or self.engine.program

    @property
    def known_codec(self) -> str:
        """The codec of the input. InvalidValue when it is unknown."""
        refuse((not self.codec, f"the codec of {self.input} is unknown", "set it with --codec"))
        return self.codec


def option_words(name: str, setting: object) -> list[str]:
    """Return an option with its setting; nothing where it is not set."""
    return [name, str(setting)] if setting else []


def from_words(own: Sequence[str], requested: Sequence[str] = ()) -> Transcode:
    """Parse the worker's options and those of a request, which override them.

    Raises InvalidValue.
    """
    words = TypedArguments(Transcode, "transcode")
    options, changes = words.values(own), words.values(requested)
    forbidden = sorted(_WORKER_ONLY & changes.keys())
    refuse(
        (
            forbidden,
            f"a request may not set {', '.join(f'--{name}' for name in forbidden)} of a transcode",
            "set it for the worker: scaletest worker -- transcode ...",
        )
    )
    options = {"input": "", **options, **changes}
    options["codec"] = options.get("codec") or codec_of_name(options["input"])
    if options.get("engine") is TranscodeEngine.ONEVPL:
        options.setdefault("acceleration", Acceleration.QSV)
    return Transcode(**options)


def codec_of_name(name: str) -> str:
    """Return the codec of a file's suffix; "" if unknown."""
    return next(
        (
            codec
            for codec, suffixes in _SUFFIXES.items()
            if PurePath(name).suffix.lower() in suffixes
        ),
        "",
    )


def container(head: bytes) -> str:
    """Return the container by a file's first bytes, "" for an elementary stream or if unknown.

    Signatures: ISO/IEC 14496-12 (ftyp), RFC 8794 (EBML), RIFF, ISO/IEC 13818-1 (both MPEG
    streams), FLV, Ogg. IVF counts as elementary, since the tools accept it for VP9 and AV1.
    """
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"styp"):
        return "MP4"
    if head.startswith(b"RIFF") and head[8:12] == b"AVI ":
        return "AVI"
    if len(head) > 188 * 2 and head[0] == head[188] == head[376] == 0x47:
        return "MPEG transport stream"
    return next((name for begin, name in _CONTAINERS.items() if head.startswith(begin)), "")


def codec_of_head(head: bytes) -> str:
    """Return the codec of an IVF header; "" for anything else."""
    return {b"DKIFVP90": "vp9", b"DKIFAV01": "av1"}.get(head[:4] + head[8:12], "")


def refusal(name: str, head: bytes, codec: str) -> str:
    """Say why oneVPL's tool cannot read a file, with a command that converts it; "" if it can."""
    kind = container(head)
    if not kind:
        return ""
    target = PurePath(name).with_suffix(_STREAM_SUFFIXES[codec or "h264"])
    return (
        f"{name} is in a container ({kind}), and oneVPL's tool reads elementary streams only;"
        f" extract the video with: ffmpeg -i {name} -an -c:v copy {target}"
    )
