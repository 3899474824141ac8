"""What sampling costs: the same workers with and without it in alternation, behind a real queue.

sleep: 8 workers, commands that sleep 0.5 s. script: 8 workers, shell scripts of five commands.
empty: one worker, requests without work, which no sampler sees. ffmpeg: as many workers as cores,
each a short transcode of a made picture, with its threads.
"""

import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.load.closed_loop import ClosedLoop
from scaletest.model import Record
from scaletest.processes.proc import TICKS_PER_S
from scaletest.stats.student import t95

Row = dict[str, Any]
# Beyond the number of workers in flight: the client must not be the limit.
_AHEAD = 2
_SETTLE_S = 1.0
_VIDEO = "testsrc2=size=640x360:rate=25:duration=4"


@dataclass(frozen=True, slots=True)
class CostCase:
    """workers: of each kind. ratio: bounds of the interval of the throughput ratio. cores: most."""

    workers: int
    command: tuple[str, ...]
    ratio: tuple[float, float] = (0.0, math.inf)
    cores: float = math.inf


CASES = {
    "sleep": CostCase(8, ("/bin/sleep", "0.5"), (0.99, 1.01), 0.01),
    "script": CostCase(
        8,
        ("/bin/bash", "-c", "for number in 1 2 3 4 5; do sleep 0.1; done"),
        (0.99, 1.01),
        0.03,
    ),
    "empty": CostCase(1, ("sleep", "0"), (0.97, 1.03)),
    "ffmpeg": CostCase(
        os.cpu_count() or 1,
        (
            "ffmpeg",
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            _VIDEO,
            "-c:v",
            "mpeg4",
            "-threads",
            "4",
            "-f",
            "null",
            "-",
        ),
        cores=0.03,
    ),
}


class WorkerGroup:
    """Workers of one queue, with or without sampling."""

    def __init__(self, url: str, queue: str, case: CostCase, *, sampled: bool, log: Path) -> None:
        self._url, self._queue, self._case = url, queue, case
        self._records: list[Record] = []
        line = [sys.executable, "-m", "scaletest", "worker", "--queue", queue, "--redis-url", url]
        if not sampled:
            line.append("--no-causes")
        line += ["--null-input", "--", *case.command]
        with log.open("ab") as file:
            self._processes = [
                subprocess.Popen(line, stdout=file, stderr=file) for _ in range(case.workers)
            ]

    def measure(self, seconds: float) -> tuple[float, float]:
        """Return requests, and CPU seconds of the workers, a second under a load for so long."""
        self._records.clear()
        with Client(connect(self._url)) as client:
            loop = ClosedLoop(client, self._queue, self._records.append)
            try:
                loop.set_parallel(self._case.workers + _AHEAD)
                time.sleep(_SETTLE_S)
                began, before_s = time.monotonic(), self._cpu_s()
                time.sleep(seconds)
                passed_s, used_s = time.monotonic() - began, self._cpu_s() - before_s
                loop.set_parallel(0)
                ends = sorted(record.reply.ended_s for record in self._records if record.ok)
            finally:
                loop.close()
        # the first second warms up; between two ends of the rest lies a whole number of requests
        counted = [end for end in ends if end >= ends[0] + _SETTLE_S]
        if len(counted) < 2:
            raise RuntimeError(f"{self._queue}: {len(ends)} requests ended")
        return (len(counted) - 1) / (counted[-1] - counted[0]), used_s / passed_s

    def close(self) -> None:
        """End the workers."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(30)

    def _cpu_s(self) -> float:
        """CPU seconds of the workers, without what they ran."""
        return math.fsum(_own_cpu_s(process.pid) for process in self._processes)


def _own_cpu_s(pid: int) -> float:
    """CPU seconds of a process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    user_ticks, system_ticks = fields[11:13]
    return (int(user_ticks) + int(system_ticks)) / TICKS_PER_S


def pairs(name: str, count: int, seconds: float) -> Row:
    """Pairs, alternating which is first; ratio and difference with their 95 % intervals."""
    case = CASES[name]
    ratios: list[float] = []
    cores: list[float] = []
    with _groups(case) as groups:
        for number in range(count):
            sampled_first = bool(number % 2)
            per_s, used_cores = {}, {}
            for sampled in (sampled_first, not sampled_first):
                per_s[sampled], used_cores[sampled] = groups[sampled].measure(seconds)
            ratios.append(per_s[True] / per_s[False])
            cores.append(used_cores[True] - used_cores[False])
    low, high = _interval([math.log(ratio) for ratio in ratios])
    least, most = _interval(cores)
    figures = {
        "cost": name,
        "pairs": count,
        "seconds": seconds,
        "workers": case.workers,
        "ratio": {"value": _mean_ratio(ratios), "low": math.exp(low), "high": math.exp(high)},
        "cores": {"value": statistics.mean(cores), "low": least, "high": most},
    }
    met = (
        case.ratio[0] <= math.exp(low)
        and math.exp(high) <= case.ratio[1]
        and statistics.mean(cores) <= case.cores
    )
    return {**figures, "met": met}


@contextmanager
def _groups(case: CostCase) -> Iterator[dict[bool, WorkerGroup]]:
    """Workers with and without sampling, all ready."""
    with EmbeddedServer(tcp=True) as server, ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scaletest-cost-")))
        queues = Queues(connect(server.url))
        groups = {}
        for sampled, queue in ((True, "sampled"), (False, "plain")):
            queues.add(queue)
            groups[sampled] = WorkerGroup(
                server.url, queue, case, sampled=sampled, log=folder / "log"
            )
            stack.callback(groups[sampled].close)
        deadline = time.monotonic() + 60.0
        while min(len(queues.worker_names(queue)) for queue in ("sampled", "plain")) < case.workers:
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"the workers are not ready: {(folder / 'log').read_text()[-400:]}"
                )
            time.sleep(0.1)
        yield groups


def _interval(values: Sequence[float]) -> tuple[float, float]:
    mean = statistics.mean(values)
    if len(values) < 2:
        return -math.inf, math.inf
    half = t95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean - half, mean + half


def _mean_ratio(ratios: Sequence[float]) -> float:
    return math.exp(statistics.mean(math.log(ratio) for ratio in ratios))
