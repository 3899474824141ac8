"""What transcoding tools say: frames, frames a second, sessions, errors, and whether the device was to blame.

Figures: frames (encoded, all outputs and sessions together), fps (the tool's own rate, summed likewise), sessions,
session_fps_<n> where there are several, encode_errors, dropped_frames. Numbers; the unknown is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from scaletest.model.reply import Figures

_SESSION = re.compile(
    r"\*\*\* session (\d+) (?:\[\w+\] )?(PASSED|FAILED)[^\n]*?"
    r"([\d.]+(?:e[+-]?\d+)?) sec, (\d+) frames(?:, ([\d.]+(?:e[+-]?\d+)?) fps)?[^\n]*(?:\n([^\n]*))?"
)
_PROGRESS = re.compile(r"^(\w+)=\s*(\S+)\s*$", re.MULTILINE)
_STATS = re.compile(r"frame=\s*(\d+) fps=\s*([\d.]+) ")
_BENCH = re.compile(r"bench: utime=[\d.]+s stime=[\d.]+s rtime=([\d.]+)s")
_FAULT = re.compile(r"\[(?:error|fatal|panic)\]")
# Words of drivers and libraries that find no device or may not use it; from real runs without one.
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
# Memory of the device or of the container: oneVPL's, CUDA's and the system's words.
_NO_MEMORY = ("MFX_ERR_MEMORY_ALLOC", "CUDA_ERROR_OUT_OF_MEMORY", "Cannot allocate memory")
MAX_SESSIONS_SHOWN = 16


@dataclass(frozen=True, slots=True)
class TranscodeReading:
    """What a tool's output says. complaint: what it means in plain words, "" when nothing is known beyond its text."""

    figures: Figures = field(default_factory=dict)
    no_device: bool = False
    complaint: str = ""


def onevpl(output: str, errors: str) -> TranscodeReading:
    """sample_multi_transcode: one `*** session N [..] PASSED (..) S sec, F frames, R fps` line a session.

    A decoder that feeds others (its par line, printed below, ends in a sink) has no frames of its own in the sum.
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
        figures = {"frames": frames, "fps": round(sum(rates), 3), "sessions": len(rates), "encode_errors": failed}
        if len(rates) > 1:
            figures |= {f"session_fps_{n}": rate for n, rate in enumerate(rates[:MAX_SESSIONS_SHOWN])}
    return _judged(figures, output + errors)


def ffmpeg(output: str, errors: str) -> TranscodeReading:
    """FFmpeg: the last `-progress` block, else the last status line; both count the first output's frames.

    All outputs of our command lines have the same number of frames, and the block has a stream_<file>_<stream>_q entry
    for each. FFmpeg says 0 frames a second in the first second of a run; then its benchmark line gives the rate.
    """
    last = dict(_PROGRESS.findall(output[output.rfind("frame=") :])) if "frame=" in output else {}
    streams = sum(name.startswith("stream_") for name in last) or 1
    status = _STATS.findall(errors)
    count, rate = (last.get("frame", ""), last.get("fps", "")) if last else (status[-1] if status else ("", ""))
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


Reader = Callable[[str, str], TranscodeReading]
# By the name of the program; what any worker's command of that name writes is read.
READERS: dict[str, Reader] = {"sample_multi_transcode": onevpl, "ffmpeg": ffmpeg}


def _judged(figures: Figures, text: str) -> TranscodeReading:
    found = next((words for words in _NO_DEVICE if words in text), "")
    if found:
        return TranscodeReading(figures, True, f"its libraries find no usable device ({found})")
    if any(words in text for words in _TOO_MANY):
        return TranscodeReading(
            figures, complaint="the device encodes as many streams as its driver allows; use fewer workers"
        )
    if any(words in text for words in _NO_MEMORY):
        return TranscodeReading({**figures, "memory_limit_hits": 1}, complaint="memory ran out")
    return TranscodeReading(figures)


def _rate(rate: str | None, frames: int, seconds: str) -> float:
    """Frames a second as said, else as counted; 0 when neither is known."""
    said, taken = _number(rate or ""), _number(seconds)
    return said or (round(frames / taken, 3) if taken > 0 else 0.0)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and 0 <= value < 1e12 else 0.0
