"""Runs of real commands, watched: on the page that --ui serves, and elsewhere by way of Redis."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker.run_progress import published
from scaletest.cli.ui import PAGE_PRIORITY
from scaletest.runs.folder import PROGRESS
from scaletest.system import proc
from tests.conftest import Gate, children_of, eventually, need, program
from tests.integration.services import running


class Site:
    """A user with an archive, and the processes that they start."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path, self._stack = path, stack
        self.environment = {**os.environ, "XDG_DATA_HOME": str(path / "data")}
        self.environment.pop("SCALETEST_REDIS_URL", None)

    def start(self, *arguments: str, log: str) -> subprocess.Popen[bytes]:
        with (self.path / log).open("wb") as file:
            process = subprocess.Popen(
                program(*arguments),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=self.environment,
                cwd=self.path,
            )
        self._stack.callback(ended, process)
        return process

    def log(self, name: str) -> str:
        return (self.path / name).read_text()

    def ui(self, *arguments: str, log: str) -> str:
        """Start `scaletest ui`; its URL."""
        self.start("ui", "--listen", "127.0.0.1:0", *arguments, log=log)
        return eventually(lambda: first(r"open (http://\S+)/", self.log(log)))


def ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def first(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1] if match else ""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path, stack)


def page(url: str) -> str:
    """A page; "" while there is none."""
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""


def page_with(url: str, parts: Sequence[str]) -> str:
    """A page that has all of these parts; "" while it has not."""
    text = page(url)
    return text if all(part in text for part in parts) else ""


def eventually_shown(condition: Callable[[], Any]) -> Any:
    """Wait for a page of --ui, whose process has a fortieth of a busy processor: that is against
    what hangs.
    """
    return eventually(condition, 500.0)


VALIDATE = ("validate", "--local", "--limit", "2", "--seconds", "0.2", "--max-step", "3s")


def test_a_validation_is_watched_while_it_runs(site: Site, gate: Gate) -> None:
    report = site.path / "report.html"
    line = (*VALIDATE, "--ui", "--run-dir", str(site.path / "elsewhere"), "-o", str(report))
    command = site.start(*line, "--", *gate.command, log="run")
    url = eventually(
        lambda: first(r"watch it at (http://127\.0\.0\.1:\d+/live/elsewhere)", site.log("run"))
    )
    # while the first requests wait, expect the plan and what is done now
    text = eventually_shown(lambda: "step 1 of about 4" in (text := page(url)) and text)
    assert "<progress" in text
    # the page takes hardly any time from what is measured
    (server,) = (pid for pid, line in children_of(command.pid).items() if "--socket" in line)
    assert os.getpriority(os.PRIO_PROCESS, server) == PAGE_PRIORITY
    gate.open()
    # when steps are complete, expect the report's own charts
    eventually_shown(lambda: "How far it scales" in page(url) or command.poll() is not None)
    assert command.wait() in (0, 3, 4)
    assert "the page of the run is closed" in site.log("run") and page(url) == ""
    assert report.read_text().startswith("<!doctype html>")
    assert not alive(server)


def test_a_run_that_was_killed_is_not_shown_as_running(site: Site, gate: Gate) -> None:
    url = site.ui(log="ui")
    assert "No run is in progress" in page(f"{url}/live")
    command = site.start(*VALIDATE, "--ui", "--", *gate.command, log="run")
    run = eventually(lambda: first(r"/live/(\S+)", site.log("run")))
    eventually(lambda: "step 1 of" in page(f"{url}/live/{run}"))
    (server,) = (pid for pid, line in children_of(command.pid).items() if "--socket" in line)
    command.send_signal(signal.SIGKILL)
    command.wait()
    text = page(f"{url}/live/{run}")
    assert "is gone, and nothing measures it now" in text and "<progress" not in text
    assert "No run is in progress" in page(f"{url}/live")
    # and its own page went with it
    eventually(lambda: not alive(server))


def test_a_run_with_a_redis_is_shown_by_a_ui_elsewhere(
    site: Site, gate: Gate, url: str, redis: Any, tmp_path: Path
) -> None:
    far = tmp_path / "far"
    far.mkdir()
    with ExitStack() as stack:
        other = Site(far, stack)
        here, elsewhere = site.ui(log="ui"), other.ui("--redis-url", url, log="ui")
        command = site.start(*VALIDATE, "--redis-url", url, "--", *gate.command, log="run")
        run = eventually(lambda: [known.run for known in published(redis)])[0]
        # one UI reads the archive, the other one nothing but Redis: expect the progress in both
        for address in (here, elsewhere):
            eventually(lambda: "step 1 of about 4" in page(f"{address}/live/{run}"))  # noqa: B023
            assert f"/live/{run}" in first_address(f"{address}/live")
        gate.open()
        assert command.wait() in (0, 3, 4)
        text = page(f"{elsewhere}/live/{run}")
        assert "The run has ended" in text and f"scaletest report {run}" in text
        assert "RUNNING" not in text
        assert f"/runs/{run}" in page(f"{here}/live/{run}")


def first_address(url: str) -> str:
    """Where a page leads."""
    with urllib.request.urlopen(url, timeout=60) as response:
        return str(response.url)


def alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    return bool(proc.text_of(Path(f"/proc/{pid}/cmdline")))


# More than anybody waits for: it is interrupted.
SEARCH = ("--start", "2", "--step-time", "4s", "--precision", "0.001")


@pytest.mark.parametrize("command", ["saturate", "bench"])
def test_the_report_of_a_run_fills_up_on_its_page(site: Site, command: str) -> None:
    with ExitStack() as stack:
        if command == "saturate":
            service = stack.enter_context(running("--slots", "4"))
            line = ["saturate", service, *SEARCH, "--warm", "0"]
            shown = ["What it can take", "What succeeded"]
        else:
            need("fio")
            line = ["bench", "run", "Fio", "--repetitions", "300"]
            line += ["--set", "size=64m", "--set", "runtime=1s"]
            shown = ["read bandwidth"]
        run, report = site.path / "run", site.path / "report.html"
        line += ["--ui", "--run-dir", str(run), "-o", str(report)]
        process = site.start(*line, log="log")
        url = eventually(lambda: first(r"watch it at (http://\S+)", site.log("log")))
        eventually(lambda: steps_done(run) >= 2)
        # while the command does nothing more, expect the report of what is measured
        process.send_signal(signal.SIGSTOP)
        text = eventually_shown(lambda: page_with(url, shown))
        assert "it is still being measured" in text
        assert "<pre>" in text.partition('data-live="log"')[2]
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 4, site.log("log")
    assert report.read_text().startswith("<!doctype html>")
    assert "the page of the run is closed" in site.log("log") and page(url) == ""


def steps_done(run: Path) -> int:
    """How many steps of a run are complete, as it tells."""
    try:
        return int(json.loads((run / PROGRESS).read_text())["done"])
    except FileNotFoundError:
        return 0
