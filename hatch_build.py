"""Put uPlot from its npm package into the folder of pages when a wheel is built.

It can also be run by hand: python hatch_build.py. The lock file pins version and hash, and npm
checks them. Without npm, or when npm fails, the wheel is built all the same, and pages show the
charts that the server draws. The variable SCALETEST_ASSETS changes that:

    require   a wheel without uPlot is an error
    skip      leave npm alone, and build without uPlot
    keep      take what lies in the folder: where an image is built there is no npm

An editable installation does not ask npm.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent
LOCK = ROOT / "hack" / "assets"
TARGET = ROOT / "scaletest" / "pages" / "static" / "vendor"
FILES = ("dist/uPlot.iife.min.js", "dist/uPlot.min.css", "LICENSE")
NPM_TIMEOUT_S = 120


class NoAssets(Exception):
    """The assets could not be had."""


def fetch(target: Path = TARGET) -> str:
    """Copy the assets into `target`, with their licence and a file that names their version.

    Return the name and version.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise NoAssets("npm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(LOCK / name, folder)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        try:
            result = subprocess.run(
                command,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=NPM_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoAssets(f"npm failed: {error}") from error
        if result.returncode:
            raise NoAssets(f"npm failed: {result.stderr.strip()[-500:]}")
        package = Path(folder) / "node_modules" / "uplot"
        about = json.loads((package / "package.json").read_text("utf-8"))
        version = f"{about['name']} {about['version']}"
        target.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copy(package / name, target)
        (target / "VERSIONS").write_text(f"{version} {about['license']}\n", "utf-8")
    return version


def ensure(wanted: str) -> str:
    """Do what SCALETEST_ASSETS asks for, and return a line about it.

    wanted: "", "keep", "skip" or "require".
    """
    if wanted == "keep":
        versions = TARGET / "VERSIONS"
        kept = versions.read_text("utf-8").strip() if versions.exists() else "left out"
        return f"page assets: {kept}"
    shutil.rmtree(TARGET, ignore_errors=True)  # never ship what an earlier build left
    if wanted == "skip":
        return "page assets: left out"
    try:
        return f"page assets: {fetch()}"
    except NoAssets as error:
        if wanted == "require":
            raise
        return f"page assets: none, pages will show charts drawn by the server ({error})"


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand
    pass
else:

    class AssetsHook(BuildHookInterface):  # type: ignore[type-arg,misc]
        """The hook that hatchling calls."""

        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, object]) -> None:
            """Fetch the assets before the wheel is put together."""
            if version != "editable":
                self.app.display_info(ensure(os.environ.get("SCALETEST_ASSETS", "")))


if __name__ == "__main__":
    print(ensure("require"), file=sys.stderr)  # noqa: T201
