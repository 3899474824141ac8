"""Services to load, and what a run on a busy machine may say."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scaletest.runs import registry
from scaletest.runs.folder import RunFolder

ROOT = Path(__file__).parents[2]
# Words of the reasons that no busy machine gives: a part of the run was lost, or was never
# measured.
LOSSES = (
    *("interrupted", "cut short", "records with", "not every step was measured"),
    *(
        "no request of the probe succeeded",
        "an agent",
        "followed other rules",
        "did not come to its end",
    ),
)


@contextmanager
def running(*arguments: str) -> Iterator[str]:
    """A service of known capacity; its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hack.service", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
    finally:
        process.kill()
        process.communicate()


@contextmanager
def inference(*arguments: str, module: str = "hack.inference") -> Iterator[str]:
    """A replica of an inference service, or the front of several; its URL without a path."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.communicate()  # it ends with its standard input


class Door(ThreadingHTTPServer):
    """A service whose answers wait for what `act` does at each call."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act
        super().__init__(("127.0.0.1", 0), Knock)


class Knock(BaseHTTPRequestHandler):
    """One request of a load, on a connection that is kept."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        assert isinstance(self.server, Door)
        self.server.act()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


def all_judged(run: Path) -> bool:
    """Whether every measurement of a run may be judged; a busy machine may leave some that may not,
    which ratios and intervals leave out.
    """
    judged: Any = registry.judge_run(RunFolder(run))
    return all(sample.sound for step in judged.result.steps for sample in step.samples)


def check_verdict(code: int, result: dict[str, Any]) -> None:
    """PASS, or INVALID for what else the machine did: a late tester, or too little to tell; but
    nothing is lost.
    """
    verdict = result["verdict"]
    assert (code, verdict["kind"]) in ((0, "PASS"), (4, "INVALID")), verdict
    assert verdict["kind"] == "PASS" or not any(loss in verdict["reason"] for loss in LOSSES), (
        verdict
    )
