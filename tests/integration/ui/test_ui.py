"""Runs of real commands, watched on the page that --ui serves; the pages of queues with real
workers, and while their Redis is away, frozen, or somebody else's.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.cli.ui import PAGE_PRIORITY
from scaletest.model import Request
from scaletest.pages.turns import READS
from scaletest.processes import proc
from scaletest.runs.folder import PROGRESS
from scaletest.runs.places import open_run
from scaletest.ui.app import make_app
from scaletest.ui.sources import Sources
from tests.conftest import Gate, children_of, eventually, need, program, wait_for
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
    text = eventually_shown(lambda: "step 1 of 4" in (text := page(url)) and text)
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


def test_a_run_that_was_started_from_the_pages_ends_with_them(site: Site, gate: Gate) -> None:
    command = site.start("ui", "--allow-start", "--listen", "127.0.0.1:0", log="ui")
    url, token = eventually(
        lambda: re.findall(r"open (http://127\.0\.0\.1:\d+)/start#token=(\S+)", site.log("ui"))
    )[0]
    fields = {"token": token, "command": shlex.join(gate.command), "limit": "2"}
    form = urlencode(fields).encode()
    answer = urllib.request.urlopen(
        urllib.request.Request(f"{url}/start", form, {"Origin": url}), timeout=60
    )
    run = answer.url.rpartition("/live/")[2]
    eventually(lambda: "step 1 of" in page(f"{url}/live/{run}"))
    folder = open_run(site.path / "data" / "scaletest" / "runs" / run)
    assert folder is not None and folder.in_use
    # also when the pages are killed
    command.send_signal(signal.SIGKILL)
    command.wait()
    eventually(lambda: not folder.in_use)


def alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    return bool(proc.read_text(Path(f"/proc/{pid}/cmdline")))


# More than anybody waits for: it is interrupted.
SEARCH = ("--start", "2", "--step-time", "4s", "--precision", "0.001")


@pytest.mark.parametrize("command", ["saturate", "bench"])
def test_the_report_of_a_run_fills_up_on_its_page(site: Site, command: str) -> None:
    with ExitStack() as stack:
        if command == "saturate":
            service = stack.enter_context(running("--slots", "4"))
            line = ["saturate", service, *SEARCH, "--warm", "0"]
            shown = ["Capacity", "What succeeded"]
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


READING = ("/", "/queues/q", "/readyz")
NOT_READING = ("/healthz", "/runs", "/style.css")


def plain(page: str) -> str:
    """What a page says, in plain text."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def answer(url: str) -> tuple[int, str]:
    """Status and text of a page."""
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return int(response.status), plain(response.read().decode())
    except urllib.error.HTTPError as error:
        return error.code, plain(error.read().decode())


@pytest.mark.parametrize(
    ("login", "database", "reason", "remedy"),
    [
        ("limited:wrong", 0, "rejects the login", "check user and password in the Redis URL"),
        ("limited:s3cret", 0, "has no permissions to", "give this user of Redis the rights"),
        ("default:", 99, "DB index is out of range", "correct the database"),
    ],
)
def test_a_redis_that_refuses_is_told_with_what_to_do(
    own: EmbeddedServer, tmp_path: Path, login: str, database: int, reason: str, remedy: str
) -> None:
    admin: Any = connect(own.url)
    admin.execute_command("ACL", "SETUSER", "limited", "reset", "on", ">s3cret", "+ping")
    address = own.url.removeprefix("redis://").rpartition("/")[0]
    user = "" if login == "default:" else f"{login}@"
    pages = make_app(Sources(tmp_path, f"redis://{user}{address}/{database}")).test_client()
    for path in READING:
        answered = pages.get(path)
        text = plain(answered.text)
        assert answered.status_code == 503, path
        assert reason in text and "s3cret" not in text
        assert remedy in text or path == "/readyz"
    for path in NOT_READING:
        assert pages.get(path).status_code == 200


def test_another_database_is_not_called_broken(own: EmbeddedServer, tmp_path: Path) -> None:
    pages = make_app(Sources(tmp_path, own.url.rpartition("/")[0] + "/3")).test_client()
    assert "No queue is declared" in plain(pages.get("/").text)
    assert pages.get("/readyz").status_code == 200


def test_a_redis_that_was_away_at_the_start_is_read_when_it_is_there(
    own: EmbeddedServer, tmp_path: Path
) -> None:
    # given pages that were started before their Redis
    own.process.kill()
    own.process.wait()
    with ExitStack() as stack:
        base = Site(tmp_path, stack).ui("--redis-url", own.url, log="ui")
        status, text = answer(base)
        assert status == 503 and "Redis cannot be read" in text and "What to do: start it" in text
        # when it is started, expect its queues without a word to the pages
        own.start()
        Queues(connect(own.url)).add("late")
        eventually(lambda: "late" in answer(base)[1])
        eventually(lambda: answer(f"{base}/readyz")[0] == 200)


def test_a_frozen_redis_keeps_no_other_page_waiting(own: EmbeddedServer, tmp_path: Path) -> None:
    admin: Any = connect(own.url)
    process = admin.info("server")["process_id"]
    with ExitStack() as stack:
        base = Site(tmp_path, stack).ui("--redis-url", own.url, log="ui")
        assert answer(base)[0] == 200
        os.kill(process, signal.SIGSTOP)
        stack.callback(os.kill, process, signal.SIGCONT)
        # (a busy machine may ask so late that none waits any more, and asks again)
        eventually(lambda: others_are_answered_meanwhile(base))
        os.kill(process, signal.SIGCONT)
        eventually(lambda: answer(base)[0] == 200)


def others_are_answered_meanwhile(base: str) -> bool:
    """Ask for more pages than may wait for a frozen Redis, each of which has an answer; whether
    what needs no Redis was answered while they waited.
    """
    with ThreadPoolExecutor(4 * READS) as browsers:
        waiting = [
            browsers.submit(answer, base + READING[n % len(READING)]) for n in range(4 * READS)
        ]
        for path in NOT_READING:
            assert answer(base + path)[0] == 200
        is_meanwhile = not all(page.done() for page in waiting)
        answers = [page.result() for page in waiting]
    assert {status for status, _ in answers} <= {200, 503}
    assert any("cannot be reached: Timeout" in text for _, text in answers)
    return is_meanwhile


Start = Callable[..., Any]


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_a_worker_with_its_device_and_request_is_shown(
    client: Client, url: str, start: Start, site: Site, tmp_path: Path
) -> None:
    # given a worker that holds a slot of a device, and runs the first of two requests
    device = tmp_path / "device"
    device.write_text("")
    base = site.ui("--redis-url", url, log="ui")
    start("--name", "w-1", "--device-glob", str(device), "--", "sleep", "600")
    requests = [Request(client.new_id(), "q") for _ in range(2)]
    client.submit(requests)
    eventually(lambda: Queues(connect(url)).state("q").running == 1)
    row = f"w-1 busy q {requests[0].id}"
    eventually(lambda: row in text_of(page(base)))
    overview = page(base)
    assert str(device) in overview
    assert f"{device} " in text_of(overview.partition("devices-title")[2])
    # expect its queue to have a page
    assert "w-1 busy" in text_of(page(f"{base}/queues/q"))


def test_failures_are_shown_when_their_client_has_the_replies(
    client: Client, url: str, start: Start, site: Site
) -> None:
    base = site.ui("--redis-url", url, log="ui")
    start("--name", "w-1", "--", "sh", "-c", 'echo "no device at 0x$$" >&2; exit 3')
    requests = [Request(client.new_id(), "q") for _ in range(5)]
    client.submit(requests)
    wait_for(client, 5)
    shown = eventually(
        lambda: text if "5 failures" in (text := text_of(page(f"{base}/queues/q"))) else ""
    )
    # expect equal failures in one row
    assert re.search(r"no device at 0x\d+ 5 ", shown)
