"""Transcodes: read from words, written as arguments and par files, and their tools' output read."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model.errors import InvalidValue
from scaletest_workers.workloads.command import READERS
from scaletest_workers.workloads.transcode import ffmpeg, onevpl
from scaletest_workers.workloads.transcode.options import (
    Acceleration,
    EncodedOutput,
    Quality,
    Transcode,
    TranscodeEngine,
    from_words,
)
from scaletest_workers.workloads.transcode.reading import TranscodeReading

SAMPLES = Path(__file__).parents[1] / "samples"
DEVICE = "/dev/dri/renderD128"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def transcode_of(text: str, requested: str = "") -> Transcode:
    return from_words(text.split(), requested.split())


# -- words
# --------------------------------------------------------------------------------------------------


def test_arguments_set_every_field_of_a_transcode() -> None:
    transcode = transcode_of(
        "--input v.h265 --output-codec h264 --size 1920x1080 --frames 600 --quality speed --bitrate"
        " 4000 --depth 4 --engine onevpl --also h265:1280x720"
    )
    assert transcode == Transcode(
        input="v.h265",
        codec="h265",
        size=(1920, 1080),
        also=(EncodedOutput("h265", 1280, 720),),
        frames=600,
        quality=Quality.SPEED,
        bitrate_kbps=4000,
        depth=4,
        engine=TranscodeEngine.ONEVPL,
        acceleration=Acceleration.QSV,
    )


def test_arguments_of_a_request_win_over_those_of_the_worker() -> None:
    assert transcode_of("--input a.h264 --frames 9", "--input b.m2v --frames 5").codec == "mpeg2"
    assert transcode_of("--input a.h264 --frames 9", "--frames 5").frames == 5


@pytest.mark.parametrize(
    "option", ["--program /bin/sh", "--output /etc/passwd", "--engine onevpl", "--threads 9"]
)
def test_a_request_cannot_say_what_runs_or_where_it_writes(option: str) -> None:
    with pytest.raises(InvalidValue, match="a request may not set"):
        transcode_of("--input a.h264", option)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "--input",
        "--input a --codec vp8",
        "--input a --size 12",
        "--input a --frames x",
        "--input a --frames -1",
        "--input a --quality best",
        "--input a --also mp3:64x64",
        "--input a --parallel 2",
        "--input a --engine onevpl --acceleration vaapi",
        "--input a --output b --also h264:64x64",
        "--input a --unknown",
        "a b",
    ],
)
def test_invalid_arguments_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        transcode_of(text)


@given(st.lists(st.text(max_size=12), max_size=6))
def test_any_arguments_are_read_or_refused(given_words: list[str]) -> None:
    try:
        from_words(["--input", "a.h264"], given_words)
    except InvalidValue:
        pass


# -- arguments
# --------------------------------------------------------------------------------------------------


def line(text: str, device: str = DEVICE) -> str:
    transcode = transcode_of(text)
    engine = ffmpeg if transcode.engine is TranscodeEngine.FFMPEG else onevpl
    return " ".join(engine.command_line(transcode, device))


def test_onevpl_as_the_media_deployment_does_it() -> None:
    text = (
        "--engine onevpl --depth 4 --input v.h265 --output-codec h265 --size 3840x2160 --frames 600"
    )
    expected = (
        "sample_multi_transcode -hw -async 4 -device /dev/dri/renderD128 -i::h265 v.h265 -o::h265"
        " /dev/null -u medium -w 3840 -h 2160 -n 600"
    )
    assert line(text) == expected
    assert onevpl.par_file(transcode_of(text), DEVICE) == ""


def test_cascade_scales_each_smaller_output_from_the_one_before() -> None:
    transcode = transcode_of(
        "--engine onevpl --input v.h264 --size 640x360 --also h265:1920x1080,h264:1280x720"
        " --frames 9"
    )
    assert onevpl.par_file(transcode, DEVICE).splitlines() == [
        "-hw -device /dev/dri/renderD128 -i::h264 v.h264 -o::sink -join -n 9",
        "-i::source -join -o::h265 /dev/null -u medium -w 1920 -h 1080",
        "-i::source -join -cs -o::h264 /dev/null -u medium -w 1280 -h 720",
        "-i::source -join -cs -o::h264 /dev/null -u medium -w 640 -h 360",
    ]
    assert onevpl.command_line(transcode, DEVICE, "x.par") == [
        "sample_multi_transcode",
        "-par",
        "x.par",
    ]


def test_parallel_encoders_share_one_stream() -> None:
    lines = onevpl.par_file(
        transcode_of("--engine onevpl --input v.h265 --parallel 2 --output o.h264 --depth 30"),
        DEVICE,
    ).splitlines()
    assert (
        lines[0] == "-hw -async 30 -device /dev/dri/renderD128 -i::h265 v.h265 -o::sink -join"
        " -parallel_encoding"
    )
    assert [part.split("-o::h264 ")[1].split()[0] for part in lines[1:]] == ["o.h264", "/dev/null"]
    assert all("-idr_interval 1" in part for part in lines[1:])


@pytest.mark.parametrize(
    ("acceleration", "has"),
    [
        ("software", ["-vf scale=640:360", "-c:v libx265 -preset medium"]),
        (
            "vaapi",
            [
                f"-hwaccel vaapi -hwaccel_device {DEVICE}",
                "scale_vaapi=w=640:h=360",
                "-c:v hevc_vaapi",
            ],
        ),
        (
            "qsv",
            [
                f"-qsv_device {DEVICE}",
                "-c:v h264_qsv",
                "scale_qsv=w=640:h=360",
                "-c:v hevc_qsv -preset medium",
            ],
        ),
        (
            "nvenc",
            [
                "-hwaccel cuda -hwaccel_output_format cuda",
                "scale_cuda=640:360",
                "-c:v hevc_nvenc -preset p4",
            ],
        ),
    ],
)
def test_ffmpeg_keeps_frames_on_the_device(acceleration: str, has: list[str]) -> None:
    text = line(f"--input v.h264 --output-codec h265 --size 640x360 --acceleration {acceleration}")
    assert all(part in text for part in has), text
    assert text.endswith("-f null -")


def test_ffmpeg_with_one_thread_has_one_thread_everywhere() -> None:
    text = line("--input v.h264 --output-codec h265 --threads 1 --frames 5")
    assert text.count("-threads 1") == 2
    assert "-filter_threads 1" in text
    assert "pools=none:frame-threads=1" in text


def test_decoding_only_names_no_encoder() -> None:
    assert "-c:v" not in line("--input v.h264 --output-codec null")
    assert "-o::raw /dev/null" in line("--engine onevpl --input v.h264 --output-codec null")


def test_an_input_is_a_file_and_nothing_else() -> None:
    assert "-protocol_whitelist file -i file:http://x/y.h264" in line("--input http://x/y.h264")


@pytest.mark.parametrize(
    "text", ["--input v.h264 --acceleration vaapi", "--input v.h264 --acceleration qsv"]
)
def test_acceleration_needs_a_device(text: str) -> None:
    with pytest.raises(InvalidValue, match="needs a device"):
        line(text, "")


def test_an_unknown_codec_must_be_named() -> None:
    with pytest.raises(InvalidValue, match=r"codec of v\.bin is unknown"):
        line("--engine onevpl --input v.bin")
    with pytest.raises(InvalidValue, match="NVENC does not encode vp9"):
        line("--input v.h264 --output-codec vp9 --acceleration nvenc")


# -- output
# --------------------------------------------------------------------------------------------------


def test_ffmpegs_last_block_counts() -> None:
    reading = ffmpeg.read_output(sample("ffmpeg-progress.txt"), "")
    assert (reading.figures["frames"], reading.figures["fps"], reading.figures["sessions"]) == (
        120,
        69.18,
        1,
    )


def test_ffmpegs_outputs_are_counted_together() -> None:
    reading = ffmpeg.read_output(
        sample("ffmpeg-two-outputs.progress"), sample("ffmpeg-two-outputs.log")
    )
    # 5 frames in each of two outputs; it gives no rate in its first second
    assert reading.figures["frames"] == 10
    assert "fps" not in reading.figures
    assert reading.figures["sessions"] == 2


def test_ffmpegs_status_line_is_read_where_there_is_no_progress() -> None:
    errors = (
        "frame=   10 fps=0.0 q=-0.0 size=N/A\rframe=  120 fps= 69 q=-1.0 Lsize=N/A time=00:00:03.93"
        " speed=2.27x\n"
    )
    assert ffmpeg.read_output("", errors).figures == {
        "frames": 120,
        "sessions": 1,
        "fps": 69.0,
        "encode_errors": 0,
    }


@pytest.mark.parametrize("kind", ["vaapi", "nvenc", "qsv"])
def test_ffmpeg_without_a_device_is_known(kind: str) -> None:
    reading = ffmpeg.read_output("", sample(f"ffmpeg-{kind}-no-device.log"))
    assert reading.no_device
    assert reading.figures == {}


def test_onevpl_without_a_device_is_known() -> None:
    reading = onevpl.read_output(sample("onevpl-no-device.out"), sample("onevpl-no-device.err"))
    assert reading.no_device
    assert "No implementation was found" in reading.complaint


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("one", {"frames": 600, "fps": 256.342, "sessions": 1, "encode_errors": 0}),
        # a decoder that feeds others is not counted, and a failed session is
        ("cascade", {"frames": 524, "fps": 149.316, "sessions": 2, "encode_errors": 1}),
    ],
)
def test_onevpls_sessions_are_read(name: str, figures: dict[str, float]) -> None:
    assert onevpl.read_output(sample(f"onevpl-synthetic-{name}.out"), "").figures == figures
    assert onevpl.read_output(sample("onevpl-published-sessions.out"), "").figures == {}


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_output_is_read(output: str, errors: str) -> None:
    for reader in (onevpl.read_output, ffmpeg.read_output):
        assert isinstance(reader(output, errors), TranscodeReading)


@given(st.integers(0, 10**12), st.floats(0, 1e6), st.floats(1e-4, 1e5))
def test_a_line_of_a_session_is_read_back(frames: int, fps: float, seconds: float) -> None:
    text = (
        f"*** session 0 [0x1f] PASSED (MFX_ERR_NONE) {seconds:g} sec, {frames} frames, {fps:.3f}"
        " fps\n"
    )
    figures = onevpl.read_output(text, "").figures
    assert figures["frames"] == frames
    if round(fps, 3) > 0:
        assert figures["fps"] == round(fps, 3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "sample_multi_transcode",
            "[ERROR], sts=MFX_ERR_MEMORY_ALLOC(-4), Init, m_pmfxENC->Init failed",
        ),
        ("ffmpeg", "[h264_nvenc @ 0x5] InitializeEncoder failed: CUDA_ERROR_OUT_OF_MEMORY"),
        ("ffmpeg", "Error while filtering: Cannot allocate memory"),
    ],
)
def test_memory_that_ran_out_is_counted(name: str, text: str) -> None:
    reading = READERS[name]("", text)
    assert (reading.figures["memory_limit_hits"], reading.complaint) == (1, "memory ran out")
