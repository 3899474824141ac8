"""What commands show on a terminal, and to programs, by real processes."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import Client, Queues
from scaletest.model import Request
from tests.conftest import call, eventually, program, wait_for
from tests.unit.valid import checked

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
SHORT = ("validate", "--local", "--limit", "1", "--seconds", "0.05", "--step-time", "1")


class Terminal:
    """A process whose standard error is a terminal, and what it wrote there."""

    def __init__(self, line: list[str], columns: int, stdout: Path) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(columns)
        environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        environment.pop("COLUMNS", None)
        with stdout.open("wb") as out:
            self.process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=out, stderr=theirs, env=environment
            )
        os.close(theirs)
        self._written = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def resize(self, columns: int) -> None:
        """Give the terminal another width."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    @property
    def text(self) -> str:
        """All that was written so far."""
        return bytes(self._written).decode(errors="replace")

    def ended(self, number: int = 0) -> int:
        """Send a signal, 0 for none, and wait for the end; the exit code."""
        if number:
            self.process.send_signal(number)
        code = self.process.wait(120)
        self._reader.join(60)
        return code

    def close(self) -> None:
        """End what still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    def _read(self) -> None:
        # a terminal that nobody holds open any more fails with EIO
        with open(self._ours, "rb", buffering=0, closefd=False) as stream:
            try:
                while chunk := stream.read(4096):
                    self._written += chunk
            except OSError:
                pass


Open = Callable[..., Terminal]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Open]:
    """Starts scaletest on a terminal; it is gone after the test."""
    opened: list[Terminal] = []

    def start(*arguments: str, columns: int = 100) -> Terminal:
        opened.append(Terminal(program(*arguments), columns, tmp_path / "stdout"))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_a_validation_follows_the_width_and_leaves_the_terminal_in_order(
    terminal: Open, tmp_path: Path
) -> None:
    run = str(tmp_path / "run")
    shown = terminal("validate", "--local", "--seconds", "0.2", "--run-dir", run, columns=34)
    eventually(lambda: "step 1 of 8  0%" in shown.text)
    assert "░" not in shown.text
    shown.resize(90)
    eventually(lambda: "░" in shown.text)
    # when it is interrupted, expect it to say so, to end in order and to show the cursor
    assert shown.ended(signal.SIGINT) == 4
    assert "Ctrl-C: stopping after what is running now" in shown.text
    assert shown.text.rindex(SHOW) > shown.text.rindex(HIDE)
    assert "INVALID  interrupted: Ctrl-C" in (tmp_path / "stdout").read_text()


@pytest.mark.parametrize(
    ("number", "said", "code"),
    [(signal.SIGINT, "Ctrl-C again", 130), (signal.SIGTERM, "SIGTERM again: stopping now", 143)],
)
def test_a_second_signal_says_what_it_does_and_shows_the_cursor(
    terminal: Open, tmp_path: Path, number: int, said: str, code: int
) -> None:
    run = tmp_path / "run"
    shown = terminal("validate", "--local", "--seconds", "60", "--run-dir", str(run))
    eventually(lambda: "measuring" in shown.text)
    shown.process.send_signal(signal.SIGINT)
    eventually(lambda: "Ctrl-C: stopping" in shown.text)
    assert shown.ended(number) == code
    assert shown.text.rindex(SHOW) > shown.text.rindex(said)


def test_a_quick_look_leaves_no_line_but_its_own(terminal: Open, tmp_path: Path) -> None:
    shown = terminal("quick", "--limit", "2", "--", "sleep", "0.05")
    assert shown.ended() == 0
    left = shown.text.rpartition("\x1b[2K")[2].replace(SHOW, "").strip()
    assert "step 1 of" in shown.text and not left
    assert len((tmp_path / "stdout").read_text().splitlines()) <= 15


def test_events_are_json_and_the_result_is_apart(tmp_path: Path) -> None:
    run = ("--run-dir", str(tmp_path / "run"), "--format", "json")
    done = call(*SHORT, *run, "--progress", "json")
    events = [checked(json.loads(line), "progress-event") for line in done.stderr.splitlines()]
    assert events[0]["event"] in ("start", "message")
    assert (events[-1]["event"], events[-1]["verdict"]) == (
        "end",
        json.loads(done.stdout)["verdict"]["kind"],
    )
    measured = [event["done"] for event in events if event["event"] == "step_measured"]
    assert measured == [1, 2]


def test_a_quiet_run_says_its_result_only(tmp_path: Path) -> None:
    done = call(*SHORT, "--run-dir", str(tmp_path / "run"), "--progress", "none")
    assert (done.stderr, "saved in" in done.stdout) == ("", True)


@pytest.mark.parametrize("form", ["plain", "json"])
def test_a_run_goes_on_when_nobody_reads_its_progress(tmp_path: Path, form: str) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    line = program(*SHORT, "--run-dir", str(tmp_path / "run"), "--format", "json")
    done = subprocess.run(
        [*line, "--progress", form], stdout=subprocess.PIPE, stderr=writes, timeout=120, check=False
    )
    os.close(writes)
    result = json.loads(done.stdout)
    assert result["verdict"]["kind"] in ("PASS", "INVALID")
    assert done.returncode == {"PASS": 0, "INVALID": 4}[result["verdict"]["kind"]]


def test_a_worker_says_what_it_serves_and_what_it_did(
    terminal: Open, client: Client, queues: Queues, url: str
) -> None:
    arguments = ("--queue", "q", "--redis-url", url, "--name", "w", "--", "sh", "-c")
    shown = terminal("worker", *arguments, "exit $1", "sh")
    eventually(lambda: "queue q  0 done" in shown.text)
    assert "worker w: serving queue q of" in shown.text
    for code in ("0", "0", "3"):
        client.submit_one(Request(client.new_id(), "q", (code,)))
    wait_for(client, 3)
    eventually(lambda: "queue q  3 done  1 failed" in shown.text)
    assert shown.ended(signal.SIGTERM) == 0
    assert "worker w ended: 3 requests in" in shown.text
    assert "(2 succeeded, 1 failed)" in shown.text
    assert shown.text.rindex(SHOW) > shown.text.rindex(HIDE)


def test_a_worker_without_a_terminal_writes_a_line_an_event(
    client: Client, queues: Queues, url: str
) -> None:
    client.submit_one(Request(client.new_id(), "q", ("0",)))
    done = call("worker", "--queue", "q", "--redis-url", url, "--burst", "--name", "w")
    first, last = done.stderr.splitlines()
    assert first == f"worker w: serving queue q of {url}, running sleep"
    assert last.startswith("worker w ended: 1 request in ")


def test_a_client_shows_what_comes_back(
    terminal: Open, start: Any, queues: Queues, url: str, tmp_path: Path
) -> None:
    start()
    load = ("--batch", "3", "--listen", "none", "--redis-url", url, "--", "0.01")
    shown = terminal("client", "--queue", "q", *load)
    assert shown.ended() == 0
    assert (
        f"queue q of {url}" in shown.text.replace("\r\n", "") and "load: batch of 3" in shown.text
    )
    assert "in flight" in shown.text
    assert "Overall request / reply statistics" in (tmp_path / "stdout").read_text()
