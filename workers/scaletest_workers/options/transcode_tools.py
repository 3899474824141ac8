"""Command lines and output of the tools that transcode: FFmpeg, and oneVPL's.

oneVPL's is run with or without a par file. FFmpeg's options are described on
https://ffmpeg.org/ffmpeg.html, in its wiki pages on hardware acceleration, and by `ffmpeg -h
encoder=NAME`; oneVPL's by `sample_multi_transcode -?` and the project's readmes on cascade scaling
and parallel encoding.

Figures of an output are frames (encoded, of all outputs), fps (the tool's own rate, also summed),
sessions (encoders), encode_errors and dropped_frames.
Unknown numbers are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from scaletest.model import checks
from scaletest.model.record import Figures
from scaletest_workers.options.media import FFMPEG_CODECS
from scaletest_workers.options.transcode import (
    NULL,
    Acceleration,
    EncodedOutput,
    Quality,
    Transcode,
    TranscodeEngine,
)

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
        lines = _cascade(transcode, device)
    else:
        return ""
    for argument in chain.from_iterable(lines):
        checks.refuse(
            (
                not argument or re.search(r"\s", argument),
                f"{argument!r} cannot be written to a par file",
                "use a path without spaces",
            )
        )
    return "".join(" ".join(line) + "\n" for line in lines)


# -- oneVPL
# --------------------------------------------------------------------------------------------------


def _session(transcode: Transcode, device: str, output: EncodedOutput) -> list[str]:
    return [
        *_source(transcode, device),
        *_encoder(transcode, output, transcode.output or "/dev/null"),
        *_option("-n", transcode.frames),
    ]


def _source(transcode: Transcode, device: str) -> list[str]:
    checks.refuse(
        (not transcode.codec, f"the codec of {transcode.input} is unknown", "set it with --codec")
    )
    return [
        "-sw" if transcode.acceleration is Acceleration.SOFTWARE else "-hw",
        *_option("-async", transcode.depth),
        *_option("-device", device),
        f"-i::{transcode.codec}",
        transcode.input,
    ]


def _encoder(transcode: Transcode, output: EncodedOutput, path: str) -> list[str]:
    line = [f"-o::{'raw' if output.codec == NULL else output.codec}", path]
    if output.codec != NULL:
        line += ["-u", _USAGE[transcode.quality], *_option("-b", transcode.bitrate_kbps)]
    if output.width:
        line += ["-w", str(output.width), "-h", str(output.height)]
    return line


def _option(name: str, setting: object) -> list[str]:
    """An option with its setting; nothing where it is not set."""
    return [name, str(setting)] if setting else []


def _decoder_for_others(transcode: Transcode, device: str, *flags: str) -> list[str]:
    source, frames = _source(transcode, device), _option("-n", transcode.frames)
    return [*source, "-o::sink", "-join", *flags, *frames]


def _cascade(transcode: Transcode, device: str) -> list[list[str]]:
    """One decoder, several encoders; each smaller output is scaled from the previous one (-cs)."""
    lines = [_decoder_for_others(transcode, device)]
    before = 0
    # the largest first; 0 is the size of the input
    for output in sorted(
        transcode.outputs, key=lambda output: -(output.width * output.height or 10**12)
    ):
        area = output.width * output.height
        smaller = ["-cs"] if before and area < before else []
        lines.append(
            [
                "-i::source",
                "-join",
                *smaller,
                *_option("-async", transcode.depth),
                *_encoder(transcode, output, "/dev/null"),
            ]
        )
        before = area
    return lines


def _parallel(transcode: Transcode, device: str) -> list[list[str]]:
    """One decoder, encoders that alternate by groups of pictures; the first writes the stream."""
    source = ["-i::source", "-join", *_option("-async", transcode.depth), *_CLOSED_GROUPS]
    paths = [transcode.output or "/dev/null", *["/dev/null"] * (transcode.parallel - 1)]
    return [
        _decoder_for_others(transcode, device, "-parallel_encoding"),
        *([*source, *_encoder(transcode, transcode.outputs[0], path)] for path in paths),
    ]


# -- FFmpeg
# --------------------------------------------------------------------------------------------------


def _ffmpeg(transcode: Transcode, device: str) -> list[str]:
    log = ("-loglevel", "level+info", "-nostats", "-benchmark", "-progress", "pipe:1")
    source = [
        *_decoder(transcode, device),
        *_option("-threads", transcode.threads),
        *("-protocol_whitelist", "file", "-i", f"file:{transcode.input}"),
    ]
    line = [
        *(transcode.command, "-hide_banner", "-nostdin", *log, "-y"),
        *_option("-filter_threads", transcode.threads),
        *source,
    ]
    for output in transcode.outputs:
        line += ["-map", "0:v:0", *_ffmpeg_output(transcode, output)]
    return line


def _decoder(transcode: Transcode, device: str) -> list[str]:
    """Options of the decoder, with which frames stay in the device's memory."""
    if transcode.acceleration is Acceleration.SOFTWARE:
        return []
    if transcode.acceleration is Acceleration.NVENC:
        return ["-hwaccel", "cuda", "-hwaccel_output_format", "cuda"]
    checks.refuse(
        (
            not device,
            f"{transcode.acceleration} needs a device",
            "set <preset> or <device_glob> for the worker",
        )
    )
    if transcode.acceleration is Acceleration.VAAPI:
        return ["-hwaccel", "vaapi", "-hwaccel_device", device, "-hwaccel_output_format", "vaapi"]
    checks.refuse(
        (not transcode.codec, f"the codec of {transcode.input} is unknown", "set it with --codec")
    )
    return [
        *("-hwaccel", "qsv", "-qsv_device", device, "-hwaccel_output_format", "qsv"),
        *("-c:v", f"{FFMPEG_CODECS[transcode.codec].removesuffix('video')}_qsv"),
        *_option("-async_depth", transcode.depth),
    ]


def _ffmpeg_output(transcode: Transcode, output: EncodedOutput) -> list[str]:
    scaler = _SCALERS[transcode.acceleration].format(w=output.width, h=output.height)
    return [
        *_option("-frames:v", transcode.frames),
        *_option("-vf", scaler if output.width else ""),
        *([] if output.codec == NULL else _ffmpeg_encoder(transcode, output.codec)),
        *_option("-threads", transcode.threads),
        # without a file the null muxer counts the encoded frames and discards them
        *([transcode.output] if transcode.output else ["-f", "null", "-"]),
    ]


def _ffmpeg_encoder(transcode: Transcode, codec: str) -> list[str]:
    encoder, threads = _encoder_name(transcode.acceleration, codec), transcode.threads
    line = ["-c:v", encoder]
    preset = _PRESETS.get(encoder) or _PRESETS.get(encoder.rpartition("_")[2])
    if preset:
        line += [preset[0], preset[1][_GRADES.index(transcode.quality)]]
    if transcode.bitrate_kbps:
        line += ["-b:v", f"{transcode.bitrate_kbps}k"]
    if transcode.acceleration in (Acceleration.QSV, Acceleration.VAAPI):
        line += _option("-async_depth", transcode.depth)
    if threads and encoder == "libx265":
        # its thread pool does not follow FFmpeg's option
        pools = f"pools={'none' if threads == 1 else threads}:frame-threads={min(threads, 16)}"
        line += ["-x265-params", f"{pools}:log-level=error"]
    if threads and encoder == "libsvtav1":
        line += ["-svtav1-params", f"lp={threads}"]
    return line


def _encoder_name(acceleration: Acceleration, codec: str) -> str:
    if acceleration is Acceleration.SOFTWARE:
        return _SOFTWARE[codec]
    if acceleration is Acceleration.NVENC:
        checks.refuse(
            (
                codec not in _NVENC,
                f"NVENC does not encode {codec}",
                f"use one of: {', '.join(_NVENC)}",
            )
        )
        return _NVENC[codec]
    return f"{FFMPEG_CODECS[codec].removesuffix('video')}_{acceleration}"


_SESSION = re.compile(
    r"\*\*\* session (\d+) (?:\[\w+\] )?(PASSED|FAILED)[^\n]*?"
    r"([\d.]+(?:e[+-]?\d+)?) sec, (\d+) frames(?:, ([\d.]+(?:e[+-]?\d+)?)"
    r" fps)?[^\n]*(?:\n([^\n]*))?"
)
_PROGRESS = re.compile(r"^(\w+)=\s*(\S+)\s*$", re.MULTILINE)
_STATS = re.compile(r"frame=\s*(\d+) fps=\s*([\d.]+) ")
_BENCH = re.compile(r"bench: utime=[\d.]+s stime=[\d.]+s rtime=([\d.]+)s")
_FAULT = re.compile(r"\[(?:error|fatal|panic)\]")
# Messages of drivers and libraries without a usable device; from real runs without one.
_NO_DEVICE = (
    "No implementation was found",
    "No VA display found",
    "Failed to initialise VAAPI",
    "Cannot load libcuda",
    "Cannot load libnvidia-encode",
    "Could not dynamically load CUDA",
    "No capable devices found",
    "no CUDA-capable device",
    "CUDA_ERROR_NO_DEVICE",
    "Error initializing an internal MFX session",
    "Error creating a MFX session",
)
_TOO_MANY = ("OpenEncodeSessionEx failed: out of memory", "incompatible client key")
# Messages of oneVPL, CUDA and the system without enough memory, of the device or the container.
_NO_MEMORY = ("MFX_ERR_MEMORY_ALLOC", "CUDA_ERROR_OUT_OF_MEMORY", "Cannot allocate memory")


@dataclass(frozen=True, slots=True)
class TranscodeReading:
    """A parsed output.

    complaint: an explanation of the failure, "" if there is none beyond the text.
    """

    figures: Figures = field(default_factory=dict)
    no_device: bool = False
    complaint: str = ""


def onevpl(output: str, errors: str) -> TranscodeReading:
    """Parse lines `*** session N [..] PASSED (..) S sec, F frames, R fps` of the oneVPL tool.

    A decoder that feeds others does not count: its line of the par file, printed below, has a sink.
    """
    sessions = [match.groups(default="") for match in _SESSION.finditer(output)]
    encoders = [session for session in sessions if "-o::sink" not in session[5]]
    if not encoders:
        return _judged({}, output + errors)
    rates = [_rate(rate, int(count[:15]), seconds) for _, _, seconds, count, rate, _ in encoders]
    figures: Figures = {
        "frames": sum(int(count[:15]) for _, _, _, count, _, _ in encoders),
        "fps": round(sum(rates), 3),
        "sessions": len(rates),
        "encode_errors": sum(session[1] == "FAILED" for session in sessions),
    }
    return _judged(figures, output + errors)


def ffmpeg(output: str, errors: str) -> TranscodeReading:
    """Parse the last `-progress` block of FFmpeg, else its last status line.

    Both count the first output. All outputs have the same number of frames, and the block has a
    line stream_<file>_<stream>_q for each. FFmpeg reports 0 frames/s in its first second; then
    its benchmark line has the time.
    """
    last = dict(_PROGRESS.findall(output[output.rfind("frame=") :])) if "frame=" in output else {}
    streams = sum(name.startswith("stream_") for name in last) or 1
    count, rate = _last_count(last, errors)
    if not count.isdigit():
        return _judged({}, errors)
    frames = int(count[:15])
    figures: Figures = {"frames": frames * streams, "sessions": streams}
    bench = _BENCH.search(errors)
    fps = _rate(rate, frames, bench[1] if bench else "")
    if fps > 0:
        figures["fps"] = round(fps * streams, 3)
    figures["encode_errors"] = len(_FAULT.findall(errors))
    for name, ours in (("drop_frames", "dropped_frames"), ("dup_frames", "repeated_frames")):
        if last.get(name, "").isdigit():
            figures[ours] = int(last[name][:15])
    return _judged(figures, errors)


def _last_count(progress: Mapping[str, str], errors: str) -> tuple[str, str]:
    """Texts of the number of frames and of frames/s; "" if unknown."""
    if progress:
        return progress.get("frame", ""), progress.get("fps", "")
    status: list[tuple[str, str]] = [("", ""), *_STATS.findall(errors)]
    return status[-1]


Reader = Callable[[str, str], TranscodeReading]
# By the name of the program; used for any worker's command with that name.
READERS: dict[str, Reader] = {"sample_multi_transcode": onevpl, "ffmpeg": ffmpeg}


def _judged(figures: Figures, text: str) -> TranscodeReading:
    no_device = next((message for message in _NO_DEVICE if message in text), "")
    if no_device:
        complaint = f"its libraries found no usable device ({no_device})"
        return TranscodeReading(figures, True, complaint)
    if any(message in text for message in _TOO_MANY):
        complaint = "the driver allows no more encoding sessions on the device; use fewer workers"
        return TranscodeReading(figures, complaint=complaint)
    if any(message in text for message in _NO_MEMORY):
        return TranscodeReading({**figures, "memory_limit_hits": 1}, complaint="memory ran out")
    return TranscodeReading(figures)


def _rate(rate: str, frames: int, seconds: str) -> float:
    """Frames/s as reported, else by number and time; 0 if unknown."""
    reported, elapsed = _number(rate), _number(seconds)
    if reported or elapsed <= 0:
        return reported
    return round(frames / elapsed, 3)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) and 0 <= number < 1e12 else 0.0
