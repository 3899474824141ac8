"""Fixtures of all tiers. A missing service skips with a reason on a laptop and fails in CI."""

import contextlib
import fcntl
import io
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import hypothesis
import pytest

from hack.weekly import PARTS
from scaletest import broker
from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.cli import main
from scaletest.model import Request
from scaletest.model.errors import NoServer
from scaletest.processes import proc
from scaletest.processes.children import python_module
from scaletest.processes.wake import Wake

IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")
# No test asserts a time, those with generated input neither: the machine may be busy.
hypothesis.settings.register_profile(
    "scaletest", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("scaletest")
MISSING = "missing: "
TIERS = {"unit", "integration", "browser", "cluster", "device"}


# What takes longest begins first, or one lane would work on it when the others have nothing left.
# test_install takes definitions of benchmarks away, which waits for objects that test_operator
# leaves: it comes first.
LONGEST = (
    *("real", "test_images", "test_lifecycle", "test_install", "test_operator"),
    *("test_chaos", "test_validate", "test_faults", "test_worker"),
    *("test_client", "test_sharing", "test_bench", "test_cli"),
)
# Of the files that want a real node, those that share one; the others share another.
FIRST_NODE = ("test_jobs.py", "test_operator.py")


def pytest_configure() -> None:
    """A shell that runs the tests in the background has them ignore Ctrl-C, and so all programs
    that they start.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The folder is the tier."""
    for item in items:
        tier = _tier(item)
        assert tier in TIERS, f"{item.path} lies in no tier's folder"
        item.add_marker(tier)
        for marker in item.iter_markers("weekly"):
            # a change of a weekly test is a reason to run its part again
            guards = PARTS[marker.kwargs["part"]].guards
            assert item.nodeid.startswith(guards), f"its part does not guard {item.nodeid}"
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=_turn)


def _tier(item: pytest.Item) -> str:
    """The folder's name below that of all tests; the project may lie in a folder of any name."""
    return item.path.relative_to(Path(__file__).parent).parts[0]


def _turn(item: pytest.Item) -> tuple[int, bool]:
    """What takes longest, then what waits; unit tests, which only compute, fill the gaps at the
    end.
    """
    names = {item.path.parent.name, item.path.stem}
    longest = next((turn for turn, name in enumerate(LONGEST) if name in names), len(LONGEST))
    return longest, _tier(item) == "unit"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter,
) -> Generator[None, None, None]:
    """Say last, below the list of failures, what this machine lacks and how to get it."""
    yield
    marker = f"Skipped: {MISSING}"
    lacking = Counter[str]()
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2]
        if reason.startswith(marker):
            lacking[reason.removeprefix(marker)] += 1
    if lacking:
        names = ", ".join(f"{name} ({count})" for name, count in lacking.most_common())
        terminalreporter.write_line(
            f"{lacking.total()} tests were skipped, since this machine lacks: {names}"
        )
        terminalreporter.write_line("install what they need: ./hack/test --install")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A lane gets a file at a time, or all that share a real node: a small machine bears two of
    those.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Lanes(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = Path(nodeid.split("::")[0])
            if path.parent.name != "real":
                return str(path)
            return "first node" if path.name in FIRST_NODE else "second node"

    return Lanes(config, log)


def missing(requirement: str) -> NoReturn:
    """Skip on a laptop, fail in CI."""
    if IN_CI:
        pytest.fail(f"missing, and CI must have it: {requirement}")
    pytest.skip(MISSING + requirement)


def need(*programs: str) -> str:
    """Return the path of the first of these programs; `missing` when one of them is not there."""
    for name in programs:
        if shutil.which(name) is None:
            missing(name)
    return str(shutil.which(programs[0]))


def eventually(condition: Callable[[], Any], seconds: float = 120.0) -> Any:
    """Wait for a truthy value; it is no race that is waited away but another process's progress.

    Between two looks it rests twice as long as a look takes: what is waited for may need the
    processor.
    """
    deadline = time.monotonic() + seconds
    while True:
        looked = time.monotonic()
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(max(0.02, min(2 * (time.monotonic() - looked), 1.0)))


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """RQ's workers leave their handlers of signals behind, which would take a later Ctrl-C."""
    with _signals():
        yield


@pytest.fixture(autouse=True)
def _loggers() -> Iterator[None]:
    """Every logger is afterwards what it was: commands and RQ's workers set levels and handlers for
    a whole process.
    """
    before = {
        logger: (logger.level, logger.propagate, logger.handlers[:], logger.filters[:])
        for logger in _known()
    }
    yield
    for logger in _known():
        level, propagate, handlers, filters = before.get(logger, (logging.NOTSET, True, [], []))
        if logger.level != level:
            logger.setLevel(level)
        logger.propagate, logger.handlers[:], logger.filters[:] = propagate, handlers, filters


def _known() -> list[logging.Logger]:
    """The loggers that somebody asked for, without the root's, which is pytest's."""
    return [
        logger
        for logger in logging.root.manager.loggerDict.values()
        if isinstance(logger, logging.Logger)
    ]


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedServer]:
    """A real server for the whole session."""
    try:
        started = EmbeddedServer()
        started.start()
    except NoServer as error:
        missing(error.message)
    yield started
    started.stop()


@pytest.fixture
def url(server: EmbeddedServer) -> str:
    """URL of an empty server."""
    redis = connect(server.url)
    redis.flushall()
    redis.close()
    return server.url


@pytest.fixture
def redis(url: str) -> Iterator[Any]:
    """A client of the empty server."""
    client = connect(url)
    yield client
    client.close()


@pytest.fixture
def queues(redis: Any) -> Queues:
    """Queue `q` is declared."""
    queues = Queues(redis)
    queues.add("q")
    return queues


@pytest.fixture
def client(url: str, queues: Queues) -> Iterator[Client]:
    """A client with its own connection."""
    with Client(connect(url), patience_s=20) as client:
        yield client


def program(*arguments: str) -> list[str]:
    """The command line of scaletest as a process."""
    return python_module("scaletest", *arguments)


def call(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run scaletest to its end; the time is against what hangs."""
    return subprocess.run(
        program(*arguments), capture_output=True, text=True, timeout=280, check=False, **options
    )


def call_here(
    *arguments: str, input: str = "", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What `call` does, in this process: for commands that start no threads or processes and set
    nothing that stays.

    A process of its own takes longer to start than most commands run.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        _signals(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "stdin", io.StringIO(input)),
        mock.patch.dict(os.environ, env or {}),
        # what a process says once
        mock.patch.object(broker.queues, "_logged", set()),
        mock.patch.object(broker.connection, "_warned", set()),
    ):
        code = main.run(list(arguments))
    return subprocess.CompletedProcess(arguments, code, *(_read(stream) for stream in (out, err)))


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Commands may handle signals in a way of their own, which ends with them, also where a test
    fails in one.
    """
    before = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _read(stream: io.TextIOWrapper) -> str:
    """All that was written there, with the line ends that a program's reader gets."""
    stream.seek(0)
    return stream.read()


@pytest.fixture
def start(
    url: str, redis: Any, queues: Queues, tmp_path: Path
) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start worker processes; they are gone after the test."""
    started: list[subprocess.Popen[bytes]] = []
    log = (tmp_path / "workers.log").open("ab")

    def run(
        *arguments: str,
        queue: str = "q",
        wait: bool = True,
        shell_prefix: Sequence[str] = (),
        **options: Any,
    ) -> subprocess.Popen[bytes]:
        before = set(Queues(redis).worker_names(queue))
        line = [*shell_prefix, *program("worker", "--queue", queue, "--redis-url", url, *arguments)]
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options
        )
        started.append(process)
        if wait:
            # not that there are more than before: one of those may be dead, and forgotten by now
            eventually(
                lambda: (
                    process.poll() is not None or set(Queues(redis).worker_names(queue)) - before
                )
            )
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
    log.close()


class Gate:
    """Work that takes as long as the test wants, however slow the machine is: a command that waits
    for a lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.command = ("flock", "--shared", self.path, "true")
        self._file = path.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    @property
    def reached(self) -> bool:
        """Whether a program waits at it, and not only a worker that has it on its command line."""
        pids = processes_with("\0".join(self.command))
        return any(proc.read_text(f"/proc/{pid}/comm").strip() == "flock" for pid in pids)

    def open(self) -> None:
        """Let everything through that waits or will come."""
        self._file.close()


@pytest.fixture
def wake() -> Iterator[Wake]:
    """What a worker's thread waits with."""
    wake = Wake()
    yield wake
    wake.close()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A closed gate."""
    gate = Gate(tmp_path / "gate")
    yield gate
    gate.open()


def submit(client: Client, *arguments: str, limit_s: float = 0.0) -> str:
    """A request on queue `q` with these arguments; its id."""
    request = Request(client.new_id(), "q", arguments, limit_s)
    client.submit_one(request)
    return request.id


def wait_for(client: Client, count: int, seconds: float = 240.0) -> dict[str, Any]:
    """Collect this many replies by id; a second reply for an id fails the test."""
    replies: dict[str, Any] = {}
    deadline = time.monotonic() + seconds
    while len(replies) < count:
        left = deadline - time.monotonic()
        assert left > 0, f"{len(replies)} of {count} replies came"
        for reply in client.replies(min(left, 5.0)):
            assert reply.id not in replies, "a second reply was handed over"
            replies[reply.id] = reply
    return replies


def check_books(queues: Queues, **counts: int) -> None:
    """The books of queue `q` balance, with these numbers: of requests that wait or run, or of a
    counter.
    """
    state = queues.state("q")
    known = {**state.counters, "waiting": state.waiting, "running": state.running}
    assert {name: known.get(name, 0) for name in counts} == counts
    assert state.balance == 0, state


def processes_with(text: str) -> list[int]:
    """Ids of living processes whose command line holds the text."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if state != "Z" and text.encode() in (entry / "cmdline").read_bytes():
                    pids.append(int(entry.name))
            except (OSError, IndexError):
                continue
    return pids


def daemon_line(mark: Path) -> str:
    """A line of sh that leaves a process as daemons do, in an empty environment, with its id in
    `mark`.
    """
    inner = f"echo $$ > {mark}.new; mv {mark}.new {mark}; exec sleep 600"
    return (
        f"env -i setsid sh -c '{inner}' > /dev/null 2>&1 & until [ -e {mark} ]; do sleep 0.1; done"
    )


def children_of(parent: int) -> dict[int, str]:
    """Command lines of a process's living children, by id."""
    lines = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent:
                lines[int(entry.name)] = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                )
        except (OSError, IndexError):
            continue
    return lines
