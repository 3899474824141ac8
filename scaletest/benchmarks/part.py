"""One part of a benchmark in a pod: reads who its peers are from files, runs what its kind says, and tells.

A server says that it is ready by a file, which the pod's probe looks at, and runs until it is ended. The measuring part
prints one framed result and then waits, so that its log can be read before its Job is over.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scaletest.benchmarks import gang, machine, namespaces, programs, ssh
from scaletest.benchmarks.manifests import DOCUMENT, HOLD_S, PEERS, READY, SCRATCH, start_s
from scaletest.benchmarks.processes import Process, Processes
from scaletest.kinds import network as networks
from scaletest.kinds import parsing
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult, read
from scaletest.kinds.kind import BenchmarkFailed, ExecutionSite, Failure, PartAddress, Task, ToolMeasurement
from scaletest.kinds.log_framing import frame
from scaletest.model import wire
from scaletest.model.errors import InvalidValue

LOOK_S = 0.2
KEYS, SSH = Path(ssh.MOUNT), Path("/tmp/ssh")


def run(role: str, index: int, folder: Path, scratch: Path, say: Callable[[str], None]) -> int:
    """Play the part; its exit code. `say` writes to the pod's log."""
    benchmark = read(wire.load((folder / DOCUMENT).read_text("utf-8"), "the benchmark"))
    measures, began = role == benchmark.kind.measures, time.time()
    try:
        ended = _play(benchmark, role, index, folder, scratch)
    except BenchmarkFailed as error:
        ended = BenchmarkResult(
            benchmark.name, BenchmarkPhase.FAILED, failure=error.failure, message=error.message, lines=error.lines,
            remedy=error.remedy,
        )  # fmt: skip
    except OSError as error:
        message = f"{error.filename or 'a file'}: {error.strerror or error}"
        ended = BenchmarkResult(benchmark.name, BenchmarkPhase.FAILED, failure=Failure.EXIT, message=message)
    where = {**machine.facts(benchmark), **ended.environment}
    ended = replace(ended, environment=where, started_s=began, finished_s=time.time())
    # a server's, too: its class of failure is the benchmark's
    say(frame(ended))
    if not measures:
        return 5
    time.sleep(HOLD_S)
    return 0 if ended.ok else 5


def _play(benchmark: Benchmark, role: str, index: int, folder: Path, scratch: Path) -> BenchmarkResult:
    site = replace(_site(benchmark, folder, scratch), programs=programs.find(benchmark))
    kind = benchmark.kind
    own = scratch / f"{role}-{index}"
    # a process that the measuring part starts here begins in a folder of that name
    for one in (own, scratch / f"{kind.measures}-0"):
        one.mkdir(parents=True, exist_ok=True)
    if ssh.wanted(kind) and role == kind.measures:
        site = replace(site, ssh=ssh.client(benchmark, KEYS, SSH))
    found = [one for one in kind.tasks(benchmark.spec, site) if (one.role, one.index) == (role, index)]
    if not found and ssh.wanted(kind):
        found = [ssh.server(benchmark, site, index, KEYS, SSH)]
    if not found:
        Path(READY).touch()
        time.sleep(HOLD_S)
        raise BenchmarkFailed(Failure.TIMED_OUT, "the node was not needed any more")
    measures = role == kind.measures
    limit_s = benchmark.limit_s if measures else start_s(benchmark) + benchmark.limit_s + HOLD_S
    logs = Path("/tmp") / f"logs-{role}-{index}"
    logs.mkdir(exist_ok=True)
    processes = Processes(logs, time.monotonic() + limit_s, {**os.environ, "TMPDIR": "/tmp", "LC_ALL": "C"})
    try:
        process = _start(found[0], processes, own, site)
        if not measures:
            _serve(process, found[0], processes)
        output = processes.finish(process)
    finally:
        processes.close()
    measured = kind.parse(benchmark.spec, output)
    return _checked(benchmark, measured, site)


def _start(task: Task, processes: Processes, own: Path, site: ExecutionSite) -> Process:
    for path, text in task.files.items():
        (own / path).parent.mkdir(parents=True, exist_ok=True)
        (own / path).write_text(text, "utf-8")
    for argv in task.before:
        done = processes.finish(processes.start("before", argv, own, task.environment))
        parsing.ended_well(done, argv[0])
    if task.shared:
        _share(ssh.copies(site, own), processes, own)
    return processes.start("part", task.argv, own, task.environment)


def _share(commands: Sequence[Sequence[str]], processes: Processes, own: Path) -> None:
    """Run the copies, several at a time. Raises Failed."""
    for first in range(0, len(commands), ssh.AT_ONCE):
        some = list(enumerate(commands))[first : first + ssh.AT_ONCE]
        for copy in [processes.start(f"copy-{number}", argv, own, {}) for number, argv in some]:
            parsing.ended_well(processes.finish(copy), "the copy of the case to a worker")


def _serve(process: Process, task: Task, processes: Processes) -> None:
    """Raises Failed when the server ends badly; one that has served its client and ends stays as a part."""
    processes.wait_ready(process, task)
    Path(READY).touch()
    output = processes.finish(process)
    parsing.ended_well(output, process.program)
    time.sleep(HOLD_S)
    raise BenchmarkFailed(Failure.TIMED_OUT, "nobody ended the server")


def _site(benchmark: Benchmark, folder: Path, scratch: Path) -> ExecutionSite:
    """Who the peers are, once it is known. Raises Failed."""
    if all(part.role == benchmark.kind.measures for part in benchmark.kind.layout(benchmark.spec)):
        return ExecutionSite({}, python=(sys.executable,))
    until = time.monotonic() + start_s(benchmark) + gang.wait_s(benchmark)
    while not (folder / PEERS).exists():
        if time.monotonic() > until:
            raise BenchmarkFailed(Failure.TIMED_OUT, "nobody told the addresses of the peers")
        time.sleep(LOOK_S)
    peers: dict[str, list[PartAddress]] = defaultdict(list)
    try:
        for row in json.loads((folder / PEERS).read_text("utf-8")):
            own = f"{scratch}/{row['role']}-{row['index']}"
            peers[row["role"]].append(PartAddress(row["role"], int(row["index"]), row["host"], row["address"], own))
        # nobody looks for the measuring part itself: only its folder is known
        measures = benchmark.kind.measures
        peers[measures].append(PartAddress(measures, 0, "", "", f"{scratch}/{measures}-0"))
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidValue(f"{PEERS} cannot be read: {error}") from error
    return ExecutionSite(peers, python=(sys.executable,))


def _checked(benchmark: Benchmark, measured: ToolMeasurement, site: ExecutionSite) -> BenchmarkResult:
    """The result with the network that was used. Raises Failed when it is not what the spec asks for."""
    used, where = dict[str, Any](), dict[str, Any]()
    peers = [one for role in site.peers.values() for one in role if one.address]
    if peers:
        facts = namespaces.way((), peers[0].address)
        if facts is not None:
            used, where = facts.to_dict(), {"card": machine.card((), facts.interface)}
            networks.check(benchmark.spec, facts, measured.remote)
        elif benchmark.spec.mtu is not None or benchmark.spec.network_name:
            raise BenchmarkFailed(Failure.NO_BINARY, "without the program ip nobody knows which network was used",
                         remedy="install it, as in: apt install iproute2")  # fmt: skip
    kind = benchmark.kind
    return BenchmarkResult(
        benchmark.name, BenchmarkPhase.COMPLETED, measured.headlines, measured.result, used,
        environment=where, notes=(*measured.notes, *kind.notes),
    )  # fmt: skip


__all__ = ["SCRATCH", "run"]
