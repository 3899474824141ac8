"""Command lines and output of FFmpeg.

Its options are described on https://ffmpeg.org/ffmpeg.html, in its wiki pages on hardware
acceleration, and by `ffmpeg -h encoder=NAME`.
"""

import re

from scaletest.model import checks
from scaletest.model.record import Figures
from scaletest_workers.workloads.transcode.options import (
    NULL,
    Acceleration,
    EncodedOutput,
    Quality,
    Transcode,
    option_words,
)
from scaletest_workers.workloads.transcode.reading import TranscodeReading, read_number

_LOG = ("-loglevel", "level+info", "-nostats", "-progress", "pipe:1")
# FFmpeg's names of the codecs.
FFMPEG_CODECS = {"h264": "h264", "h265": "hevc", "av1": "av1", "mpeg2": "mpeg2video", "vp9": "vp9"}
_SOFTWARE = {
    "h264": "libx264",
    "h265": "libx265",
    "av1": "libsvtav1",
    "mpeg2": "mpeg2video",
    "vp9": "libvpx-vp9",
}
_NVENC = {"h264": "h264_nvenc", "h265": "hevc_nvenc", "av1": "av1_nvenc"}
# Options of each encoder for the three grades.
_GRADES = (Quality.SPEED, Quality.BALANCED, Quality.QUALITY)
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
_PROGRESS = re.compile(r"^(\w+)=\s*(\S+)\s*$", re.MULTILINE)
_STATS = re.compile(r"frame=\s*(\d+) fps=\s*([\d.]+) ")
_FAULT = re.compile(r"\[(?:error|fatal|panic)\]")


def command_line(transcode: Transcode, device: str) -> list[str]:
    """Return the command line. device: path of its node, "" for none."""
    line = [
        *(transcode.command, "-hide_banner", "-nostdin", *_LOG, "-y"),
        *option_words("-filter_threads", transcode.threads),
        *_decoder_options(transcode, device),
        *option_words("-threads", transcode.threads),
        *("-protocol_whitelist", "file", "-i", f"file:{transcode.input}"),
    ]
    for output in transcode.outputs:
        scaler = _SCALERS[transcode.acceleration].format(w=output.width, h=output.height)
        line += [
            *("-map", "0:v:0"),
            *option_words("-frames:v", transcode.frames),
            *option_words("-vf", scaler if output.width else ""),
            *_encoder_options(transcode, output),
            *option_words("-threads", transcode.threads),
            # without a file the null muxer counts the encoded frames and discards them
            *([transcode.output] if transcode.output else ["-f", "null", "-"]),
        ]
    return line


def _decoder_options(transcode: Transcode, device: str) -> list[str]:
    """Return options of the decoder, with which frames stay in the device's memory."""
    if transcode.acceleration is Acceleration.SOFTWARE:
        return []
    if transcode.acceleration is Acceleration.NVENC:
        return ["-hwaccel", "cuda", "-hwaccel_output_format", "cuda"]
    checks.raise_first_mistake(
        (
            not device,
            f"{transcode.acceleration} needs a device",
            "set <preset> or <device_glob> for the worker",
        )
    )
    if transcode.acceleration is Acceleration.VAAPI:
        return ["-hwaccel", "vaapi", "-hwaccel_device", device, "-hwaccel_output_format", "vaapi"]
    return [
        *("-hwaccel", "qsv", "-qsv_device", device, "-hwaccel_output_format", "qsv"),
        *("-c:v", f"{FFMPEG_CODECS[transcode.known_codec].removesuffix('video')}_qsv"),
        *option_words("-async_depth", transcode.depth),
    ]


def _encoder_options(transcode: Transcode, output: EncodedOutput) -> list[str]:
    """Return options of the encoder; none to decode only."""
    if output.codec == NULL:
        return []
    acceleration = transcode.acceleration
    threads = transcode.threads
    if acceleration is Acceleration.SOFTWARE:
        encoder = _SOFTWARE[output.codec]
    elif acceleration is Acceleration.NVENC:
        checks.raise_first_mistake(
            (
                output.codec not in _NVENC,
                f"NVENC does not encode {output.codec}",
                f"use one of: {', '.join(_NVENC)}",
            )
        )
        encoder = _NVENC[output.codec]
    else:
        encoder = f"{FFMPEG_CODECS[output.codec].removesuffix('video')}_{acceleration}"
    line = ["-c:v", encoder]
    preset = _PRESETS.get(encoder) or _PRESETS.get(encoder.rpartition("_")[2])
    if preset:
        line += [preset[0], preset[1][_GRADES.index(transcode.quality)]]
    if transcode.bitrate_kbps:
        line += ["-b:v", f"{transcode.bitrate_kbps}k"]
    if acceleration in (Acceleration.QSV, Acceleration.VAAPI):
        line += option_words("-async_depth", transcode.depth)
    if threads and encoder == "libx265":
        # its thread pool does not follow FFmpeg's option
        pools = "none" if threads == 1 else threads
        frames = min(threads, 16)
        line += ["-x265-params", f"pools={pools}:frame-threads={frames}:log-level=error"]
    if threads and encoder == "libsvtav1":
        line += ["-svtav1-params", f"lp={threads}"]
    return line


def read_output(output: str, errors: str) -> TranscodeReading:
    """Parse the last `-progress` block of FFmpeg, else its last status line.

    Both count the first output. All outputs have the same number of frames, and the block has a
    line stream_<file>_<stream>_q for each. FFmpeg reports 0 frames/s in its first second, which
    is no rate.
    """
    # frames and rate of the first output
    start = output.rfind("frame=")
    progress: dict[str, str] = dict(_PROGRESS.findall(output[start:])) if start >= 0 else {}
    count = progress.get("frame", "")
    rate = progress.get("fps", "")
    status = _STATS.findall(errors)
    if not progress and status:
        count, rate = status[-1]
    if not count.isdigit():
        return TranscodeReading.explain({}, errors)

    # figures of all outputs
    streams = sum(name.startswith("stream_") for name in progress) or 1
    frames = int(count[:15])
    figures: Figures = {"frames": frames * streams, "sessions": streams}
    fps = read_number(rate)
    if fps > 0:
        figures["fps"] = round(fps * streams, 3)
    figures["encode_errors"] = len(_FAULT.findall(errors))
    return TranscodeReading.explain(figures, errors)
