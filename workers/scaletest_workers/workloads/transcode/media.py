"""Media files: codecs by name, and containers by their first bytes."""

from pathlib import PurePath

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
# Bytes of a file that `container_of_head` needs.
HEAD_BYTES = 400


def codec_of_name(name: str) -> str:
    """Return the codec of a file's suffix; "" if unknown."""
    suffix = PurePath(name).suffix.lower()
    return next((codec for codec, suffixes in _SUFFIXES.items() if suffix in suffixes), "")


def container_of_head(head: bytes) -> str:
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


def refuse_container(name: str, head: bytes, codec: str) -> None:
    """Raise InvalidValue, with a command that helps, for a file that oneVPL's tool cannot read."""
    container = container_of_head(head)
    if container:
        target = PurePath(name).with_suffix(_STREAM_SUFFIXES[codec or "h264"])
        raise InvalidValue(
            f"{name} is in a container ({container}), and oneVPL's tool reads elementary streams"
            f" only; extract the video with: ffmpeg -i {name} -an -c:v copy {target}"
        )
