"""Small video streams of moving patterns, made by FFmpeg."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.conftest import need

ENCODERS = {
    "h264": ("libx264", "h264"),
    "h265": ("libx265", "hevc"),
    "av1": ("libsvtav1", "obu"),
    "mpeg2": ("mpeg2video", "mpeg2video"),
    "vp9": ("libvpx-vp9", "ivf"),
}


def make_stream(folder: Path, frames: int, codec: str = "h264") -> str:
    """Make a stream of so many frames of 64x64; its path."""
    encoder, form = ENCODERS[codec]
    path = folder / (f"{codec}.ivf" if form == "ivf" else f"test.{codec}")
    source = ("-f", "lavfi", "-i", "testsrc2=size=64x64:rate=25", "-frames:v", str(frames))
    encoded = ("-pix_fmt", "yuv420p", "-c:v", encoder, "-threads", "1", "-f", form, str(path))
    line = (need("ffmpeg"), "-loglevel", "error", *source, *encoded)
    subprocess.run(line, check=True, stdin=subprocess.DEVNULL)
    return str(path)
