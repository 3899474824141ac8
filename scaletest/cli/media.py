"""scaletest media: make test streams, describe files, list devices and who uses them."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
from dataclasses import asdict
from pathlib import Path

import click

from scaletest.broker import connect
from scaletest.broker.devices import Lease, device_leases
from scaletest.cli import options as shared
from scaletest.cli.headings import HeadedGroup, heading
from scaletest.cli.output import Output, echo
from scaletest.http.server import parse_address
from scaletest.kinds import media
from scaletest.kinds.media import CODECS
from scaletest.model.errors import InvalidValue, NoDevice, UsageError
from scaletest.model.presets import PRESETS
from scaletest.model.workload import Device
from workers.devices import DeviceChooser, DeviceOptions
from workers.workloads.fakedev import serve

TIMEOUT_S = 600.0


@click.group("media", cls=HeadedGroup)
def command() -> None:
    """Test media and devices.

    \b
    scaletest media make --folder media
    scaletest media probe media/test-h264-320x240-50.h264
    scaletest media devices --preset intel
    """


@command.command("make")
@heading("Output")
@click.option(
    "--folder",
    default=".",
    show_default=True,
    metavar="DIR",
    help="Write the files into this folder.",
)
@heading("Load")
@click.option(
    "--codec",
    multiple=True,
    type=click.Choice(CODECS),
    help="Make a file of this codec; the option may be repeated. [default: all]",
)
@click.option(
    "--size",
    default="320x240",
    show_default=True,
    metavar="WxH",
    help="Make pictures of this width and height in pixels, which are even numbers.",
)
@click.option(
    "--frames", type=int, default=50, show_default=True, metavar="N", help="Make N frames."
)
@click.option(
    "--rate",
    type=int,
    default=25,
    show_default=True,
    metavar="N",
    help="Make N frames for each second of video.",
)
@heading("Output")
@shared.output()
def make(
    folder: str, codec: tuple[str, ...], size: str, frames: int, rate: int, output: Output
) -> None:
    """Make elementary streams of moving patterns with FFmpeg, so that nobody needs to find a file.

    \b
    scaletest media make --folder media
    scaletest media make --codec h264 --codec av1 --size 1920x1080 --frames 250

    The same options give the same picture. VP9 has no elementary stream; it comes in IVF, which the
    tools read.
    """
    width, height = _size(size)
    lines = [
        media.make_arguments(name, folder, width, height, frames, rate) for name in codec or CODECS
    ]
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be made: {error.strerror}", hint="give another --folder DIR"
        ) from error
    sizes = {}
    for line, path in lines:
        _ask(line, "can it write there?")
        sizes[path] = Path(path).stat().st_size
    output.show(
        [{"path": path, "bytes": length} for path, length in sizes.items()],
        [f"{path}  {length} bytes" for path, length in sizes.items()],
    )


@command.command("probe")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@shared.output()
def probe(files: tuple[str, ...], output: Output) -> None:
    """Describe the video of files: codec, size, frames, and whether oneVPL's tool can read it.

    \b
    scaletest media probe media/test-h264-320x240-50.h264
    """
    rows = []
    for name in files:
        try:
            with Path(name).open("rb") as stream:
                head = stream.read(media.HEAD_BYTES)
        except OSError as error:
            raise UsageError(
                f"{name} cannot be read: {error.strerror}", hint="give the path of a video file"
            ) from error
        video = media.read_probe(name, _ask(media.probe_arguments(name)), head)
        known_codec = video.codec if video.codec in CODECS else ""
        rows.append((video, media.refusal(name, head, known_codec)))
    lines = []
    for video, hint in rows:
        rate = f", {video.rate:g} frames/s" if video.rate else ""
        form = "elementary" if video.elementary else video.container
        lines.append(
            f"{video.path}: {video.codec} {video.width}x{video.height}, {video.frames}"
            f" frames{rate}, {form}"
        )
        if hint and not output.is_data:
            echo(f"{video.path}: {hint}", err=True)
    output.show([{**asdict(video), "hint": hint} for video, hint in rows], lines)


@command.command("devices")
@heading("Devices")
@shared.preset("List the devices of this vendor. [default: of all]")
@click.option(
    "--device-glob",
    default="",
    metavar="GLOB",
    help="List the devices whose files match this pattern.",
)
@heading("Target")
@shared.redis_url(None)
@click.option(
    "--node", default="", metavar="NAME", help="Show the leases of this node. [default: this host]"
)
@heading("Output")
@shared.output()
def devices(
    preset: str, device_glob: str, redis_url: str | None, node: str, output: Output
) -> None:
    """List devices that workers would find here: identity, who may use them, and the slots that are
    leased.

    \b
    scaletest media devices
    scaletest media devices --device-glob '/dev/dri/renderD*' \\
      --redis-url redis://127.0.0.1:6379/0
    """
    chosen = _devices(preset, device_glob)
    leases = _leases(redis_url, node, chosen) if redis_url else {}
    rows: list[dict[str, object]] = []
    for device in chosen:
        rows.append(
            {
                **asdict(device),
                "group": Path(device.path).stat().st_gid,
                "usable": os.access(device.path, os.R_OK | os.W_OK),
                "leases": [
                    {
                        "slot": lease.number,
                        "worker": lease.worker,
                        "left_s": round(lease.left_s, 3),
                    }
                    for lease in leases.get(device.id, [])
                ],
            }
        )
    lines = []
    for device, row in zip(chosen, rows, strict=True):
        name = " ".join(filter(None, (device.vendor, device.model))) or "unknown"
        usable = "" if row["usable"] else ", not for this user"
        lines.append(f"{device.path}  {device.id}  {name}, group {row['group']}{usable}")
        for lease in leases.get(device.id, []):
            lines.append(f"  slot {lease.number}: {lease.worker}, {lease.left_s:.1f} s left")
    output.show(rows, lines)


def _leases(redis_url: str, node: str, devices: list[Device]) -> dict[str, list[Lease]]:
    """The leases of each device of a node."""
    leases: dict[str, list[Lease]] = {device.id: [] for device in devices}
    with connect(redis_url) as redis:
        for lease in device_leases(redis, node or socket.gethostname(), list(leases)):
            leases[lease.device].append(lease)
    return leases


@command.command("fake-metrics")
@click.option(
    "--listen",
    default="127.0.0.1:9400",
    show_default=True,
    metavar="ADDR:PORT",
    help="Serve the metrics at this address; port 0 means any free port.",
)
@click.option(
    "--vendor",
    multiple=True,
    type=click.Choice(["intel", "nvidia", "amd"]),
    help=("Serve metrics by the names of this vendor; the option may be repeated. [default: all]"),
)
def fake_metrics(listen: str, vendor: tuple[str, ...]) -> None:
    """Serve the simulated devices of this machine as the vendors' exporters would, for
    Prometheus.

    \b
    scaletest media fake-metrics --vendor nvidia  # http://127.0.0.1:9400/metrics
    """
    address, number = parse_address(listen)
    serve(
        address,
        number,
        vendor,
        lambda served: echo(f"serving http://{served}/metrics", err=True),
    )


def _devices(preset: str, device_glob: str) -> list[Device]:
    """Devices of one preset, of a pattern, or of all presets; NoDevice without any."""
    if preset or device_glob:
        return list(DeviceChooser(DeviceOptions(device_glob, preset=preset)).devices())
    by_name: dict[str, Device] = {}
    for name in PRESETS:
        with contextlib.suppress(NoDevice):
            chosen = DeviceChooser(DeviceOptions(preset=name)).devices()
            by_name.update({device.id: device for device in chosen})
    if not by_name:
        raise NoDevice(
            f"this machine has no device of {', '.join(PRESETS)}",
            hint="for other device files: --device-glob PATTERN",
        )
    return list(by_name.values())


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{2,5})x(\d{2,5})", text)
    if not match:
        raise InvalidValue(f"{text!r} is no size", hint="give it as 320x240")
    return int(match[1]), int(match[2])


def _ask(line: list[str], hint: str = "is it a video file?") -> str:
    """What a program writes. UsageError with its own words when it fails."""
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, errors="replace"
        )
    except FileNotFoundError as error:
        raise UsageError(
            f"{line[0]} is not installed", hint="install FFmpeg, as in: apt install ffmpeg"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"{line[0]} took longer than {TIMEOUT_S:g} s", hint="ask for fewer frames"
        ) from error
    if done.returncode:
        reasons = done.stderr.strip().splitlines() or [str(done.returncode)]
        raise UsageError(f"{line[0]} failed: {reasons[-1]}", hint=hint)
    return done.stdout
