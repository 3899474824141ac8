"""Transcodes for real with FFmpeg in software, and with stand-ins that print what oneVPL's tool
prints.
"""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import Client
from scaletest.model import Outcome, Reason, Record, Reply, Request
from scaletest.processes.wake import Wake
from scaletest_workers.devices import DeviceOptions
from scaletest_workers.runtime import Runtime
from scaletest_workers.settings import Settings
from scaletest_workers.workloads.base import ProgramOptions, Result
from scaletest_workers.workloads.transcode.options import CODECS
from tests.conftest import need, wait_for

SAMPLES = Path(__file__).parents[2] / "unit/samples"


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


@pytest.fixture(scope="session")
def media(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A tiny stream of every codec, by codec."""
    folder = tmp_path_factory.mktemp("media")
    return {codec: make_stream(folder, 10, codec) for codec in CODECS}


def run(wake: Wake, *command: str, **settings: Any) -> Result:
    runtime = Runtime(Settings(command=command, **settings), wake)
    try:
        return runtime.run((), 0.0)[0]
    finally:
        runtime.close()


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_decoded_and_encoded(wake: Wake, media: dict[str, str], codec: str) -> None:
    arguments = (
        "--input",
        media[codec],
        "--output-codec",
        codec,
        "--threads",
        "1",
        "--quality",
        "speed",
        "--frames",
        "7",
    )
    result = run(wake, "transcode", *arguments)
    assert result.outcome is Outcome.SUCCEEDED, result.error
    assert (result.figures["frames"], result.figures["encode_errors"]) == (7, 0)


def test_several_outputs_are_counted_together(wake: Wake, media: dict[str, str]) -> None:
    arguments = (
        "--input",
        media["h264"],
        "--also",
        "mpeg2:96x96",
        "--threads",
        "1",
    )
    assert run(wake, "transcode", *arguments).figures["frames"] == 20


def test_the_frame_rate_is_the_rate_that_ffmpeg_prints(wake: Wake, tmp_path: Path) -> None:
    # given an ffmpeg whose every word is kept, and that reads in real time, so that it runs long
    # enough to give a rate
    real, log = need("ffmpeg"), tmp_path / "log"
    program = tmp_path / "ffmpeg"
    program.write_text(f'#!/bin/sh\n{real} -re "$@" 2>{log}; s=$?; cat {log} >&2; exit $s\n')
    program.chmod(0o755)
    slowly = (
        "--input",
        make_stream(tmp_path, 40),
        "--output-codec",
        "mpeg2",
        "--threads",
        "1",
    )
    # when
    result = run(wake, "transcode", *slowly, "--program", str(program))
    # expect its own summary, to the digits that it prints there
    summary = re.findall(r"frame=\s*(\d+) fps=\s*([\d.]+) ", log.read_text())[-1]
    assert result.figures["frames"] == int(summary[0]) == 40
    shown = float(summary[1])
    assert float(result.figures["fps"]) == pytest.approx(shown, abs=0.5 if shown > 9.95 else 0.05)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--input", "/nonexistent.h264"), "is not a plain file"),
        (("--input", "README.md", "--codec", "h264"), "returned error code"),
        (("--input", "README.md", "--acceleration", "vaapi"), "vaapi needs a device"),
        (("--input", "README.md", "--program", "/nonexistent"), "cannot be started"),
    ],
)
def test_a_failed_transcode_names_the_reason(
    wake: Wake, media: dict[str, str], arguments: Any, text: str
) -> None:
    result = run(wake, "transcode", *arguments)
    assert result.outcome is Outcome.FAILED
    assert text in result.error


def stand_in(folder: Path, sample: str, code: int = 0) -> str:
    """A sample_multi_transcode that keeps its arguments and par file, and prints a sample."""
    program = folder / "sample_multi_transcode"
    errors = SAMPLES / (Path(sample).stem + ".err")
    keep = f'echo "$@" >{folder}/line; [ "$1" = -par ] && cp "$2" {folder}/par'
    show = f"cat {SAMPLES / sample}; [ -f {errors} ] && cat {errors} >&2"
    program.write_text(f"#!/bin/sh\n{keep}\n{show}\nexit {code}\n")
    program.chmod(0o755)
    return str(program)


def test_onevpls_figures_come_from_its_output(
    wake: Wake, media: dict[str, str], tmp_path: Path
) -> None:
    device = tmp_path / "renderD128"
    device.touch()
    program = stand_in(tmp_path, "onevpl-synthetic-one.out")
    result = run(
        wake,
        "transcode",
        "--engine",
        "onevpl",
        "--input",
        media["h265"],
        "--program",
        program,
        devices=DeviceOptions(str(device)),
    )
    assert result.figures["frames"] == 600
    assert f"-device {device} -i::h265" in (tmp_path / "line").read_text()
    assert result.device == str(device)


def test_a_cascade_is_run_from_a_par_file_that_is_gone_afterwards(
    wake: Wake, media: dict[str, str], tmp_path: Path
) -> None:
    program = stand_in(tmp_path, "onevpl-synthetic-cascade.out", 1)
    arguments = (
        "--engine",
        "onevpl",
        "--input",
        media["h265"],
        "--size",
        "1920x1080",
        "--also",
        "h264:1280x720",
    )
    result = run(wake, "transcode", *arguments, "--program", program)
    assert (result.outcome, result.figures["encode_errors"]) == (Outcome.FAILED, 1)
    assert "-o::sink -join" in (tmp_path / "par").read_text()
    assert not Path((tmp_path / "line").read_text().split()[1]).exists()


def test_onevpl_without_a_gpu_fails_as_no_device(
    wake: Wake, media: dict[str, str], tmp_path: Path
) -> None:
    program = stand_in(tmp_path, "onevpl-no-device.out", 247)
    result = run(
        wake, "transcode", "--engine", "onevpl", "--input", media["h264"], "--program", program
    )
    assert (result.reason, result.exit_code) == (Reason.NO_DEVICE, 247)
    assert "No implementation was found" in result.error


def test_the_real_onevpl_without_a_gpu_fails_as_no_device(
    wake: Wake, media: dict[str, str]
) -> None:
    need("sample_multi_transcode")
    if list(Path("/dev").glob("dri/renderD*")):
        pytest.skip("this machine has a device")
    assert (
        run(wake, "transcode", "--engine", "onevpl", "--input", media["h264"]).reason
        is Reason.NO_DEVICE
    )


def test_the_media_deployments_own_arguments_work_as_a_command(wake: Wake, tmp_path: Path) -> None:
    # given the command line of the media deployment, unchanged but for the path of the program
    device = tmp_path / "renderD128"
    device.touch()
    line = (
        f"{stand_in(tmp_path, 'onevpl-synthetic-one.out')} -hw -async 4 -device FILENAME -i::h265"
        " v.h265 -o::h265 /dev/null -u medium -w 3840 -h 2160 -n 600"
    )
    result = run(
        wake,
        *line.split(),
        devices=DeviceOptions(str(device)),
        program=ProgramOptions(null_input=True),
        ignore_arguments=True,
    )
    assert result.figures["frames"] == 600
    expected = line.split(" ", 1)[1].replace("FILENAME", str(device))
    assert (tmp_path / "line").read_text().strip() == expected


def test_frames_travel_through_the_queue_into_the_record(
    client: Client, start: Any, media: dict[str, str]
) -> None:
    start("--", "transcode", "--input", media["h264"], "--output-codec", "mpeg2", "--threads", "1")
    client.submit(
        [
            Request("all", "q"),
            Request("few", "q", ("--frames", "4")),
            Request("no", "q", ("--program", "x")),
        ]
    )
    replies: dict[str, Reply] = wait_for(client, 3)
    assert (replies["all"].figures["frames"], replies["few"].figures["frames"]) == (10, 4)
    assert "a request may not set --program" in replies["no"].error
    assert (
        Record.from_json(Record("q", 1, replies["few"], 1.0).to_json()).reply.figures["frames"] == 4
    )
