"""A transcode, described once for all engines: what goes in, what comes out, and how hard to work on it.

The worker's own words come first and may say everything; the words of a request are added after them and may only say
what changes nothing but the work (never which program runs or where it writes).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn, TypeVar

from scaletest.kinds.media import CODECS, codec_of_name
from scaletest.model import checks
from scaletest.model.errors import InvalidValue

W = TypeVar("W", bound=StrEnum)
NULL = "null"
_SIZE = re.compile(r"(\d{2,5})x(\d{2,5})")
# What a request may not change.
_WORKERS_OWN = {"engine", "acceleration", "output", "program", "threads"}


class TranscodeEngine(StrEnum):
    """The program that does it."""

    FFMPEG = "ffmpeg"
    ONEVPL = "onevpl"

    @property
    def program(self) -> str:
        """Its name on the search path."""
        return {TranscodeEngine.FFMPEG: "ffmpeg", TranscodeEngine.ONEVPL: "sample_multi_transcode"}[self]


class Acceleration(StrEnum):
    """Where decoding, scaling and encoding happen."""

    SOFTWARE = "software"
    VAAPI = "vaapi"
    QSV = "qsv"
    NVENC = "nvenc"


class Quality(StrEnum):
    """The trade between speed and quality, in the three grades that all engines have."""

    SPEED = "speed"
    BALANCED = "balanced"
    QUALITY = "quality"


@dataclass(frozen=True, slots=True)
class EncodedOutput:
    """One encoded output. codec: "null" to decode only. width, height: pixels, 0 for those of the input."""

    codec: str
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class Transcode:
    """One transcode.

    codec: of the input; "" when only the file can tell. outputs: several are encoded from one decoding (cascade).
    output: a file, else nothing is written. frames: of each output, 0 for all. bitrate_kbps: 0 for the engine's own.
    depth: asynchronous pipeline depth, 0 for the engine's own. threads: of each codec in software, 0 for its own.
    sessions: the same work so many times at once in one process. parallel: encoders that share one output's frames.
    program: path of the engine, "" to look for it.
    """

    input: str
    codec: str = ""
    outputs: tuple[EncodedOutput, ...] = (EncodedOutput("h264"),)
    output: str = ""
    frames: int = 0
    quality: Quality = Quality.BALANCED
    bitrate_kbps: int = 0
    depth: int = 0
    threads: int = 0
    sessions: int = 1
    parallel: int = 1
    engine: TranscodeEngine = TranscodeEngine.FFMPEG
    acceleration: Acceleration = Acceleration.SOFTWARE
    program: str = ""

    def __post_init__(self) -> None:
        if not self.input:
            raise InvalidValue("transcode has no input", hint="give it one with --input FILE")
        for name, low, high in _RANGES:
            checks.count(getattr(self, name), name, minimum=low, maximum=high)
        if self.parallel > 1 and (
            self.engine is not TranscodeEngine.ONEVPL or len(self.outputs) > 1 or self.sessions > 1
        ):
            raise InvalidValue(
                "parallel encoding splits one output of one oneVPL session",
                hint="use --engine onevpl without --also and --sessions, or --sessions for several at once",
            )
        if self.output and len(self.outputs) * self.sessions > 1:
            raise InvalidValue("several outputs cannot go to one file", hint="leave --output out")
        if self.engine is TranscodeEngine.ONEVPL and self.acceleration in (Acceleration.VAAPI, Acceleration.NVENC):
            raise InvalidValue(
                f"oneVPL does not work through {self.acceleration}", hint="leave --acceleration out, or use ffmpeg"
            )

    @property
    def command(self) -> str:
        """The program to start."""
        return self.program or self.engine.program


_RANGES = (
    ("frames", 0, 10**9),
    ("bitrate_kbps", 0, 10**6),
    ("depth", 0, 64),
    ("threads", 0, 1024),
    ("sessions", 1, 64),
    ("parallel", 1, 16),
)


def from_words(own: Sequence[str], requested: Sequence[str] = ()) -> Transcode:
    """Read the worker's words and those of a request, which win. InvalidValue for anything else."""
    given = vars(_parser().parse_args(list(own)))
    changes = vars(_parser().parse_args(list(requested)))
    forbidden = sorted(_WORKERS_OWN & changes.keys())
    if forbidden:
        raise InvalidValue(
            f"a request may not set {', '.join(f'--{name}' for name in forbidden)} of a transcode",
            hint="give it to the worker: scaletest worker -- transcode ...",
        )
    given |= changes
    width, height = given.get("size", (0, 0))
    first = EncodedOutput(given.get("output_codec", "h264"), width, height)
    engine = given.get("engine", TranscodeEngine.FFMPEG)
    default = Acceleration.QSV if engine is TranscodeEngine.ONEVPL else Acceleration.SOFTWARE
    return Transcode(
        input=given.get("input", ""),
        codec=given.get("codec") or codec_of_name(given.get("input", "")),
        outputs=(first, *given.get("also", [])),
        output=given.get("output", ""),
        acceleration=given.get("acceleration", default),
        **{name: given[name] for name in _PLAIN if name in given},
    )


_PLAIN = ("frames", "quality", "bitrate_kbps", "depth", "threads", "sessions", "parallel", "engine", "program")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidValue(f"transcode: {message}", hint="docs/how-to/media.md lists its options")


def _parser() -> _Parser:
    parser = _Parser(prog="transcode", add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    parser.add_argument("--input")
    parser.add_argument("--codec", choices=CODECS)
    parser.add_argument("--output-codec", choices=(*CODECS, NULL))
    parser.add_argument("--size", type=_size)
    parser.add_argument("--also", type=_output, action="append", metavar="CODEC:WxH")
    parser.add_argument("--output")
    for name in ("--frames", "--depth", "--threads", "--sessions", "--parallel"):
        parser.add_argument(name, type=int)
    parser.add_argument("--bitrate", type=int, dest="bitrate_kbps")
    parser.add_argument("--quality", type=_word(Quality))
    parser.add_argument("--engine", type=_word(TranscodeEngine))
    parser.add_argument("--acceleration", type=_word(Acceleration))
    parser.add_argument("--program")
    return parser


def _word(kind: type[W]) -> Callable[[str], W]:
    def read(text: str) -> W:
        try:
            return kind(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(kind)}") from error

    return read


def _size(text: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 1920x1080")
    return int(match[1]), int(match[2])


def _output(text: str) -> EncodedOutput:
    codec, _, size = text.partition(":")
    if codec not in CODECS:
        raise argparse.ArgumentTypeError(f"{text!r} is no output such as h264:1280x720 (codecs: {', '.join(CODECS)})")
    return EncodedOutput(codec, *(_size(size) if size else (0, 0)))
