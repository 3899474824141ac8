"""Command lines, par files and output of oneVPL's tool, sample_multi_transcode.

A par file has a line of options for each session, where sessions share frames. The options are
described by `sample_multi_transcode -?` and the project's readmes on cascade scaling and parallel
encoding.
"""

import re

from scaletest.model.record import Figures
from scaletest_workers.workloads.transcode.options import (
    NULL,
    Acceleration,
    EncodedOutput,
    Quality,
    Transcode,
    option_words,
)
from scaletest_workers.workloads.transcode.reading import TranscodeReading, frames_per_s

_USAGE = {Quality.SPEED: "veryfast", Quality.BALANCED: "medium", Quality.QUALITY: "veryslow"}
# Options of each parallel encoder, so that groups of pictures do not depend on each other.
_CLOSED_GROUPS = ["-dist", "8", "-gop_size", "30", "-idr_interval", "1"]
_SESSION = re.compile(
    r"\*\*\* session (\d+) (?:\[\w+\] )?(PASSED|FAILED)[^\n]*?"
    r"([\d.]+(?:e[+-]?\d+)?) sec, (\d+) frames(?:, ([\d.]+(?:e[+-]?\d+)?)"
    r" fps)?[^\n]*(?:\n([^\n]*))?"
)


def command_line(transcode: Transcode, device: str, par_file: str = "") -> list[str]:
    """Return the command line. par_file: path of the written `par_file`."""
    if par_file:
        return [transcode.command, "-par", par_file]
    return [
        transcode.command,
        *_source_options(transcode, device),
        *_encoder_options(transcode, transcode.outputs[0], transcode.output or "/dev/null"),
        *option_words("-n", transcode.frames),
    ]


def par_file(transcode: Transcode, device: str) -> str:
    """Return the text of the par file; "" if a command line is sufficient."""
    outputs = transcode.outputs
    if transcode.parallel == 1 and len(outputs) == 1:
        return ""
    # the first session decodes for the others
    is_parallel = transcode.parallel > 1
    flags = ["-parallel_encoding"] if is_parallel else []
    lines = [
        [
            *(*_source_options(transcode, device), "-o::sink", "-join", *flags),
            *option_words("-n", transcode.frames),
        ]
    ]
    source = ["-i::source", "-join"]
    depth = option_words("-async", transcode.depth)
    if is_parallel:
        # encoders that alternate by groups of pictures; the first one writes the stream
        for path in [transcode.output or "/dev/null", *["/dev/null"] * (transcode.parallel - 1)]:
            lines.append(
                [*source, *depth, *_CLOSED_GROUPS, *_encoder_options(transcode, outputs[0], path)]
            )
    else:
        # Each smaller output is scaled from the one before (-cs). The largest comes first; 0 is the
        # size of the input.
        area_before = 0
        for output in sorted(outputs, key=lambda output: -(output.area or 10**12)):
            smaller = ["-cs"] if area_before and output.area < area_before else []
            lines.append(
                [*source, *smaller, *depth, *_encoder_options(transcode, output, "/dev/null")]
            )
            area_before = output.area
    return "".join(" ".join(line) + "\n" for line in lines)


def _source_options(transcode: Transcode, device: str) -> list[str]:
    return [
        "-sw" if transcode.acceleration is Acceleration.SOFTWARE else "-hw",
        *option_words("-async", transcode.depth),
        *option_words("-device", device),
        f"-i::{transcode.known_codec}",
        transcode.input,
    ]


def _encoder_options(transcode: Transcode, output: EncodedOutput, path: str) -> list[str]:
    codec = "raw" if output.codec == NULL else output.codec
    line = [f"-o::{codec}", path]
    if output.codec != NULL:
        line += ["-u", _USAGE[transcode.quality], *option_words("-b", transcode.bitrate_kbps)]
    if output.width:
        line += ["-w", str(output.width), "-h", str(output.height)]
    return line


def read_output(output: str, errors: str) -> TranscodeReading:
    """Parse lines `*** session N [..] PASSED (..) S sec, F frames, R fps`.

    A decoder that feeds others does not count: its line of the par file, printed below, has a sink.
    """
    sessions = [match.groups(default="") for match in _SESSION.finditer(output)]
    frames: list[int] = []
    fps = 0.0
    for _, _, seconds, count, rate, par_line in sessions:
        if "-o::sink" not in par_line:
            frames.append(int(count[:15]))
            fps += frames_per_s(rate, frames[-1], seconds)
    figures: Figures = {}
    if frames:
        figures = {
            "frames": sum(frames),
            "fps": round(fps, 3),
            "sessions": len(frames),
            "encode_errors": sum(session[1] == "FAILED" for session in sessions),
        }
    return TranscodeReading.explain(figures, output + errors)
