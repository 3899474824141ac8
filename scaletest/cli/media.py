"""scaletest media: make test streams, describe files, list devices and who uses them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from scaletest.cli import options
from scaletest.cli.output import echo
from scaletest.kinds.media import CODECS
from scaletest.model.errors import InvalidValue, NoDevice, UsageError
from scaletest.model.presets import PRESETS

TIMEOUT_S = 600.0


@click.group("media")
def command() -> None:
    """Test media and devices.

    \b
    scaletest media make --folder media
    scaletest media probe FILE
    scaletest media devices --preset intel
    """


@command.command("make")
@click.option("--folder", default=".", show_default=True, metavar="DIR", help="Where the files go.")
@click.option(
    "--codec",
    multiple=True,
    type=click.Choice(CODECS),
    help="Codec to make; may be repeated. [default: all]",
)
@click.option(
    "--size",
    default="320x240",
    show_default=True,
    metavar="WxH",
    help="Width and height in pixels, even numbers.",
)
@click.option(
    "--frames", type=int, default=50, show_default=True, metavar="N", help="Number of frames."
)
@click.option(
    "--rate", type=int, default=25, show_default=True, metavar="N", help="Frames a second."
)
@options.output
def make(
    folder: str, codec: tuple[str, ...], size: str, frames: int, rate: int, output: str
) -> int:
    """Make elementary streams of moving patterns with FFmpeg, so that nobody needs to find a file.

    The same options give the same picture. VP9 has no elementary stream; it comes in IVF, which the
    tools read.
    """
    from scaletest.kinds import media

    width, height = _size(size)
    lines = [
        media.make_arguments(one, folder, width, height, frames, rate) for one in codec or CODECS
    ]
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be made: {error.strerror}", hint="give another --folder DIR"
        ) from error
    made = []
    for line, path in lines:
        _ask(line, "can it write there?")
        made.append({"path": path, "bytes": Path(path).stat().st_size})
    if output != "table":
        options.show(made, output)
    else:
        for row in made:
            echo(f"{row['path']}  {row['bytes']} bytes")
    return 0


@command.command("probe")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options.output
def probe(files: tuple[str, ...], output: str) -> int:
    """Describe the video of files: codec, size, frames, and whether oneVPL's tool can read it."""
    from scaletest.kinds import media

    rows = []
    for name in files:
        try:
            with Path(name).open("rb") as stream:
                head = stream.read(media.HEAD_BYTES)
        except OSError as error:
            raise UsageError(
                f"{name} cannot be read: {error.strerror}", hint="give the path of a video file"
            ) from error
        one = media.read_probe(name, _ask(media.probe_arguments(name)), head)
        rows.append(
            {
                **asdict(one),
                "hint": media.refusal(name, head, one.codec if one.codec in CODECS else ""),
            }
        )
    if output != "table":
        options.show(rows, output)
        return 0
    for row in rows:
        rate = f", {row['rate']:g} frames/s" if row["rate"] else ""
        form = "elementary" if row["elementary"] else row["container"]
        echo(
            f"{row['path']}: {row['codec']} {row['width']}x{row['height']}, {row['frames']}"
            f" frames{rate}, {form}"
        )
        if row["hint"]:
            echo(f"  {row['hint']}", err=True)
    return 0


@command.command("devices")
@click.option(
    "--preset", type=click.Choice(list(PRESETS)), help="Devices of one vendor. [default: of all]"
)
@click.option("--device-glob", default="", metavar="GLOB", help="Other device files.")
@click.option(
    "--redis-url",
    default=None,
    envvar="SCALETEST_REDIS_URL",
    metavar="URL",
    help="Show who leases them.",
)
@click.option(
    "--node", default="", metavar="NAME", help="Node whose leases are shown. [default: this host]"
)
@options.output
def devices(
    preset: str | None, device_glob: str, redis_url: str | None, node: str, output: str
) -> int:
    """List devices that workers would find here: identity, who may use them, and the slots that are
    leased.
    """
    rows = _found(preset, device_glob)
    if redis_url:
        from scaletest.broker import connect
        from scaletest.broker.devices import device_leases

        redis = connect(redis_url)
        for lease in device_leases(
            redis, node or socket.gethostname(), [row["id"] for row in rows]
        ):
            row = next(row for row in rows if row["id"] == lease.device)
            row["leases"].append(
                {"slot": lease.number, "worker": lease.worker, "left_s": round(lease.left_s, 3)}
            )
        redis.close()
    if output != "table":
        options.show(rows, output)
        return 0
    for row in rows:
        name = " ".join(part for part in (row["vendor"], row["model"]) if part) or "unknown"
        usable = "" if row["usable"] else ", not for this user"
        echo(f"{row['path']}  {row['id']}  {name}, group {row['group']}{usable}")
        for lease in row["leases"]:
            echo(f"  slot {lease['slot']}: {lease['worker']}, {lease['left_s']:.1f} s left")
    return 0


@command.command("fake-metrics")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=int, default=9400, show_default=True, help="Port; 0: any.")
@click.option(
    "--vendor",
    multiple=True,
    type=click.Choice(["intel", "nvidia", "amd"]),
    help="Vendor whose names are served. [default: all]",
)
def fake_metrics(host: str, port: int, vendor: tuple[str, ...]) -> int:
    """Serve the simulated devices of this machine as the vendors' exporters would, for
    Prometheus.
    """
    from workers.fakedev_metrics import serve

    serve(host, port, vendor, lambda address: echo(f"serving http://{address}/metrics", err=True))
    return 0


def _found(preset: str | None, device_glob: str) -> list[dict[str, Any]]:
    from workers.devices import DeviceChooser, DeviceOptions

    presets: list[str] = [preset] if preset else [""] if device_glob else list(PRESETS)
    rows: dict[str, dict[str, Any]] = {}
    faults: list[NoDevice] = []
    for name in presets:
        try:
            found = DeviceChooser(DeviceOptions(device_glob, preset=name)).devices()
        except NoDevice as error:
            faults.append(error)
            continue
        for one in found:
            state = Path(one.path).stat()
            usable = os.access(one.path, os.R_OK | os.W_OK)
            rows[one.id] = {**asdict(one), "group": state.st_gid, "usable": usable, "leases": []}
    if not rows:
        if len(faults) == 1:
            raise faults[0]
        raise NoDevice(
            f"no device of {', '.join(presets)} on this node",
            hint="look for other files with --device-glob",
        )
    return list(rows.values())


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
        words = done.stderr.strip().splitlines()
        raise UsageError(f"{line[0]} failed: {words[-1] if words else done.returncode}", hint=hint)
    return done.stdout
