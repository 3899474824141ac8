"""A simulated device's run, and the metrics of this machine's simulated devices over HTTP.

A run takes the device's time by a known law of sharing, so that queues, dashboards, sharing and
scaling laws can be tried without hardware. Runs of one machine see each other by files in a shared
folder, each locked by its run: the kernel drops the lock of a process that dies, so that dead runs
are not counted.

The metrics are one page, read for every scrape.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from typing import IO

from scaletest.kinds.fakedev import (
    VENDORS,
    Annotated,
    FakeWork,
    Use,
    annotated,
    exposition,
    from_words,
)
from scaletest.model import Outcome, Reason, State
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.system.sampler import RequestSampler
from scaletest.system.wake import Wake
from workers.devices import Chosen
from workers.workloads.base import Interrupted, Result, failed, timed_out
from workers.workloads.making import Making

FOLDER_VARIABLE = "SCALETEST_FAKEDEV"
# Where a volume of the downward API shows the pod's own annotations and namespace.
PODINFO_VARIABLE, PODINFO = "SCALETEST_PODINFO", Path("/etc/podinfo")
# How often a run counts the others, and how often it removes dead ones and reports how busy it is.
LOOK_S = 0.02
TELL_S = 0.5


USE_FIELDS = [field.name for field in fields(Use)]


def folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the runs of this machine meet: SCALETEST_FAKEDEV, else a folder of this user."""
    return Path(
        environment.get(FOLDER_VARIABLE)
        or Path(tempfile.gettempdir()) / f"scaletest-fakedev-{os.getuid()}"
    )


def make(making: Making) -> FakeDevice:
    """The workload of a worker."""
    return FakeDevice(
        making.options, making.interrupt, making.sampler, node=making.node, pod=making.pod
    )


class FakeDevice:
    """Runs the worker's description with the request's changes."""

    def __init__(
        self,
        options: tuple[str, ...],
        interrupt: Wake,
        sampler: RequestSampler | None = None,
        *,
        node: str,
        pod: str,
    ) -> None:
        """sampler: None to leave out where the time went."""
        from_words(options)
        self._sampler = sampler
        self._options = options
        self._interrupt = interrupt
        self._node = node
        self._pod = pod
        self._chance = random.Random()

    def run(self, arguments: tuple[str, ...], limit_s: float, device: Chosen | None) -> Result:
        """Take the device's time once. Raises Interrupted."""
        try:
            work = from_words((*self._options, *arguments))
            annotations = _annotations()
        except InvalidValue as error:
            return failed(error)
        work = replace(
            work, memory_mib=annotations.memory_mib(work.memory_mib, work.device_memory_mib)
        )
        use = Use(
            device.device.id if device else "none",
            0.0,
            work.memory_mib,
            work.device_memory_mib,
            self._node,
            self._pod,
            _podinfo("namespace").strip(),
        )
        with _present(folder(), use) as (place, file):
            taken = sum(run.memory_mib for run in uses(place))
            if work.memory_mib and taken > work.device_memory_mib:
                return Result(
                    Outcome.FAILED,
                    Reason.EXIT,
                    error=f"the device is out of memory: {taken} of {work.device_memory_mib} MiB"
                    " wanted",
                    figures={"memory_limit_hits": 1},
                )
            watch = self._sampler.begin() if self._sampler else None
            result = self._work(work, limit_s, use, place, file)
            path = device.device.path if device else ""
            return (
                replace(result, activity=watch.close_own(State.DEVICE, path)) if watch else result
            )

    def close(self) -> None:
        """It keeps no process."""

    def _work(self, work: FakeWork, limit_s: float, use: Use, place: Path, file: IO[str]) -> Result:
        left = max(0.0, work.seconds * self._chance.gauss(1.0, work.jitter))
        first = _first_run(folder())
        began = before = reported = time.monotonic()
        shared, annotations = 0.0, Annotated()
        while left > 0:
            runs = max(1, sum(1 for _ in place.iterdir()))
            speed = work.speed(runs, before - first)
            if self._interrupt.wait(min(LOOK_S, left / speed)):
                raise Interrupted
            now = time.monotonic()
            left -= (now - before) * speed
            shared += (now - before) * runs
            if limit_s and now - began >= limit_s:
                return timed_out(limit_s)
            if now - reported >= TELL_S or reported == began:
                reported = now
                uses(place)
                # annotations may change while the pod runs
                with suppress(InvalidValue):
                    annotations = _annotations()
                chance = self._chance.uniform(-1, 1)
                _tell(file, use, annotations.activity(work.activity(now - began, chance), chance))
            before = now
        if self._chance.random() < work.failure_rate:
            return Result(Outcome.FAILED, Reason.EXIT, 1, "the simulated device failed")
        mean = round(shared / (before - began), 3) if before > began else 1.0
        return Result(Outcome.SUCCEEDED, exit_code=0, figures={"device_runs": mean})


def _podinfo(name: str) -> str:
    try:
        return (Path(os.environ.get(PODINFO_VARIABLE) or PODINFO) / name).read_text(
            encoding="utf-8", errors="replace"
        )
    except OSError:
        return ""


def _annotations() -> Annotated:
    """Parse the pod's annotations; empty without such a file. Raises InvalidValue."""
    return annotated(_podinfo("annotations"))


@contextmanager
def _present(root: Path, use: Use) -> Iterator[tuple[Path, IO[str]]]:
    """A locked file of this run in its device's folder."""
    place = root / use.device.replace("/", "_")
    place.mkdir(parents=True, exist_ok=True)
    # created under a hidden name and renamed when locked and written, so others see it whole
    hidden = root / f".{uuid.uuid4().hex}"
    path = place / f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with hidden.open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _tell(file, use, 0.0)
            hidden.rename(path)
            yield place, file
        finally:
            path.unlink(missing_ok=True)


def _first_run(root: Path) -> float:
    """When this folder's first run began, on the clock that all processes here share."""
    path = root / ".first"
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        if not text:
            text = repr(time.monotonic())
            file.write(text)
    try:
        return min(time.monotonic(), float(text))
    except ValueError as error:
        raise InvalidValue(f"{path} holds no time", hint="remove it") from error


def _tell(file: IO[str], use: Use, activity: float) -> None:
    file.seek(0)
    file.write(json.dumps({**asdict(use), "activity": activity}) + "\n")
    file.flush()
    file.truncate()


def uses(place: Path) -> list[Use]:
    """The runs in a device's folder; files of dead ones are removed."""
    running = []
    for path in place.iterdir() if place.is_dir() else ():
        try:
            with path.open(encoding="utf-8") as file:
                if _is_free(file):
                    path.unlink(missing_ok=True)
                    continue
                by_name = json.loads(file.readline())
                running.append(Use(**{name: by_name[name] for name in USE_FIELDS}))
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
        ):  # the run ended, or its file is being written
            continue
    return running


def all_uses(root: Path) -> list[Use]:
    """The runs on all devices."""
    places = sorted(root.iterdir()) if root.is_dir() else ()
    return list(chain.from_iterable(map(uses, places)))


def _is_free(file: IO[str]) -> bool:
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    return False


def server(host: str, port: int, vendors: Sequence[str] = ()) -> ThreadingHTTPServer:
    """Bind a server that does not serve yet. Raises UsageError when it cannot listen there."""

    class Page(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            if self.path.split("?")[0] != "/metrics":
                self.send_error(404)
                return
            body = exposition(all_uses(folder()), vendors or VENDORS).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Log nothing: scrapes come every few seconds."""

    try:
        return ThreadingHTTPServer((host, port), Page)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error}", hint="choose another --port"
        ) from error


def serve(host: str, port: int, vendors: Sequence[str], ready: Callable[[str], None]) -> None:
    """Serve until interrupted. ready: called with the address."""
    with server(host, port, vendors) as http_server:
        ready(f"{host}:{http_server.server_address[1]}")
        with suppress(KeyboardInterrupt):
            http_server.serve_forever()
