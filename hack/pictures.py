"""Makes the pictures of README and guides: what real runs on this machine look like.

Everything is waited for by what a page shows. A picture that does not come is an error that names
what was waited for.
"""

import argparse
import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

from selenium.common.exceptions import TimeoutException
from selenium.webdriver.support.ui import WebDriverWait

from hack import terminal
from hack.browser import NoBrowser, resize, start
from scaletest.broker import EmbeddedServer

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH, SCALE = 1100, 1.5
# Of pages, in CSS pixels: what is worth seeing of each.
HEIGHTS = {"live": 1150, "report": 1150, "runs": 480, "client": 1000, "overview": 850}
MOST_BYTES = 150_000
QUALITIES = (90, 80, 70, 60, 50)
WAIT_S, RUN_S = 300.0, 900.0
# Exit code of the verdict that has a cause, and how often it is tried for.
FAIL, ATTEMPTS = 3, 3
# Half of its time it holds a lock, so that a third worker brings nothing.
LOCK = Path("/tmp/encoder.lock")
PROGRAM, SCRIPT = "encode.sh", f"#!/bin/sh\nflock {LOCK} sleep 0.1\nsleep 0.1\n"
ENCODE = ("validate", "--limit", "4", "--", f"./{PROGRAM}")
# Requests of a client whose charts have something to show.
ENOUGH = 400
# The queue whose workers have devices.
WITH_DEVICES = "transcode"
# Queue -> seconds of its requests, workers, load.
QUEUES = {
    "thumbnails": ("0.2", 3, ("--poisson", "9/s")),
    "transcode": ("1.1", 4, ("--parallel", "6")),
    "upload": ("0.5", 1, ("--rate", "1/s")),
}


class Studio:
    """A browser, and commands whose runs lie in a folder of their own."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dri-")))
        self._environment = {**os.environ, "XDG_DATA_HOME": str(self.folder / "data")}
        program = self.folder / PROGRAM
        program.write_text(SCRIPT)
        program.chmod(0o755)
        stack.callback(LOCK.unlink, missing_ok=True)
        self.browser = start(self.folder / "profile")
        stack.callback(self.browser.quit)
        self.browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})

    def redis(self) -> str:
        """Start a Redis that ends with the studio, and return its URL."""
        return self._stack.enter_context(EmbeddedServer(tcp=True)).url

    def run(self, *arguments: str) -> str:
        """Run a command of scaletest to its end, whatever its verdict; its standard output."""
        done = subprocess.run(
            _line(arguments),
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode in (1, 2, 7):
            raise SystemExit(f"scaletest {' '.join(arguments)} failed")
        return done.stdout

    def start(self, *arguments: str, announces: str = "") -> tuple[subprocess.Popen[str], str]:
        """Start a command that ends with the studio; wait for the address after these words."""
        process = subprocess.Popen(
            _line(arguments),
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if announces else subprocess.DEVNULL,
            text=True,
        )
        self._stack.callback(_end, process)
        if not announces:
            return process, ""
        assert process.stderr is not None
        for line in process.stderr:
            if announces in line:
                return process, line.partition(announces)[2].split()[0]
        raise SystemExit(f"scaletest {' '.join(arguments)} ended without the words {announces!r}")

    def draw(self, name: str, url: str, script: str) -> None:
        """Open a page, wait until the script is true in it, and keep its picture."""
        resize(self.browser, WIDTH, HEIGHTS[name], scale=SCALE)
        self.browser.get(url)
        try:
            WebDriverWait(self.browser, WAIT_S, 0.5).until(
                lambda browser: browser.execute_script(f"return {script}")
            )
        except TimeoutException:
            raise SystemExit(f"{url} did not come to: {script}") from None
        self._keep(name)

    def _keep(self, name: str) -> None:
        """Keep what the browser shows as a picture of at most MOST_BYTES."""
        for quality in QUALITIES:
            shot = {"format": "webp", "quality": quality}
            answer = self.browser.execute_cdp_cmd("Page.captureScreenshot", shot)
            picture = base64.b64decode(answer["data"])
            if len(picture) <= MOST_BYTES:
                _write(f"{name}.webp", picture)
                return
        raise SystemExit(f"the picture {name} has {len(picture)} bytes: show less")


def _line(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-P", "-m", "scaletest", *arguments]


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _write(name: str, content: bytes) -> None:
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / name).write_bytes(content)
    print(f"docs/pictures/{name}: {len(content) / 1000:.0f} KB")


def draw_terminal(studio: Studio) -> None:
    """Picture a validation that fails, since the workers wait for a lock."""
    for _ in range(ATTEMPTS):
        lines = [line for line in studio.run(*ENCODE).splitlines() if line[:8] != "saved in"]
        if not any(line.startswith("warning:") for line in lines):
            break
        print("the machine was too busy for a picture without a warning", file=sys.stderr)
    shown = [*SCRIPT.splitlines(), f"$ scaletest {' '.join(ENCODE)}", *lines]
    _write("terminal.svg", terminal.picture(f"cat {PROGRAM}", shown).encode())


def draw_run(studio: Studio) -> None:
    """Picture that validation while it is measured, its report, and the list of runs."""
    command, *rest = ENCODE
    for _ in range(ATTEMPTS):
        process, url = studio.start(command, "--ui", *rest, announces="watch it at ")
        studio.draw(
            "live", url, "/speed-up with [24]/.test(document.querySelector('.report').innerText)"
        )
        if process.wait(RUN_S) == FAIL:
            break
        print("the machine was too busy for a verdict", file=sys.stderr)
    page = studio.folder / "report.html"
    studio.run("report", "LAST", "-o", str(page))
    studio.draw("report", page.as_uri(), "document.querySelector('figure svg') !== null")
    _, url = studio.start("ui", "--listen", "127.0.0.1:0", announces="open ")
    studio.draw("runs", f"{url}runs", "document.querySelector('td.verdict') !== null")


def draw_queues(studio: Studio) -> None:
    """Queues at work, as the overview and the page of a client show them."""
    redis = ("--redis-url", studio.redis())
    pages = []
    for queue, (seconds, workers, load) in QUEUES.items():
        studio.run("queue", *redis, "add", queue)
        devices = _devices(studio.folder, workers) if queue == WITH_DEVICES else ()
        for _ in range(workers):
            studio.start("worker", "--queue", queue, *devices, *redis)
        client = ("client", "--queue", queue, *load, "--listen", "127.0.0.1:0", *redis)
        _, page = studio.start(*client, "--", seconds, announces="page and statistics at ")
        pages.append(page)
    _, url = studio.start("ui", "--listen", "127.0.0.1:0", *redis, announces="open ")
    busiest = pages[0]
    WebDriverWait(studio.browser, WAIT_S, 1.0).until(lambda _: _succeeded(busiest) >= ENOUGH)
    charts = "document.querySelectorAll('figure canvas, figure svg').length > 3"
    studio.draw("client", busiest, charts)
    # queues, and workers, all of which are alive
    count = len(QUEUES) + sum(workers for _, workers, _ in QUEUES.values())
    rows = f"document.querySelectorAll('main tbody tr').length >= {count}"
    studio.draw("overview", url, rows)


def _devices(folder: Path, count: int) -> tuple[str, str]:
    """Make files that stand for devices, and return the option that names them."""
    for number in range(count):
        (folder / f"renderD{128 + number}").touch()
    return "--device-glob", str(folder / "renderD*")


def _succeeded(page: str) -> int:
    """How many requests of a client have succeeded."""
    with urllib.request.urlopen(f"{page}api/v1/stats", timeout=10) as answer:
        return int(json.load(answer)["succeeded"])


# In this order runs of the first stand in the list of the second.
DRAWN = {
    draw_terminal: ("terminal",),
    draw_run: ("live", "report", "runs"),
    draw_queues: ("client", "overview"),
}


def main() -> None:
    """Make the pictures that the command line names, or all."""
    known = list(chain.from_iterable(DRAWN.values()))
    parser = argparse.ArgumentParser(prog="hack/pictures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    chosen = set(parser.parse_args().names)
    if unknown := chosen - set(known):
        parser.error(f"there is no picture {', '.join(sorted(unknown))}")
    # what was started ends with this, also when it is ended from outside
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with ExitStack() as stack:
        try:
            studio = Studio(stack)
        except NoBrowser as error:
            raise SystemExit(f"missing: {error}") from None
        for draw, names in DRAWN.items():
            if not chosen or chosen & set(names):
                draw(studio)


if __name__ == "__main__":
    main()
