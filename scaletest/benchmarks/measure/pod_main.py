"""Runs one part of a benchmark in a pod: `scaletest bench part` ends up here.

It reads its peers' addresses from files and runs the commands of its kind. A server creates a file
when it is ready, which the pod's readiness probe checks, and runs until it is ended. The measuring
part prints one framed result and then waits, so that its log can be read before its Job is over.
"""

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path

import msgspec

from scaletest.benchmarks.documents import Benchmark, BenchmarkResult, frame_result, read_benchmark
from scaletest.benchmarks.kinds import (
    BenchmarkFailed,
    ExecutionSite,
    Failure,
    PartAddress,
    fail_if,
    parsing,
)
from scaletest.benchmarks.measure import machine, programs
from scaletest.benchmarks.measure.processes import Processes
from scaletest.benchmarks.objects import gang_scheduling, ssh
from scaletest.benchmarks.objects.manifests import DOCUMENT, HOLD_S, PEERS, READY, start_s
from scaletest.model import wire
from scaletest.model.errors import InvalidValue

LOOK_S = 0.2
KEYS, SSH = Path(ssh.MOUNT), Path("/tmp/ssh")


def run(role: str, index: int, folder: Path, scratch: Path, say: Callable[[str], None]) -> int:
    """Run the part and return its exit code. `say` writes to the pod's log."""
    benchmark = read_benchmark(wire.load((folder / DOCUMENT).read_text("utf-8"), "the benchmark"))
    began_s = time.time()
    try:
        result = _play(benchmark, role, index, folder, scratch)
    except (BenchmarkFailed, OSError) as error:
        result = benchmark.failed_by(error)
    result = replace(
        result,
        environment={**machine.describe_machine(benchmark), **result.environment},
        started_s=began_s,
        finished_s=time.time(),
    )
    # a server prints its failure too: the benchmark takes its class of failure from there
    say(frame_result(result))
    if role != benchmark.kind.measures:
        return 5
    # so that the log can be read before the Job is over
    time.sleep(HOLD_S)
    return 0 if result.ok else 5


def _play(
    benchmark: Benchmark, role: str, index: int, folder: Path, scratch: Path
) -> BenchmarkResult:
    """Run the part to its end. Raises BenchmarkFailed, always for a part that only serves."""
    site = replace(_site(benchmark, folder, scratch), programs=programs.find_programs(benchmark))
    measures = role == benchmark.kind.measures
    place = scratch / f"{role}-{index}"
    # processes that the measuring part starts on this pod by ssh begin in the folder of the same
    # name as its own
    for path in (place, scratch / f"{benchmark.kind.measures}-0"):
        path.mkdir(parents=True, exist_ok=True)
    if ssh.is_needed(benchmark.kind) and measures:
        site = replace(site, ssh=ssh.client(benchmark, KEYS, SSH))
    tasks = benchmark.kind.tasks(benchmark.spec, site)
    task = next((task for task in tasks if (task.role, task.index) == (role, index)), None)
    if task is None and ssh.is_needed(benchmark.kind):
        task = ssh.server(benchmark, site, index, KEYS, SSH)
    if task is None:
        # keeps its node for the others until it is ended
        Path(READY).touch()
        time.sleep(HOLD_S)
        raise BenchmarkFailed(Failure.TIMED_OUT, "the node was not needed any more")
    limit_s = benchmark.limit_s if measures else start_s(benchmark) + benchmark.limit_s + HOLD_S
    logs = Path("/tmp") / f"logs-{role}-{index}"
    logs.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": "/tmp", "LC_ALL": "C"}
    with closing(Processes(logs, time.monotonic() + limit_s, environment)) as processes:
        processes.prepare("part", task, place)
        if task.shared:
            # run the copy commands, several at a time
            commands = ssh.copies(site, place)
            for first in range(0, len(commands), ssh.AT_ONCE):
                copies = [
                    processes.start(f"copy-{number}", argv, place, {})
                    for number, argv in enumerate(commands[first : first + ssh.AT_ONCE], first)
                ]
                for copy in copies:
                    parsing.check_exit(processes.finish(copy), "the copy of the case to a worker")
        process = processes.start("part", task.argv, place, task.environment)
        if not measures:
            processes.wait_ready(process, task)
            Path(READY).touch()
            parsing.check_exit(processes.finish(process), process.program)
            # one that ended well after it has served leaves the pod running: a pod that ends
            # before the measurement counts as a failure
            time.sleep(HOLD_S)
            raise BenchmarkFailed(Failure.TIMED_OUT, "nobody ended the server")
        output = processes.finish(process)
    addresses = [peer.address for peer in chain.from_iterable(site.peers.values())]
    measured = benchmark.kind.parse(benchmark.spec, output)
    return machine.build_result(benchmark, measured, (), next(filter(None, addresses), ""), {})


def _site(benchmark: Benchmark, folder: Path, scratch: Path) -> ExecutionSite:
    """Wait for the peers' addresses and read them. Raises BenchmarkFailed."""
    if all(part.role == benchmark.kind.measures for part in benchmark.kind.layout(benchmark.spec)):
        return ExecutionSite({}, python=(sys.executable, "-P"))
    until = time.monotonic() + start_s(benchmark) + gang_scheduling.wait_s(benchmark)
    while not (folder / PEERS).exists():
        fail_if(
            time.monotonic() > until,
            "the addresses of the peers did not arrive",
            failure=Failure.TIMED_OUT,
        )
        time.sleep(LOOK_S)
    try:
        known = msgspec.json.decode((folder / PEERS).read_bytes(), type=list[PartAddress])
    except msgspec.MsgspecError as error:
        raise InvalidValue(f"{PEERS} cannot be read: {error}") from error
    peers: dict[str, list[PartAddress]] = defaultdict(list)
    # no part connects to the measuring part, so its address is not known, only its folder
    for peer in (*known, PartAddress(benchmark.kind.measures, 0, "", "")):
        peers[peer.role].append(replace(peer, folder=f"{scratch}/{peer.role}-{peer.index}"))
    return ExecutionSite(peers, python=(sys.executable, "-P"))
