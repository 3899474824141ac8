"""Bar: from `pip install` to the scaling curve in a browser in two commands, in under two minutes.

A clean folder gets a new environment, which is not counted. The first command installs scaletest
from this checkout; pip may have its cache, so installing is reported on its own. The second one
measures with --ui, and a headless Chromium opens the address that it prints. The picture is there
when the page shows the curve with a measured point, at the latest when the run is over. Prints a
line of JSON.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hack import browser as chromium
from hack.benchmarks.saturation import report

ROOT = Path(__file__).parents[2]
MEASURE = ("validate", "--local", "--ui", "--", "sleep", "0.2")
CURVE, MOST_S = "How far it scales", 120.0
# A curve has two measured points, and its legend one more.
LEAST_POINTS = 3
# The dots of the chart below that heading, as their colours are drawn.
POINTS = """
const titles = [...document.querySelectorAll('h2')];
const title = titles.find(row => row.textContent.includes(arguments[0]));
const section = title && title.parentElement;
const marks = section ? [...section.querySelectorAll('svg.chart circle')] : [];
return marks.filter(mark => mark.getBoundingClientRect().width > 0).length;
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, help="where the page is kept as a PNG")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="scaletest-first-") as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        installed_s = seconds_of([f"{folder}/venv/bin/pip", "install", "-q", f"{ROOT}[embedded]"])
        address_s, picture_s, points = first_picture(folder, options.picture)
    total_s = installed_s + picture_s
    figures = {
        "install_s": round(installed_s, 1),
        "address_s": round(address_s, 1),
        "picture_s": round(picture_s, 1),
        "total_s": round(total_s, 1),
        "points": points,
        "command": " ".join(("scaletest", *MEASURE)),
    }
    return report("first-picture", points >= LEAST_POINTS and total_s < MOST_S, **figures)


def seconds_of(line: list[str]) -> float:
    """How long a command takes that must succeed."""
    began_s = time.monotonic()
    subprocess.run(line, check=True)
    return time.monotonic() - began_s


def first_picture(folder: Path, picture: Path | None) -> tuple[float, float, int]:
    """Seconds until the address is printed and until the curve is drawn, and its points."""
    environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data")}
    for variable in ("SCALETEST_REDIS_URL", "PYTHONPATH"):
        environment.pop(variable, None)
    browser = chromium.start(folder / "profile")
    log = folder / "log"
    began_s = time.monotonic()
    with log.open("w") as output:
        command = subprocess.Popen(
            [f"{folder}/venv/bin/scaletest", *MEASURE],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        address, points = "", 0
        while not address and command.poll() is None:
            match = re.search(r"watch it at (http://\S+)", log.read_text())
            address = match[1] if match else ""
            time.sleep(0.05)
        if not address:
            raise SystemExit(f"error: the command ended without a page:\n{log.read_text()}")
        address_s = time.monotonic() - began_s
        browser.get(address)
        # the page renews itself
        while points < LEAST_POINTS and command.poll() is None:
            points = browser.execute_script(POINTS, CURVE)
            time.sleep(0.05)
        picture_s = time.monotonic() - began_s
        if picture is not None:
            browser.save_screenshot(str(picture))
        return address_s, picture_s, points
    finally:
        command.terminate()
        command.wait(60)
        browser.quit()


if __name__ == "__main__":
    sys.exit(main())
