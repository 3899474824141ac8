"""Media files: codecs by name, and containers by their first bytes."""

from pathlib import PurePath

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
