"""Run benchmarks on this machine: parts as processes, and network namespaces as nodes.

Both ends share the machine's cores and memory. So the results describe its software, never a
network.
"""

import os
import shlex
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from scaletest.benchmarks.documents import Benchmark, BenchmarkPhase, BenchmarkResult, Node
from scaletest.benchmarks.kinds import (
    DIFFERENT_NODES,
    BenchmarkFailed,
    ExecutionSite,
    Failure,
    Part,
    PartAddress,
    ToolOutput,
    fail_if,
    parsing,
)
from scaletest.benchmarks.measure import machine, namespaces, programs, runner
from scaletest.benchmarks.measure.processes import Processes
from scaletest.model import checks, errors
from scaletest.runs.private_files import make_folder

MOST_NODES = 8  # more than one benchmark uses


class LocalExecutor:
    """Runs benchmarks one after the other."""

    def __init__(self, logs: Path | None = None) -> None:
        """Keep the tools' logs in a folder; None: only until a benchmark has ended."""
        self._logs = logs
        self._can_isolate = namespaces.can_create_namespaces()

    def refuse(self, benchmark: Benchmark) -> None:
        """Raise UsageError for a benchmark that needs more than this machine."""
        name, spec = benchmark.name, benchmark.spec
        has_nodes = _uses_several_nodes(benchmark)
        names = [node.name for node in self.nodes()]
        unknown = [node for node in spec.nodes if node not in names]
        checks.raise_first_mistake(
            (
                spec.network_name,
                f"{name}: there is no Multus network {spec.network_name} here",
                "use a cluster",
            ),
            (
                has_nodes
                and (spec.mtu is not None or spec.placement == DIFFERENT_NODES)
                and not self._can_isolate,
                f"{name}: no network namespaces can be created here",
                namespaces.NEEDED,
            ),
            (
                not has_nodes and spec.mtu is not None,
                f"{name}: all parts are on one node, where no interface with an MTU is used",
                "leave mtu out, or use another placement",
            ),
            (
                unknown,
                f"{name}: there is no node {', '.join(unknown)} here",
                f"there are {', '.join(names)}",
            ),
        )

    def nodes(self) -> Sequence[Node]:
        """List nodes that can be created as namespaces."""
        names = [f"node-{index}" for index in range(MOST_NODES)]
        return [Node(name, {"kubernetes.io/hostname": name}) for name in names]

    def run(self, benchmark: Benchmark, on_phase: runner.PhaseListener) -> BenchmarkResult:
        """Run the benchmark to its end."""
        started_s = time.time()
        on_phase(BenchmarkPhase.PREPARING)
        try:
            with tempfile.TemporaryDirectory(
                prefix="scaletest-", ignore_cleanup_errors=True
            ) as folder:
                result = self._measure(benchmark, Path(folder), on_phase)
        except (BenchmarkFailed, errors.UsageError, OSError) as error:
            result = benchmark.failed_by(error)
        on_phase(result.phase)
        return replace(result, started_s=started_s, finished_s=time.time())

    def _measure(
        self, benchmark: Benchmark, folder: Path, on_phase: runner.PhaseListener
    ) -> BenchmarkResult:
        """Create the network, run all parts, parse the result. BenchmarkFailed or UsageError."""
        spec = benchmark.spec
        parts = list(benchmark.kind.layout(spec))
        has_nodes = _uses_several_nodes(benchmark)
        is_isolated = self._can_isolate and has_nodes and not spec.host_network
        _require_room(benchmark, folder)
        paths = programs.find_programs(benchmark, folder)
        # programs append to their logs: those of an attempt that was interrupted are not theirs
        logs = self._logs / benchmark.name if self._logs else folder / "logs"
        if logs.exists():
            shutil.rmtree(logs)
        make_folder(logs)
        with ExitStack() as stack:
            network: namespaces.Network = namespaces.Loopback(spec.ip_family)
            if is_isolated:
                node_count = max(part.node for part in parts) + 1
                network = namespaces.Namespaces(node_count, spec.mtu, spec.ip_family)
                stack.callback(network.close)
            # the limit counts from here: setting the network up is not the benchmark's time
            processes = Processes(
                logs,
                time.monotonic() + benchmark.limit_s,
                {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C"},
            )
            stack.callback(processes.close)
            site = _lay_out_site(parts, network, folder, paths)
            output = _run_parts(benchmark, site, processes, network, on_phase)
            on_phase(BenchmarkPhase.SUMMARISING)
            # the address of a peer, on another node if there is one
            measuring = next(part for part in parts if part.role == benchmark.kind.measures)
            others = [part for part in parts if part is not measuring]
            others.sort(key=lambda part: part.node == measuring.node)
            result = machine.build_result(
                benchmark,
                benchmark.kind.parse(spec, output),
                network.enter(measuring.node),
                network.address(others[0].node) if others else "",
                machine.describe_machine(benchmark),
            )
        notes = result.notes
        if has_nodes and not is_isolated and not spec.host_network:
            notes += (
                "over the loopback interface, since no network namespaces can be created here;"
                f" {namespaces.NEEDED}",
            )
        if getattr(spec, "volume_claim_template", None):
            files_at = getattr(spec, "directory", "") or folder.parent
            notes += (f"the volume claim was not used: the files were in {files_at}",)
        return replace(result, notes=notes)


def _uses_several_nodes(benchmark: Benchmark) -> bool:
    return len({part.node for part in benchmark.kind.layout(benchmark.spec)}) > 1


def _lay_out_site(
    parts: Sequence[Part], network: namespaces.Network, folder: Path, programs: dict[str, str]
) -> ExecutionSite:
    """Make the parts' folders, and the agent that runs a command on a node.

    mpirun calls the agent as it would call ssh: with a host, then a command.
    """
    peers: dict[str, list[PartAddress]] = defaultdict(list)
    agent_lines = ["#!/bin/sh", "host=$1; shift", 'case "$host" in']
    for part in parts:
        place = folder / f"{part.role}-{part.index}"
        place.mkdir()
        host, address = network.host(part.node), network.address(part.node)
        peers[part.role].append(PartAddress(part.role, part.index, host, address, str(place)))
        enter = shlex.join(network.enter(part.node))
        agent_lines.append(f'  {host}) exec {enter} /bin/sh -c "$*" ;;')
    agent = folder / "agent"
    agent.write_text("\n".join([*agent_lines, "esac", "exit 1", ""]), "utf-8")
    agent.chmod(0o755)
    return ExecutionSite(peers, str(agent), (sys.executable,), programs)


def _require_room(benchmark: Benchmark, folder: Path) -> None:
    """Raise BenchmarkFailed for a benchmark that is larger than the machine.

    Without this check it would fail late, and other programs with it.
    """
    # MemAvailable is the kernel's estimate of what can be used without swapping, in KiB
    meminfo = Path("/proc/meminfo").read_text("utf-8").split()
    available_bytes = 1024.0 * int(meminfo[meminfo.index("MemAvailable:") + 1])
    memory_bytes = benchmark.kind.memory_bytes(benchmark.spec)
    fail_if(
        memory_bytes > available_bytes,
        f"the benchmark needs about {memory_bytes / 1e9:.3g} GB of memory, and"
        f" {available_bytes / 1e9:.3g} GB are available",
        failure=Failure.REFUSED,
        remedy="choose a smaller size",
    )
    scratch_bytes = benchmark.kind.scratch_bytes(benchmark.spec)
    free_bytes = shutil.disk_usage(folder).free
    fail_if(
        scratch_bytes > free_bytes,
        f"the benchmark needs {scratch_bytes / 1e9:.3g} GB for files, "
        f"and {folder.parent} has {free_bytes / 1e9:.3g} GB free",
        failure=Failure.REFUSED,
        remedy="choose a smaller size, or another folder: TMPDIR=DIR",
    )


def _run_parts(
    benchmark: Benchmark,
    site: ExecutionSite,
    processes: Processes,
    network: namespaces.Network,
    on_phase: runner.PhaseListener,
) -> ToolOutput:
    """Start the servers one by one until each is ready, then run the measuring part.

    Raises BenchmarkFailed with the output of a server that made the measuring part fail.
    """
    kind = benchmark.kind
    nodes = {(part.role, part.index): part.node for part in kind.layout(benchmark.spec)}
    for task in kind.tasks(benchmark.spec, site):
        name = f"{task.role}-{task.index}"
        folder = Path(site.peers[task.role][task.index].folder)
        enter = network.enter(nodes[task.role, task.index])
        processes.prepare(name, task, folder, enter)
        process = processes.start(name, (*enter, *task.argv), folder, task.environment)
        if task.role != kind.measures:
            processes.wait_ready(process, task)
            continue
        on_phase(BenchmarkPhase.RUNNING)
        output = processes.finish(process)
        # a server that ended knows better why than the client that lost it
        for server in processes.exited() if output.exit_code else ():
            parsing.check_exit(server.output(), server.program)
        return output
    raise BenchmarkFailed(Failure.REFUSED, f"{kind.name} has no part that measures")
