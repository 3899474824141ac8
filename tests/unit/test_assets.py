"""Page assets: with npm they are built in, without it the wheel is built all the same."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

import hatch_build


def npm(folder: Path, script: str) -> None:
    """A stand-in for npm."""
    program = folder / "npm"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def target(tmp_path: Path, monkeypatch: Any) -> Path:
    folder = tmp_path / "vendor"
    monkeypatch.setattr(hatch_build, "TARGET", folder)
    monkeypatch.setattr(hatch_build.fetch, "__defaults__", (folder,))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return folder


def test_with_npm_the_files_the_licence_and_the_version_are_there(
    target: Path, tmp_path: Path
) -> None:
    npm(
        tmp_path,
        'test "$1" = ci && mkdir -p node_modules/uplot/dist && cd node_modules/uplot && '
        "echo js >dist/uPlot.iife.min.js && echo css >dist/uPlot.min.css && echo MIT >LICENSE && "
        """echo '{"name": "uplot", "version": "1.2.3", "license": "MIT"}' >package.json""",
    )
    assert hatch_build.ensure("require") == "page assets: uplot 1.2.3"
    assert {path.name for path in target.iterdir()} == {
        "LICENSE",
        "VERSIONS",
        "uPlot.iife.min.js",
        "uPlot.min.css",
    }
    assert (target / "VERSIONS").read_text() == "uplot 1.2.3 MIT\n"


def test_without_npm_or_network_the_build_goes_on_unless_told_otherwise(
    target: Path, tmp_path: Path
) -> None:
    # given what an earlier build left
    target.mkdir()
    (target / "uPlot.iife.min.js").touch()
    npm(tmp_path, "echo no network >&2; exit 1")
    assert "none, pages will show charts drawn by the server" in hatch_build.ensure("")
    assert not target.exists()
    with pytest.raises(hatch_build.NoAssets, match="no network"):
        hatch_build.ensure("require")
    assert hatch_build.ensure("skip") == "page assets: left out"


def test_existing_page_assets_are_kept_on_request(target: Path) -> None:
    assert hatch_build.ensure("keep") == "page assets: left out"
    target.mkdir()
    (target / "VERSIONS").write_text("uplot 1.2.3 MIT\n")
    assert hatch_build.ensure("keep") == "page assets: uplot 1.2.3 MIT"
    assert (target / "VERSIONS").exists()


def test_the_lock_pins_one_version_with_its_hash() -> None:
    lock = json.loads((hatch_build.LOCK / "package-lock.json").read_text())
    wanted = json.loads((hatch_build.LOCK / "package.json").read_text())["dependencies"]
    package = lock["packages"]["node_modules/uplot"]
    assert wanted == {"uplot": package["version"]}
    assert package["integrity"].startswith("sha512-")


def test_no_asset_of_ours_names_another_host() -> None:
    static = Path(__file__).parents[2] / "scaletest" / "web" / "static"
    for path in static.glob("*.*"):
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, path
