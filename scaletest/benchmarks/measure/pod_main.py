"""Run one part of a benchmark in a pod, for `scaletest bench part`.

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
    Task,
    fail_if,
    parsing,
)
from scaletest.benchmarks.measure import machine, programs
from scaletest.benchmarks.measure.processes import Processes
from scaletest.benchmarks.objects import manifests, ssh
from scaletest.model import errors, wire

SECRET_FOLDER = Path(ssh.MOUNT)  # the key as the Secret has it
SSH_FOLDER = Path("/tmp/ssh")  # the key as ssh takes it, and settings
POLL_S = 0.2


def run(role: str, index: int, folder: Path, scratch: Path, say: Callable[[str], None]) -> int:
    """Run the part and return its exit code. `say` writes to the pod's log."""
    benchmark = read_benchmark(
        wire.load((folder / manifests.DOCUMENT).read_text("utf-8"), "the benchmark")
    )
    started_s = time.time()
    try:
        result = _run_part(benchmark, role, index, folder, scratch)
    except (BenchmarkFailed, OSError) as error:
        result = benchmark.failed_by(error)
    result = replace(
        result,
        environment={**machine.describe_machine(benchmark), **result.environment},
        started_s=started_s,
        finished_s=time.time(),
    )
    # a server prints its failure too: the benchmark takes its class of failure from there
    say(frame_result(result))
    if role != benchmark.kind.measures:
        return 5
    # so that the log can be read before the Job is over
    time.sleep(manifests.KEEP_POD_S)
    return 0 if result.ok else 5


def _run_part(
    benchmark: Benchmark, role: str, index: int, folder: Path, scratch: Path
) -> BenchmarkResult:
    """Run the part to its end. Raises BenchmarkFailed, always for a part that only serves."""
    site = _wait_for_site(benchmark, folder, scratch)
    site = replace(site, programs=programs.find_programs(benchmark, scratch))
    measures = role == benchmark.kind.measures
    place = scratch / f"{role}-{index}"
    # processes that the measuring part starts on this pod by ssh begin in the folder of the same
    # name as its own
    for path in (place, scratch / f"{benchmark.kind.measures}-0"):
        path.mkdir(parents=True, exist_ok=True)
    if ssh.is_needed(benchmark.kind) and measures:
        site = replace(site, ssh=ssh.write_client_config(benchmark, SECRET_FOLDER, SSH_FOLDER))
    task = _find_task(benchmark, site, role, index)
    if task is None:
        # keeps its node for the others until it is ended
        Path(manifests.READY).touch()
        time.sleep(manifests.KEEP_POD_S)
        raise BenchmarkFailed(Failure.TIMED_OUT, "the node was no longer needed")
    limit_s = (
        benchmark.limit_s
        if measures
        else manifests.start_limit_s(benchmark) + benchmark.limit_s + manifests.KEEP_POD_S
    )
    logs = Path(f"/tmp/logs-{role}-{index}")
    logs.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": "/tmp", "LC_ALL": "C"}
    with closing(Processes(logs, time.monotonic() + limit_s, environment)) as processes:
        processes.prepare("part", task, place)
        if task.shared:
            _copy_to_workers(processes, site, place)
        process = processes.start("part", task.argv, place, task.environment)
        if not measures:
            processes.wait_ready(process, task)
            Path(manifests.READY).touch()
            parsing.check_exit(processes.finish(process), process.program)
            # one that ended well after it has served leaves the pod running: a pod that ends
            # before the measurement counts as a failure
            time.sleep(manifests.KEEP_POD_S)
            raise BenchmarkFailed(Failure.TIMED_OUT, "nobody ended the server")
        output = processes.finish(process)
    addresses = [peer.address for peer in chain.from_iterable(site.peers.values())]
    return machine.build_result(
        benchmark,
        benchmark.kind.parse(benchmark.spec, output),
        enter=(),
        peer=next(filter(None, addresses), ""),
        environment={},
    )


def _find_task(benchmark: Benchmark, site: ExecutionSite, role: str, index: int) -> Task | None:
    """Return a part's task: the kind's, else an SSH server for the measuring part, else None."""
    for task in benchmark.kind.tasks(benchmark.spec, site):
        if (task.role, task.index) == (role, index):
            return task
    if ssh.is_needed(benchmark.kind):
        return ssh.server_task(benchmark, site, index, SECRET_FOLDER, SSH_FOLDER)
    return None


def _copy_to_workers(processes: Processes, site: ExecutionSite, place: Path) -> None:
    """Copy a folder to the workers, to several at a time. Raises BenchmarkFailed."""
    commands = ssh.copy_commands(site, place)
    for first in range(0, len(commands), ssh.COPIES_AT_ONCE):
        copies = [
            processes.start(f"copy-{number}", argv, place, {})
            for number, argv in enumerate(commands[first : first + ssh.COPIES_AT_ONCE], first)
        ]
        for copy in copies:
            parsing.check_exit(processes.finish(copy), "the copy of the case to a worker")


def _wait_for_site(benchmark: Benchmark, folder: Path, scratch: Path) -> ExecutionSite:
    """Wait for the peers' addresses and read them. Raises BenchmarkFailed."""
    if all(part.role == benchmark.kind.measures for part in benchmark.kind.layout(benchmark.spec)):
        return ExecutionSite({}, python=(sys.executable, "-P"))
    until_s = time.monotonic() + manifests.start_limit_s(benchmark)
    while not (folder / manifests.PEERS).exists():
        fail_if(
            time.monotonic() > until_s,
            "the addresses of the peers did not arrive",
            failure=Failure.TIMED_OUT,
        )
        time.sleep(POLL_S)
    try:
        servers = msgspec.json.decode(
            (folder / manifests.PEERS).read_bytes(), type=list[PartAddress]
        )
    except msgspec.MsgspecError as error:
        raise errors.InvalidValue(f"{manifests.PEERS} cannot be read: {error}") from error
    peers: dict[str, list[PartAddress]] = defaultdict(list)
    # no part connects to the measuring part, so its address is not known, only its folder
    for peer in (*servers, PartAddress(benchmark.kind.measures, 0, "", "")):
        peers[peer.role].append(replace(peer, folder=f"{scratch}/{peer.role}-{peer.index}"))
    return ExecutionSite(peers, python=(sys.executable, "-P"))
