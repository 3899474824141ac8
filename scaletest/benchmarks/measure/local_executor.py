"""The executor for this machine: runs parts as processes, and network namespaces as nodes.

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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from scaletest.benchmarks.documents import Benchmark, BenchmarkPhase, BenchmarkResult, Node
from scaletest.benchmarks.kinds import (
    DIFFERENT_NODES,
    BenchmarkFailed,
    ExecutionSite,
    Failure,
    PartAddress,
    ToolOutput,
    fail_if,
    parsing,
)
from scaletest.benchmarks.measure import machine, namespaces, programs
from scaletest.benchmarks.measure.processes import Processes
from scaletest.benchmarks.measure.runner import PhaseListener
from scaletest.model import checks
from scaletest.model.errors import UsageError
from scaletest.observe.sampler import RequestSampler
from scaletest.runs.private_files import make_folder

NODES = 8
# Share of a core that sampling may take: a benchmark is short and its parts are few.
LOOKS_SHARE = 0.005


class LocalExecutor:
    """Runs benchmarks one after the other."""

    def __init__(self, logs: Path | None = None, *, no_causes: bool = False) -> None:
        """Keep the tools' logs in a folder; no_causes: do not sample where the time goes."""
        self._sampler = None if no_causes else RequestSampler(LOOKS_SHARE)
        self._logs = logs
        self._namespaces = namespaces.available()

    def refuse(self, benchmark: Benchmark) -> None:
        """Raise UsageError for a benchmark that needs more than this machine."""
        name, spec, several = benchmark.name, benchmark.spec, _several(benchmark)
        needs_namespaces = spec.mtu is not None or spec.placement == DIFFERENT_NODES
        names = [node.name for node in self.nodes()]
        unknown = [node for node in spec.nodes if node not in names]
        checks.raise_first_mistake(
            (
                spec.network_name,
                f"{name}: there is no Multus network {spec.network_name} here",
                "use a cluster",
            ),
            (
                several and needs_namespaces and not self._namespaces,
                f"{name}: no network namespaces can be created here",
                namespaces.NEEDED,
            ),
            (
                not several and spec.mtu is not None,
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
        """List nodes that can be created as namespaces; more than one benchmark uses."""
        return [
            Node(f"node-{index}", {"kubernetes.io/hostname": f"node-{index}"})
            for index in range(NODES)
        ]

    def run(self, benchmark: Benchmark, on_phase: PhaseListener) -> BenchmarkResult:
        """Run the benchmark to its end."""
        began_s = time.time()
        on_phase(BenchmarkPhase.PREPARING)
        run = _Run(benchmark, self._namespaces, self._logs, on_phase, self._sampler)
        try:
            with tempfile.TemporaryDirectory(
                prefix="scaletest-", ignore_cleanup_errors=True
            ) as folder:
                result = run.measure(Path(folder))
        except (BenchmarkFailed, UsageError, OSError) as error:
            result = benchmark.failed_by(error)
        on_phase(result.phase)
        return replace(result, started_s=began_s, finished_s=time.time())


class _Run:
    """One run of one benchmark."""

    def __init__(
        self,
        benchmark: Benchmark,
        can_isolate: bool,
        logs: Path | None,
        on_phase: PhaseListener,
        sampler: RequestSampler | None,
    ) -> None:
        self._sampler = sampler
        self._benchmark = benchmark
        self._isolated = can_isolate and _several(benchmark) and not benchmark.spec.host_network
        self._logs = logs / benchmark.name if logs else None
        self._on_phase = on_phase
        self._parts = list(benchmark.kind.layout(benchmark.spec))

    def measure(self, folder: Path) -> BenchmarkResult:
        """Create the network, run all parts, parse the result. BenchmarkFailed or UsageError."""
        benchmark, spec = self._benchmark, self._benchmark.spec
        self._check_room(folder)
        paths = programs.find_programs(benchmark)
        logs = self._logs or folder / "logs"
        # programs append to their logs: those of an attempt that was interrupted are not theirs
        if logs.exists():
            shutil.rmtree(logs)
        make_folder(logs)
        environment = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C"}
        with ExitStack() as stack:
            nodes = max(part.node for part in self._parts) + 1
            network: namespaces.Network = (
                namespaces.Namespaces(nodes, spec.mtu, spec.ip_family)
                if self._isolated
                else namespaces.Loopback(spec.ip_family)
            )
            stack.callback(network.close)
            # setting the network up is not its time
            until = time.monotonic() + benchmark.limit_s
            processes = Processes(logs, until, environment, self._sampler)
            stack.callback(processes.close)
            output = self._run_parts(self._site(network, folder, paths), processes, network, folder)
            self._on_phase(BenchmarkPhase.SUMMARISING)
            measured = benchmark.kind.parse(spec, output)
            # the measuring node's command prefix, and a peer's address
            measuring = next(part for part in self._parts if part.role == benchmark.kind.measures)
            others = [part for part in self._parts if part is not measuring]
            remote = [part for part in others if part.node != measuring.node]
            peer = network.address((remote or others)[0].node) if others else ""
            result = machine.build_result(
                benchmark,
                measured,
                network.enter(measuring.node),
                peer,
                machine.describe_machine(benchmark),
            )
        notes = result.notes
        if _several(benchmark) and not self._isolated and not spec.host_network:
            notes += (
                "over the loopback interface, since no network namespaces can be created here;"
                f" {namespaces.NEEDED}",
            )
        if getattr(spec, "volume_claim_template", None):
            place = getattr(spec, "directory", "") or folder.parent
            notes += (f"the volume claim was not used: the files were in {place}",)
        # where the time of each part went, without the commands that prepared it
        names = [f"{part.role}-{part.index}" for part in self._parts]
        activities = {
            name: processes.activities[name] for name in names if name in processes.activities
        }
        return replace(result, notes=notes, activities=activities)

    def _check_room(self, folder: Path) -> None:
        """Raise BenchmarkFailed for a benchmark that is larger than the machine.

        Without this check it would fail late, and other programs with it.
        """
        kind, spec = self._benchmark.kind, self._benchmark.spec
        # what the kernel estimates
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
        sizes = (
            float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")
        )
        memory, available = kind.memory_bytes(spec), next(sizes, float("inf"))
        fail_if(
            memory > available,
            f"the benchmark needs about {memory / 1e9:.3g} GB of memory, and"
            f" {available / 1e9:.3g} GB are available",
            failure=Failure.REFUSED,
            remedy="choose a smaller size",
        )
        scratch, free = kind.scratch_bytes(spec), shutil.disk_usage(folder).free
        fail_if(
            scratch > free,
            f"the benchmark needs {scratch / 1e9:.3g} GB for files, "
            f"and {folder.parent} has {free / 1e9:.3g} GB free",
            failure=Failure.REFUSED,
            remedy="choose a smaller size, or another folder: TMPDIR=DIR",
        )

    def _site(
        self, network: namespaces.Network, folder: Path, paths: Mapping[str, str]
    ) -> ExecutionSite:
        """Create the parts' folders, and the agent that runs a command on a node."""
        peers: dict[str, list[PartAddress]] = defaultdict(list)
        lines = ["#!/bin/sh", "host=$1; shift", 'case "$host" in']
        for part in self._parts:
            place = folder / f"{part.role}-{part.index}"
            place.mkdir()
            host, address = network.host(part.node), network.address(part.node)
            peers[part.role].append(PartAddress(part.role, part.index, host, address, str(place)))
            enter = shlex.join(network.enter(part.node))
            lines.append(f'  {host}) exec {enter} /bin/sh -c "$*" ;;')
        agent = folder / "agent"
        agent.write_text("\n".join([*lines, "esac", "exit 1", ""]), "utf-8")
        agent.chmod(0o755)
        return ExecutionSite(peers, str(agent), (sys.executable,), paths)

    def _run_parts(
        self, site: ExecutionSite, processes: Processes, network: namespaces.Network, folder: Path
    ) -> ToolOutput:
        """Start the servers one by one until each is ready, then run the measuring part.

        Raises BenchmarkFailed with the output of a server that made the measuring part fail.
        """
        kind = self._benchmark.kind
        nodes = {(part.role, part.index): part.node for part in self._parts}
        for task in kind.tasks(self._benchmark.spec, site):
            name, enter = f"{task.role}-{task.index}", network.enter(nodes[task.role, task.index])
            processes.prepare(name, task, folder / name, enter)
            process = processes.start(name, (*enter, *task.argv), folder / name, task.environment)
            if task.role != kind.measures:
                processes.wait_ready(process, task)
                continue
            self._on_phase(BenchmarkPhase.RUNNING)
            output = processes.finish(process)
            for server in processes.dead() if output.exit_code else ():
                parsing.check_exit(server.output(), server.program)
            return output
        raise BenchmarkFailed(Failure.REFUSED, f"{kind.name} has no part that measures")


def _several(benchmark: Benchmark) -> bool:
    return len({part.node for part in benchmark.kind.layout(benchmark.spec)}) > 1
