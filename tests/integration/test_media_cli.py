"""scaletest media as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker.devices import DeviceLeases
from tests.conftest import call_here


def test_devices_are_listed_with_their_leases(url: str, redis: Any, tmp_path: Path) -> None:
    for name in ("renderD128", "renderD129"):
        (tmp_path / name).touch()
    leases = DeviceLeases(redis, "n1", "w1", interval_s=60.0, nonce="x")
    leases.claim([str(tmp_path / "renderD129")], 4)
    pattern = str(tmp_path / "renderD*")
    done = call_here(
        "media",
        "devices",
        "--device-glob",
        pattern,
        "--redis-url",
        url,
        "--node",
        "n1",
        "--format",
        "json",
    )
    first, second = json.loads(done.stdout)
    assert (first["path"], first["leases"]) == (str(tmp_path / "renderD128"), [])
    assert [(row["slot"], row["worker"]) for row in second["leases"]] == [(0, "w1")]
    table = call_here(
        "media", "devices", "--device-glob", pattern, "--redis-url", url, "--node", "n1"
    )
    assert "slot 0: w1" in table.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("devices", "--device-glob", "/nonexistent*"), "no device matches '/nonexistent*'"),
        (("probe", "/nonexistent"), "cannot be read"),
        (("make", "--size", "big"), "is no size"),
        (("make", "--frames", "0"), "frames"),
    ],
)
def test_errors_are_one_line_without_a_traceback(arguments: tuple[str, ...], text: str) -> None:
    done = call_here("media", *arguments)
    assert done.returncode == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_without_ffmpeg_it_says_what_to_install(tmp_path: Path) -> None:
    done = call_here("media", "make", "--folder", str(tmp_path), env={"PATH": str(tmp_path)})
    assert done.returncode == 2
    assert "ffmpeg is not installed" in done.stderr
