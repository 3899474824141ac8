"""A transcode as the arguments of its engine: FFmpeg's command line, oneVPL's command line or par file.

FFmpeg: https://ffmpeg.org/ffmpeg.html, its wiki pages on hardware acceleration, `ffmpeg -h encoder=NAME`.
oneVPL: `sample_multi_transcode -?` and the project's readmes on cascade scaling and parallel encoding.
"""

from __future__ import annotations

from scaletest.kinds.media import FFMPEG_CODECS
from scaletest.kinds.transcode import NULL, Acceleration, EncodedOutput, Quality, Transcode, TranscodeEngine
from scaletest.model.errors import InvalidValue

_SOFTWARE = {"h264": "libx264", "h265": "libx265", "av1": "libsvtav1", "mpeg2": "mpeg2video", "vp9": "libvpx-vp9"}
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
# What each parallel encoder needs, so that groups of pictures do not depend on each other.
_CLOSED_GROUPS = ["-dist", "8", "-gop_size", "30", "-idr_interval", "1"]


def arguments(what: Transcode, device: str, par_file: str = "") -> list[str]:
    """The command line. device: path of its node, "" for none. par_file: where `par` was written, when it has lines."""
    if what.engine is TranscodeEngine.FFMPEG:
        return _ffmpeg(what, device)
    if par_file:
        return [what.command, "-par", par_file]
    return [what.command, *_session(what, device, what.outputs[0])]


def par(what: Transcode, device: str) -> str:
    """The par file for oneVPL's tool; "" when one command line says it all."""
    if what.engine is not TranscodeEngine.ONEVPL:
        return ""
    if what.parallel > 1:
        lines = _parallel(what, device)
    elif len(what.outputs) > 1:
        lines = [line for _ in range(what.sessions) for line in _cascade(what, device)]
    elif what.sessions > 1:
        lines = [_session(what, device, what.outputs[0])] * what.sessions
    else:
        return ""
    for word in (word for line in lines for word in line):
        if any(c.isspace() for c in word) or not word:
            raise InvalidValue(f"{word!r} cannot stand in a par file", hint="use a path without spaces")
    return "".join(" ".join(line) + "\n" for line in lines)


# -- oneVPL ---------------------------------------------------------------------------------------------------------


def _session(what: Transcode, device: str, output: EncodedOutput) -> list[str]:
    return [*_source(what, device), *_encoder(what, output, what.output or "/dev/null"), *_frames(what)]


def _source(what: Transcode, device: str) -> list[str]:
    if not what.codec:
        raise InvalidValue(f"the codec of {what.input} is not known", hint="name it with --codec")
    line = ["-sw" if what.acceleration is Acceleration.SOFTWARE else "-hw", *_depth(what)]
    if device:
        line += ["-device", device]
    return [*line, f"-i::{what.codec}", what.input]


def _encoder(what: Transcode, output: EncodedOutput, path: str) -> list[str]:
    line = [f"-o::{'raw' if output.codec == NULL else output.codec}", path]
    if output.codec != NULL:
        line += ["-u", _USAGE[what.quality]]
        if what.bitrate_kbps:
            line += ["-b", str(what.bitrate_kbps)]
    if output.width:
        line += ["-w", str(output.width), "-h", str(output.height)]
    return line


def _depth(what: Transcode) -> list[str]:
    return ["-async", str(what.depth)] if what.depth else []


def _frames(what: Transcode) -> list[str]:
    return ["-n", str(what.frames)] if what.frames else []


def _cascade(what: Transcode, device: str) -> list[list[str]]:
    """One decoder, several encoders. From the second on each smaller size is scaled from the one before (-cs)."""
    lines = [[*_source(what, device), "-o::sink", "-join", *_frames(what)]]
    before = 0
    for output in sorted(what.outputs, key=lambda one: -(one.width * one.height or 10**12)):
        area = output.width * output.height
        smaller = ["-cs"] if before and area < before else []
        encoder = _encoder(what, output, "/dev/null")
        lines.append(["-i::source", "-join", *smaller, *_depth(what), *encoder])
        before = area
    return lines


def _parallel(what: Transcode, device: str) -> list[list[str]]:
    """One decoder, several encoders that take turns by groups of pictures; the first one writes the stream."""
    lines = [[*_source(what, device), "-o::sink", "-join", "-parallel_encoding", *_frames(what)]]
    for number in range(what.parallel):
        path = (what.output or "/dev/null") if number == 0 else "/dev/null"
        encoder = _encoder(what, what.outputs[0], path)
        lines.append(["-i::source", "-join", *_depth(what), *_CLOSED_GROUPS, *encoder])
    return lines


# -- FFmpeg ---------------------------------------------------------------------------------------------------------


def _ffmpeg(what: Transcode, device: str) -> list[str]:
    line = [what.command, "-hide_banner", "-nostdin", "-loglevel", "level+info", "-nostats", "-benchmark"]
    line += ["-progress", "pipe:1", "-y"]
    if what.threads:
        line += ["-filter_threads", str(what.threads)]
    for _ in range(what.sessions):
        line += [*_decoder(what, device), *_threads(what), "-protocol_whitelist", "file", "-i", f"file:{what.input}"]
    for session in range(what.sessions):
        for output in what.outputs:
            line += ["-map", f"{session}:v:0", *_ffmpeg_output(what, output)]
    return line


def _decoder(what: Transcode, device: str) -> list[str]:
    """How to decode, so that frames stay in the device's memory."""
    if what.acceleration is Acceleration.SOFTWARE:
        return []
    if what.acceleration is Acceleration.NVENC:
        return ["-hwaccel", "cuda", "-hwaccel_output_format", "cuda"]
    if not device:
        raise InvalidValue(f"{what.acceleration} needs a device", hint="give the worker --preset or --device-glob")
    if what.acceleration is Acceleration.VAAPI:
        return ["-hwaccel", "vaapi", "-hwaccel_device", device, "-hwaccel_output_format", "vaapi"]
    if not what.codec:
        raise InvalidValue(f"the codec of {what.input} is not known", hint="name it with --codec")
    decoder = FFMPEG_CODECS[what.codec].removesuffix("video") + "_qsv"
    line = ["-hwaccel", "qsv", "-qsv_device", device, "-hwaccel_output_format", "qsv", "-c:v", decoder]
    return [*line, "-async_depth", str(what.depth)] if what.depth else line


def _threads(what: Transcode) -> list[str]:
    return ["-threads", str(what.threads)] if what.threads else []


def _ffmpeg_output(what: Transcode, output: EncodedOutput) -> list[str]:
    line = ["-frames:v", str(what.frames)] if what.frames else []
    if output.width:
        line += ["-vf", _SCALERS[what.acceleration].format(w=output.width, h=output.height)]
    if output.codec != NULL:
        line += _ffmpeg_encoder(what, output.codec)
    line += _threads(what)
    # without a file the null muxer counts what was encoded and throws it away
    return [*line, what.output] if what.output else [*line, "-f", "null", "-"]


def _ffmpeg_encoder(what: Transcode, codec: str) -> list[str]:
    encoder = _encoder_name(what.acceleration, codec)
    line = ["-c:v", encoder]
    key = encoder if encoder in _PRESETS else encoder.rpartition("_")[2]
    if key in _PRESETS:
        option, values = _PRESETS[key]
        line += [option, values[_GRADES.index(what.quality)]]
    if what.bitrate_kbps:
        line += ["-b:v", f"{what.bitrate_kbps}k"]
    if what.depth and what.acceleration in (Acceleration.QSV, Acceleration.VAAPI):
        line += ["-async_depth", str(what.depth)]
    if what.threads and encoder == "libx265":
        # its thread pool does not follow FFmpeg's option
        pools = "none" if what.threads == 1 else str(what.threads)
        line += ["-x265-params", f"pools={pools}:frame-threads={min(what.threads, 16)}:log-level=error"]
    if what.threads and encoder == "libsvtav1":
        line += ["-svtav1-params", f"lp={what.threads}"]
    return line


def _encoder_name(acceleration: Acceleration, codec: str) -> str:
    if acceleration is Acceleration.SOFTWARE:
        return _SOFTWARE[codec]
    if acceleration is Acceleration.NVENC:
        if codec not in _NVENC:
            raise InvalidValue(f"NVENC does not encode {codec}", hint=f"use one of: {', '.join(_NVENC)}")
        return _NVENC[codec]
    return f"{FFMPEG_CODECS[codec].removesuffix('video')}_{acceleration}"
