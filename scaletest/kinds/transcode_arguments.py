"""Command lines of a transcode: FFmpeg's, and oneVPL's with or without a par file.

FFmpeg: https://ffmpeg.org/ffmpeg.html, its wiki pages on hardware acceleration, `ffmpeg -h
encoder=NAME`. oneVPL: `sample_multi_transcode -?` and the project's readmes on cascade scaling and
parallel encoding.
"""

from __future__ import annotations

import re
from itertools import chain

from scaletest.kinds.media import FFMPEG_CODECS
from scaletest.kinds.transcode import (
    NULL,
    Acceleration,
    EncodedOutput,
    Quality,
    Transcode,
    TranscodeEngine,
)
from scaletest.model.errors import InvalidValue

_SOFTWARE = {
    "h264": "libx264",
    "h265": "libx265",
    "av1": "libsvtav1",
    "mpeg2": "mpeg2video",
    "vp9": "libvpx-vp9",
}
_NVENC = {"h264": "h264_nvenc", "h265": "hevc_nvenc", "av1": "av1_nvenc"}
_GRADES = (Quality.SPEED, Quality.BALANCED, Quality.QUALITY)
_USAGE = dict(zip(_GRADES, ("veryfast", "medium", "veryslow"), strict=True))
# Options of each encoder for the three grades.
_PRESETS = {
    "libx264": ("-preset", ("veryfast", "medium", "slow")),
    "libx265": ("-preset", ("veryfast", "medium", "slow")),
    "libsvtav1": ("-preset", ("10", "8", "5")),
    "libvpx-vp9": ("-cpu-used", ("8", "4", "1")),
    "qsv": ("-preset", ("veryfast", "medium", "veryslow")),
    "vaapi": ("-compression_level", ("7", "4", "1")),
    "nvenc": ("-preset", ("p1", "p4", "p7")),
}
_SCALERS = {
    Acceleration.SOFTWARE: "scale={w}:{h}",
    Acceleration.VAAPI: "scale_vaapi=w={w}:h={h}",
    Acceleration.QSV: "scale_qsv=w={w}:h={h}",
    Acceleration.NVENC: "scale_cuda={w}:{h}",
}
# Options of each parallel encoder, so that groups of pictures do not depend on each other.
_CLOSED_GROUPS = ["-dist", "8", "-gop_size", "30", "-idr_interval", "1"]


def arguments(transcode: Transcode, device: str, par_file: str = "") -> list[str]:
    """The command line.

    device: path of its node, "" for none. par_file: path of the written `par`.
    """
    if transcode.engine is TranscodeEngine.FFMPEG:
        return _ffmpeg(transcode, device)
    if par_file:
        return [transcode.command, "-par", par_file]
    return [transcode.command, *_session(transcode, device, transcode.outputs[0])]


def par(transcode: Transcode, device: str) -> str:
    """The par file for oneVPL's tool; "" if a command line is sufficient."""
    if transcode.engine is not TranscodeEngine.ONEVPL:
        return ""
    if transcode.parallel > 1:
        lines = _parallel(transcode, device)
    elif len(transcode.outputs) > 1:
        lines = _cascade(transcode, device) * transcode.sessions
    elif transcode.sessions > 1:
        lines = [_session(transcode, device, transcode.outputs[0])] * transcode.sessions
    else:
        return ""
    for argument in chain.from_iterable(lines):
        if not argument or re.search(r"\s", argument):
            raise InvalidValue(
                f"{argument!r} cannot be written to a par file", hint="use a path without spaces"
            )
    return "".join(" ".join(line) + "\n" for line in lines)


# -- oneVPL
# --------------------------------------------------------------------------------------------------


def _session(transcode: Transcode, device: str, output: EncodedOutput) -> list[str]:
    return [
        *_source(transcode, device),
        *_encoder(transcode, output, transcode.output or "/dev/null"),
        *_frames(transcode),
    ]


def _source(transcode: Transcode, device: str) -> list[str]:
    if not transcode.codec:
        raise InvalidValue(f"the codec of {transcode.input} is unknown", hint="set it with --codec")
    line = ["-sw" if transcode.acceleration is Acceleration.SOFTWARE else "-hw", *_depth(transcode)]
    if device:
        line += ["-device", device]
    return [*line, f"-i::{transcode.codec}", transcode.input]


def _encoder(transcode: Transcode, output: EncodedOutput, path: str) -> list[str]:
    line = [f"-o::{'raw' if output.codec == NULL else output.codec}", path]
    if output.codec != NULL:
        line += ["-u", _USAGE[transcode.quality]]
        if transcode.bitrate_kbps:
            line += ["-b", str(transcode.bitrate_kbps)]
    if output.width:
        line += ["-w", str(output.width), "-h", str(output.height)]
    return line


def _depth(transcode: Transcode) -> list[str]:
    return ["-async", str(transcode.depth)] if transcode.depth else []


def _frames(transcode: Transcode) -> list[str]:
    return ["-n", str(transcode.frames)] if transcode.frames else []


def _cascade(transcode: Transcode, device: str) -> list[list[str]]:
    """One decoder, several encoders; each smaller output is scaled from the previous one (-cs)."""
    lines = [[*_source(transcode, device), "-o::sink", "-join", *_frames(transcode)]]
    before = 0
    # the largest first; 0 is the size of the input
    by_size = sorted(
        transcode.outputs, key=lambda output: -(output.width * output.height or 10**12)
    )
    for output in by_size:
        area = output.width * output.height
        smaller = ["-cs"] if before and area < before else []
        encoder = _encoder(transcode, output, "/dev/null")
        lines.append(["-i::source", "-join", *smaller, *_depth(transcode), *encoder])
        before = area
    return lines


def _parallel(transcode: Transcode, device: str) -> list[list[str]]:
    """One decoder, encoders that alternate by groups of pictures; the first writes the stream."""
    lines = [
        [
            *_source(transcode, device),
            "-o::sink",
            "-join",
            "-parallel_encoding",
            *_frames(transcode),
        ]
    ]
    for number in range(transcode.parallel):
        path = (transcode.output or "/dev/null") if number == 0 else "/dev/null"
        encoder = _encoder(transcode, transcode.outputs[0], path)
        lines.append(["-i::source", "-join", *_depth(transcode), *_CLOSED_GROUPS, *encoder])
    return lines


# -- FFmpeg
# --------------------------------------------------------------------------------------------------


def _ffmpeg(transcode: Transcode, device: str) -> list[str]:
    line = [
        transcode.command,
        "-hide_banner",
        "-nostdin",
        "-loglevel",
        "level+info",
        "-nostats",
        "-benchmark",
    ]
    line += ["-progress", "pipe:1", "-y"]
    if transcode.threads:
        line += ["-filter_threads", str(transcode.threads)]
    for _ in range(transcode.sessions):
        line += [
            *_decoder(transcode, device),
            *_threads(transcode),
            "-protocol_whitelist",
            "file",
            "-i",
            f"file:{transcode.input}",
        ]
    for session in range(transcode.sessions):
        for output in transcode.outputs:
            line += ["-map", f"{session}:v:0", *_ffmpeg_output(transcode, output)]
    return line


def _decoder(transcode: Transcode, device: str) -> list[str]:
    """Options of the decoder, with which frames stay in the device's memory."""
    if transcode.acceleration is Acceleration.SOFTWARE:
        return []
    if transcode.acceleration is Acceleration.NVENC:
        return ["-hwaccel", "cuda", "-hwaccel_output_format", "cuda"]
    if not device:
        raise InvalidValue(
            f"{transcode.acceleration} needs a device",
            hint="set --preset or --device-glob for the worker",
        )
    if transcode.acceleration is Acceleration.VAAPI:
        return ["-hwaccel", "vaapi", "-hwaccel_device", device, "-hwaccel_output_format", "vaapi"]
    if not transcode.codec:
        raise InvalidValue(f"the codec of {transcode.input} is unknown", hint="set it with --codec")
    decoder = FFMPEG_CODECS[transcode.codec].removesuffix("video") + "_qsv"
    line = [
        "-hwaccel",
        "qsv",
        "-qsv_device",
        device,
        "-hwaccel_output_format",
        "qsv",
        "-c:v",
        decoder,
    ]
    return [*line, "-async_depth", str(transcode.depth)] if transcode.depth else line


def _threads(transcode: Transcode) -> list[str]:
    return ["-threads", str(transcode.threads)] if transcode.threads else []


def _ffmpeg_output(transcode: Transcode, output: EncodedOutput) -> list[str]:
    line = []
    if transcode.frames:
        line += ["-frames:v", str(transcode.frames)]
    if output.width:
        line += ["-vf", _SCALERS[transcode.acceleration].format(w=output.width, h=output.height)]
    if output.codec != NULL:
        line += _ffmpeg_encoder(transcode, output.codec)
    line += _threads(transcode)
    # without a file the null muxer counts the encoded frames and discards them
    return [*line, transcode.output] if transcode.output else [*line, "-f", "null", "-"]


def _ffmpeg_encoder(transcode: Transcode, codec: str) -> list[str]:
    encoder = _encoder_name(transcode.acceleration, codec)
    line = ["-c:v", encoder]
    key = encoder if encoder in _PRESETS else encoder.rpartition("_")[2]
    if key in _PRESETS:
        option, values = _PRESETS[key]
        line += [option, values[_GRADES.index(transcode.quality)]]
    if transcode.bitrate_kbps:
        line += ["-b:v", f"{transcode.bitrate_kbps}k"]
    if transcode.depth and transcode.acceleration in (Acceleration.QSV, Acceleration.VAAPI):
        line += ["-async_depth", str(transcode.depth)]
    if transcode.threads and encoder == "libx265":
        # its thread pool does not follow FFmpeg's option
        pools = "none" if transcode.threads == 1 else str(transcode.threads)
        line += [
            "-x265-params",
            f"pools={pools}:frame-threads={min(transcode.threads, 16)}:log-level=error",
        ]
    if transcode.threads and encoder == "libsvtav1":
        line += ["-svtav1-params", f"lp={transcode.threads}"]
    return line


def _encoder_name(acceleration: Acceleration, codec: str) -> str:
    if acceleration is Acceleration.SOFTWARE:
        return _SOFTWARE[codec]
    if acceleration is Acceleration.NVENC:
        if codec not in _NVENC:
            raise InvalidValue(
                f"NVENC does not encode {codec}", hint=f"use one of: {', '.join(_NVENC)}"
            )
        return _NVENC[codec]
    return f"{FFMPEG_CODECS[codec].removesuffix('video')}_{acceleration}"
