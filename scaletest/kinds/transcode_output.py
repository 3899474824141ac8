"""Parsers for the output of transcoding tools: frames, rates, sessions, errors, devices.

Figures: frames (encoded, of all outputs and sessions), fps (the tool's own rate, also summed),
sessions, session_fps_<n> if there are several, encode_errors, dropped_frames. Unknown numbers are
left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from scaletest.model.reply import Figures

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
MAX_SESSIONS_SHOWN = 16


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
    rates: list[float] = []
    frames = failed = 0
    for match in _SESSION.finditer(output):
        _, state, seconds, count, rate, line = match.groups()
        failed += state == "FAILED"
        if "-o::sink" in (line or ""):
            continue
        frames += int(count[:15])
        rates.append(_rate(rate, int(count[:15]), seconds))
    figures: Figures = {}
    if rates:
        figures = {
            "frames": frames,
            "fps": round(sum(rates), 3),
            "sessions": len(rates),
            "encode_errors": failed,
        }
        if len(rates) > 1:
            figures |= {
                f"session_fps_{n}": rate for n, rate in enumerate(rates[:MAX_SESSIONS_SHOWN])
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
    bench = _BENCH.search(errors)
    figures: Figures = {"frames": frames * streams, "sessions": streams}
    fps = _number(rate) or _rate(None, frames, bench[1] if bench else "")
    if fps > 0:
        figures["fps"] = round(fps * streams, 3)
    faults = len(_FAULT.findall(errors))
    figures["encode_errors"] = faults
    for name, ours in (("drop_frames", "dropped_frames"), ("dup_frames", "repeated_frames")):
        if last.get(name, "").isdigit():
            figures[ours] = int(last[name][:15])
    return _judged(figures, errors)


def _last_count(progress: Mapping[str, str], errors: str) -> tuple[str, str]:
    """Texts of the number of frames and of frames/s; "" if unknown."""
    if progress:
        return progress.get("frame", ""), progress.get("fps", "")
    status = _STATS.findall(errors)
    return status[-1] if status else ("", "")


Reader = Callable[[str, str], TranscodeReading]
# By the name of the program; used for any worker's command with that name.
READERS: dict[str, Reader] = {"sample_multi_transcode": onevpl, "ffmpeg": ffmpeg}


def _judged(figures: Figures, text: str) -> TranscodeReading:
    no_device = next((message for message in _NO_DEVICE if message in text), "")
    if no_device:
        return TranscodeReading(
            figures, True, f"its libraries found no usable device ({no_device})"
        )
    if any(message in text for message in _TOO_MANY):
        return TranscodeReading(
            figures,
            complaint=(
                "the driver allows no more encoding sessions on the device; use fewer workers"
            ),
        )
    if any(message in text for message in _NO_MEMORY):
        return TranscodeReading({**figures, "memory_limit_hits": 1}, complaint="memory ran out")
    return TranscodeReading(figures)


def _rate(rate: str | None, frames: int, seconds: str) -> float:
    """Frames/s as reported, else by number and time; 0 if unknown."""
    reported, elapsed = _number(rate or ""), _number(seconds)
    if reported or elapsed <= 0:
        return reported
    return round(frames / elapsed, 3)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) and 0 <= number < 1e12 else 0.0
