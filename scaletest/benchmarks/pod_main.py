"""Runs one part of a benchmark in a pod: `scaletest bench part` ends up here.

It reads its peers' addresses from files and runs the commands of its kind. A server creates a file
when it is ready, which the pod's readiness probe checks, and runs until it is ended. The measuring
part prints one framed result and then waits, so that its log can be read before its Job is over.
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

from scaletest.benchmarks import gang_scheduling, machine, namespaces, programs, ssh
from scaletest.benchmarks.manifests import DOCUMENT, HOLD_S, PEERS, READY, SCRATCH, start_s
from scaletest.benchmarks.processes import Process, Processes
from scaletest.kinds import network as networks
from scaletest.kinds import parsing
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult, read
from scaletest.kinds.kind import (
    BenchmarkFailed,
    ExecutionSite,
    Failure,
    PartAddress,
    Task,
    ToolMeasurement,
)
from scaletest.kinds.log_framing import frame
from scaletest.model import wire
from scaletest.model.errors import InvalidValue

LOOK_S = 0.2
KEYS, SSH = Path(ssh.MOUNT), Path("/tmp/ssh")


def run(role: str, index: int, folder: Path, scratch: Path, say: Callable[[str], None]) -> int:
    """Run the part and return its exit code. `say` writes to the pod's log."""
    benchmark = read(wire.load((folder / DOCUMENT).read_text("utf-8"), "the benchmark"))
    measures, began = role == benchmark.kind.measures, time.time()
    try:
        ended = _play(benchmark, role, index, folder, scratch)
    except BenchmarkFailed as error:
        ended = BenchmarkResult(
            benchmark.name,
            BenchmarkPhase.FAILED,
            failure=error.failure,
            message=error.message,
            lines=error.lines,
            remedy=error.remedy,
        )
    except OSError as error:
        message = f"{error.filename or 'a file'}: {error.strerror or error}"
        ended = BenchmarkResult(
            benchmark.name, BenchmarkPhase.FAILED, failure=Failure.EXIT, message=message
        )
    where = {**machine.facts(benchmark), **ended.environment}
    ended = replace(ended, environment=where, started_s=began, finished_s=time.time())
    # a server prints its failure too: the benchmark takes its class of failure from there
    say(frame(ended))
    if not measures:
        return 5
    time.sleep(HOLD_S)
    return 0 if ended.ok else 5


def _play(
    benchmark: Benchmark, role: str, index: int, folder: Path, scratch: Path
) -> BenchmarkResult:
    site = replace(_site(benchmark, folder, scratch), programs=programs.find(benchmark))
    measures = role == benchmark.kind.measures
    own = scratch / f"{role}-{index}"
    # processes that the measuring part starts on this pod by ssh begin in the folder of the same
    # name as its own
    for path in (own, scratch / f"{benchmark.kind.measures}-0"):
        path.mkdir(parents=True, exist_ok=True)
    if ssh.wanted(benchmark.kind) and measures:
        site = replace(site, ssh=ssh.client(benchmark, KEYS, SSH))
    task = _task(benchmark, site, role, index)
    limit_s = benchmark.limit_s if measures else start_s(benchmark) + benchmark.limit_s + HOLD_S
    logs = Path("/tmp") / f"logs-{role}-{index}"
    logs.mkdir(exist_ok=True)
    processes = Processes(
        logs, time.monotonic() + limit_s, {**os.environ, "TMPDIR": "/tmp", "LC_ALL": "C"}
    )
    try:
        process = _start(task, processes, own, site)
        if not measures:
            _serve(process, task, processes)
        output = processes.finish(process)
    finally:
        processes.close()
    measured = benchmark.kind.parse(benchmark.spec, output)
    return _checked(benchmark, measured, site)


def _task(benchmark: Benchmark, site: ExecutionSite, role: str, index: int) -> Task:
    """Choose the part's task.

    A part without one keeps its node for the others until it is ended.
    """
    for task in benchmark.kind.tasks(benchmark.spec, site):
        if (task.role, task.index) == (role, index):
            return task
    if ssh.wanted(benchmark.kind):
        return ssh.server(benchmark, site, index, KEYS, SSH)
    Path(READY).touch()
    time.sleep(HOLD_S)
    raise BenchmarkFailed(Failure.TIMED_OUT, "the node was not needed any more")


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
    """Run the copy commands, several at a time. Raises BenchmarkFailed."""
    for first in range(0, len(commands), ssh.AT_ONCE):
        batch = list(enumerate(commands))[first : first + ssh.AT_ONCE]
        for copy in [processes.start(f"copy-{number}", argv, own, {}) for number, argv in batch]:
            parsing.ended_well(processes.finish(copy), "the copy of the case to a worker")


def _serve(process: Process, task: Task, processes: Processes) -> None:
    """Run a server. Raises BenchmarkFailed when it fails.

    A server that ends well, after it has served its client, leaves the pod running: a pod that ends
    before the measurement counts as a failure.
    """
    processes.wait_ready(process, task)
    Path(READY).touch()
    output = processes.finish(process)
    parsing.ended_well(output, process.program)
    time.sleep(HOLD_S)
    raise BenchmarkFailed(Failure.TIMED_OUT, "nobody ended the server")


def _site(benchmark: Benchmark, folder: Path, scratch: Path) -> ExecutionSite:
    """Wait for the peers' addresses and read them. Raises BenchmarkFailed."""
    if all(part.role == benchmark.kind.measures for part in benchmark.kind.layout(benchmark.spec)):
        return ExecutionSite({}, python=(sys.executable,))
    until = time.monotonic() + start_s(benchmark) + gang_scheduling.wait_s(benchmark)
    while not (folder / PEERS).exists():
        if time.monotonic() > until:
            raise BenchmarkFailed(Failure.TIMED_OUT, "the addresses of the peers did not arrive")
        time.sleep(LOOK_S)
    peers: dict[str, list[PartAddress]] = defaultdict(list)
    try:
        for peer in json.loads((folder / PEERS).read_text("utf-8")):
            role, index = peer["role"], int(peer["index"])
            peers[role].append(
                PartAddress(role, index, peer["host"], peer["address"], f"{scratch}/{role}-{index}")
            )
        # no part connects to the measuring part, so its address is not known, only its folder
        measures = benchmark.kind.measures
        peers[measures].append(PartAddress(measures, 0, "", "", f"{scratch}/{measures}-0"))
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidValue(f"{PEERS} cannot be read: {error}") from error
    return ExecutionSite(peers, python=(sys.executable,))


def _checked(
    benchmark: Benchmark, measured: ToolMeasurement, site: ExecutionSite
) -> BenchmarkResult:
    """Build the result with the network that was used.

    Raises BenchmarkFailed when that is not what the spec asks for.
    """
    network, environment = dict[str, Any](), dict[str, Any]()
    address = _first_address(site)
    if address:
        facts = namespaces.route((), address)
        if facts is not None:
            network, environment = facts.to_dict(), {"card": machine.card((), facts.interface)}
            networks.check(benchmark.spec, facts, measured.remote)
        elif benchmark.spec.mtu is not None or benchmark.spec.network_name:
            raise BenchmarkFailed(
                Failure.NO_BINARY,
                "without the program ip it is unknown which network was used",
                remedy="install it, as in: apt install iproute2",
            )
    return BenchmarkResult(
        benchmark.name,
        BenchmarkPhase.COMPLETED,
        measured.headlines,
        measured.result,
        network,
        environment=environment,
        notes=(*measured.notes, *benchmark.kind.notes),
    )


def _first_address(site: ExecutionSite) -> str:
    for peers in site.peers.values():
        for peer in peers:
            if peer.address:
                return peer.address
    return ""


__all__ = ["SCRATCH", "run"]
