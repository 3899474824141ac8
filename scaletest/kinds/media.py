"""Media files: codecs, containers by their first bytes, and FFmpeg's command lines for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue

CODECS = ("h264", "h265", "av1", "mpeg2", "vp9")
_SUFFIXES = {
    "h264": (".h264", ".264", ".avc"),
    "h265": (".h265", ".265", ".hevc"),
    "av1": (".av1", ".obu"),
    "mpeg2": (".m2v", ".mpeg2", ".mpg2"),
    "vp9": (".vp9",),
}
# FFmpeg's names, and its encoders for test files. VP9 needs a container: IVF, which all tools read.
FFMPEG_CODECS = {"h264": "h264", "h265": "hevc", "av1": "av1", "mpeg2": "mpeg2video", "vp9": "vp9"}
_MAKERS: dict[str, tuple[str, str, str]] = {
    "h264": ("libx264", "h264", ".h264"),
    "h265": ("libx265", "hevc", ".h265"),
    "av1": ("libsvtav1", "obu", ".obu"),
    "mpeg2": ("mpeg2video", "mpeg2video", ".m2v"),
    "vp9": ("libvpx-vp9", "ivf", ".ivf"),
}
_CONTAINERS = {
    b"\x1a\x45\xdf\xa3": "Matroska or WebM",
    b"FLV\x01": "FLV",
    b"OggS": "Ogg",
    b"\x00\x00\x01\xba": "MPEG program stream",
}
# Bytes of a file that `container` needs.
HEAD_BYTES = 400


def codec_of_name(name: str) -> str:
    """The codec of a file's suffix; "" if unknown."""
    suffix = PurePath(name).suffix.lower()
    return next((codec for codec, suffixes in _SUFFIXES.items() if suffix in suffixes), "")


def container(head: bytes) -> str:
    """The container by a file's first bytes, "" for an elementary stream or if unknown.

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
    """The codec of an IVF header; "" for anything else."""
    return {b"DKIFVP90": "vp9", b"DKIFAV01": "av1"}.get(head[:4] + head[8:12], "")


def refusal(name: str, head: bytes, codec: str) -> str:
    """Why oneVPL's tool cannot read a file, with a command that converts it; "" if it can."""
    kind = container(head)
    if not kind:
        return ""
    target = PurePath(name).with_suffix(_MAKERS[codec][2] if codec else ".h264")
    return (
        f"{name} is in a container ({kind}), and oneVPL's tool reads elementary streams only;"
        f" extract the video with: ffmpeg -i {name} -an -c:v copy {target}"
    )


def make_arguments(
    codec: str, folder: str, width: int, height: int, frames: int, rate: int, threads: int = 1
) -> tuple[list[str], str]:
    """FFmpeg's command line to create a test stream of moving patterns, and the file's path."""
    checks.one_of(codec, CODECS, "codec")
    checks.count(frames, "frames", minimum=1, maximum=10**7)
    checks.count(rate, "rate", minimum=1, maximum=1000)
    for name, pixels in (("width", width), ("height", height)):
        checks.count(pixels, name, minimum=64, maximum=16384)
        checks.refuse(
            (pixels % 2, f"{name} is {pixels}", "give even numbers, which 4:2:0 video needs")
        )
    encoder, form, suffix = _MAKERS[codec]
    path = str(PurePath(folder) / f"test-{codec}-{width}x{height}-{frames}{suffix}")
    source = f"testsrc2=size={width}x{height}:rate={rate}:duration={math.ceil(frames / rate) + 1}"
    grade = {
        "libx265": ["-x265-params", "log-level=error:pools=none"],
        "libsvtav1": ["-preset", "10", "-svtav1-params", f"lp={threads}"],
        "libvpx-vp9": ["-deadline", "realtime", "-cpu-used", "8"],
        "libx264": ["-preset", "fast"],
    }.get(encoder, ["-q:v", "4"])
    return [
        *("ffmpeg", "-hide_banner", "-nostdin", "-loglevel", "error", "-y"),
        *("-f", "lavfi", "-i", source, "-frames:v", str(frames), "-pix_fmt", "yuv420p"),
        *("-c:v", encoder, "-threads", str(threads), *grade, "-bitexact", "-f", form, path),
    ], path


def probe_arguments(path: str) -> list[str]:
    """ffprobe's command line to describe a file's first video stream; it counts all frames."""
    fields = "codec_name,profile,width,height,pix_fmt,r_frame_rate,nb_read_packets"
    return [
        *("ffprobe", "-v", "error", "-protocol_whitelist", "file", "-select_streams", "v:0"),
        *("-count_packets", "-show_entries", f"stream={fields}:format=format_name,size"),
        *("-of", "json", f"file:{path}"),
    ]


@dataclass(frozen=True, slots=True)
class Media:
    """Description of a file.

    frames: packets of its video stream. rate: frames/s, None if unknown.
    """

    path: str
    codec: str
    profile: str
    width: int
    height: int
    pixel_format: str
    rate: float | None
    frames: int
    bytes: int
    container: str
    elementary: bool


def read_probe(path: str, text: str, head: bytes) -> Media:
    """Parse ffprobe's JSON. Raises InvalidValue for a file without video."""
    answer = wire.load(text, "ffprobe's answer")
    streams, form = answer.get("streams"), answer.get("format")
    stream = streams[0] if isinstance(streams, list) and streams else None
    if not isinstance(stream, dict) or not isinstance(form, dict):
        raise InvalidValue(f"{path} has no video", hint="give a video file")
    codec = str(stream.get("codec_name", ""))
    return Media(
        path=path,
        codec={ours: theirs for theirs, ours in FFMPEG_CODECS.items()}.get(codec, codec),
        profile=str(stream.get("profile", "")),
        width=_integer(stream.get("width")),
        height=_integer(stream.get("height")),
        pixel_format=str(stream.get("pix_fmt", "")),
        rate=_ratio(str(stream.get("r_frame_rate", ""))),
        frames=_integer(stream.get("nb_read_packets")),
        bytes=_integer(form.get("size")),
        container=str(form.get("format_name", "")),
        elementary=not container(head),
    )


def _integer(text: Any) -> int:
    try:
        return max(0, int(text))
    except (TypeError, ValueError, OverflowError):
        return 0


def _ratio(text: str) -> float | None:
    above, _, below = text.partition("/")
    try:
        return int(above) / int(below or 1)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
