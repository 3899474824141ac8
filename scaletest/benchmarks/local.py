"""The local executor: the parts of a benchmark as processes of this machine, its nodes as network namespaces.

Both ends share the machine's cores and memory, so numbers tell what its software can do, never what a network can.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scaletest.archive.private import make_folder
from scaletest.benchmarks import machine, namespaces, programs
from scaletest.benchmarks.executor import Node, Told
from scaletest.benchmarks.processes import Process, Processes
from scaletest.kinds import network as networks
from scaletest.kinds import parsing
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.kinds.common import DIFFERENT_NODES
from scaletest.kinds.kind import BenchmarkFailed, ExecutionSite, Failure, Part, PartAddress, Task, ToolOutput
from scaletest.model.errors import UsageError
from scaletest.system.sampler import RequestSampler

NODES = 8
# Part of a core that looks at where time goes may take: a benchmark is short, and its parts are few.
LOOKS_SHARE = 0.005
_AGENT = "agent"


class LocalExecutor:
    """Runs benchmarks one after the other. scratch: where working folders go. logs: where logs are kept, or None.

    no_causes: leave out where the time of their parts goes.
    """

    # whatever its nodes are called, it is one machine
    side_by_side = False

    def __init__(
        self,
        scratch: Path | None = None,
        logs: Path | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        *,
        no_causes: bool = False,
    ) -> None:
        self._sampler = None if no_causes else RequestSampler(LOOKS_SHARE)
        self._scratch = scratch
        self._logs = logs
        self._environment = dict(os.environ if environment is None else environment)
        self._clock = clock
        self._namespaces = namespaces.available()

    def refuse(self, benchmark: Benchmark) -> None:
        """Raises UsageError for what needs more than this machine."""
        spec, several = benchmark.spec, _several(benchmark)
        if spec.network_name:
            raise UsageError(
                f"{benchmark.name}: there is no Multus network {spec.network_name} here", hint="use a cluster"
            )
        if several and not self._namespaces and (spec.mtu is not None or spec.placement == DIFFERENT_NODES):
            raise UsageError(f"{benchmark.name}: no network namespaces can be made here", hint=namespaces.NEEDED)
        if not several and spec.mtu is not None:
            raise UsageError(
                f"{benchmark.name}: all parts are on one node, where no interface with an MTU is used",
                hint="leave mtu out, or use another placement",
            )
        known = [node.name for node in self.nodes()]
        for name in spec.nodes:
            if name not in known:
                raise UsageError(
                    f"{benchmark.name}: there is no node {name} here", hint=f"there are {', '.join(known)}"
                )

    def nodes(self) -> Sequence[Node]:
        """Namespaces to be: as many as anybody may want to combine."""
        return [Node(f"node-{index}", {"kubernetes.io/hostname": f"node-{index}"}) for index in range(NODES)]

    def close(self) -> None:
        """Nothing stays behind a benchmark."""

    def run(self, benchmark: Benchmark, told: Told) -> BenchmarkResult:
        """Run it to its end."""
        began = self._clock()
        told(BenchmarkPhase.PREPARING)
        found = _Run(benchmark, self._environment, self._namespaces, self._scratch, self._logs, told, self._sampler)
        try:
            with tempfile.TemporaryDirectory(
                prefix="scaletest-", dir=self._scratch, ignore_cleanup_errors=True
            ) as folder:
                ended = found.measure(Path(folder))
        except BenchmarkFailed as error:
            ended = _failed(benchmark, error.failure, error.message, error.lines, error.remedy)
        except UsageError as error:
            ended = _failed(benchmark, Failure.REFUSED, error.message, remedy=error.hint)
        except OSError as error:
            ended = _failed(benchmark, Failure.EXIT, f"{error.filename or 'a file'}: {error.strerror or error}")
        told(ended.phase)
        return _stamped(ended, benchmark, began, self._clock())


class _Run:
    """One benchmark on its way."""

    def __init__(
        self,
        benchmark: Benchmark,
        environment: Mapping[str, str],
        can_isolate: bool,
        scratch: Path | None,
        logs: Path | None,
        told: Told,
        sampler: RequestSampler | None,
    ) -> None:
        self._sampler = sampler
        self._benchmark = benchmark
        self._environment = environment
        self._isolated = can_isolate and _several(benchmark) and not benchmark.spec.host_network
        self._logs = logs / benchmark.name if logs else None
        self._told = told
        self._parts = list(benchmark.kind.layout(benchmark.spec))

    def measure(self, folder: Path) -> BenchmarkResult:
        """Everything from the network to the parsed result. Raises Failed and UsageError."""
        benchmark = self._benchmark
        self._room(folder)
        offered = programs.find(benchmark)
        logs = self._logs or folder / "logs"
        make_folder(logs)
        network = self._network()
        until = time.monotonic() + benchmark.limit_s
        environment = {**self._environment, "TMPDIR": str(folder), "LC_ALL": "C"}
        processes = Processes(logs, until, environment, self._sampler)
        try:
            site = self._site(network, folder, offered)
            output = self._play(site, processes, network, folder)
            self._told(BenchmarkPhase.SUMMARISING)
            measured = benchmark.kind.parse(benchmark.spec, output)
            facts, where = self._facts(network), machine.facts(benchmark)
            if facts:
                where["card"] = machine.card(self._way(network)[0], facts.interface)
        finally:
            processes.close()
            network.close()
        used = facts.to_dict() if facts else {}
        if facts:
            networks.check(benchmark.spec, facts, measured.remote)
        return BenchmarkResult(
            benchmark.name, BenchmarkPhase.COMPLETED, measured.headlines, measured.result, used, where,
            notes=(*measured.notes, *benchmark.kind.notes, *self._notes()), activities=self._activities(processes),
        )  # fmt: skip

    def _activities(self, processes: Processes) -> dict[str, dict[str, Any]]:
        """Where the time of each part went, without what prepared it."""
        names = [f"{part.role}-{part.index}" for part in self._parts]
        known = processes.activities
        return {name: known[name].to_dict() for name in names if name in known}

    def _room(self, folder: Path) -> None:
        """Files and memory of a benchmark that is larger than the machine would fail late, and take others with it."""
        memory, there = self._benchmark.kind.memory_bytes(self._benchmark.spec), _memory()
        if memory > there:
            raise BenchmarkFailed(
                Failure.REFUSED,
                f"about {memory / 1e9:.3g} GB of memory are wanted, and {there / 1e9:.3g} GB are available",
                remedy="choose a smaller size",
            )
        wanted, free = self._benchmark.kind.scratch_bytes(self._benchmark.spec), shutil.disk_usage(folder).free
        if wanted > free:
            raise BenchmarkFailed(
                Failure.REFUSED,
                f"{wanted / 1e9:.3g} GB of files are wanted, and {folder.parent} has {free / 1e9:.3g} GB free",
                remedy="choose a smaller size, or another --scratch",
            )

    def _network(self) -> namespaces.Network:
        spec = self._benchmark.spec
        if not self._isolated:
            return namespaces.Loopback(spec.ip_family)
        return namespaces.Namespaces(max(part.node for part in self._parts) + 1, spec.mtu, spec.ip_family)

    def _notes(self) -> list[str]:
        if _several(self._benchmark) and not self._isolated and not self._benchmark.spec.host_network:
            return [f"over the loopback interface, since no network namespaces can be made here; {namespaces.NEEDED}"]
        return []

    def _site(self, network: namespaces.Network, folder: Path, offered: Mapping[str, str]) -> ExecutionSite:
        peers: dict[str, list[PartAddress]] = defaultdict(list)
        for part in self._parts:
            own = folder / f"{part.role}-{part.index}"
            own.mkdir()
            peers[part.role].append(
                PartAddress(part.role, part.index, network.host(part.node), network.address(part.node), str(own))
            )
        agent = folder / _AGENT
        lines = [
            f'  {network.host(part.node)}) exec {shlex.join(network.enter(part.node))} /bin/sh -c "$*" ;;'
            for part in self._parts
        ]
        agent.write_text(
            '#!/bin/sh\nhost=$1; shift\ncase "$host" in\n' + "\n".join(lines) + "\nesac\nexit 1\n", "utf-8"
        )
        agent.chmod(0o755)
        return ExecutionSite(peers, str(agent), (sys.executable,), offered)

    def _play(self, site: ExecutionSite, processes: Processes, network: namespaces.Network, folder: Path) -> ToolOutput:
        """Start the servers, wait for each, and let the measuring one run to its end."""
        kind = self._benchmark.kind
        for task in kind.tasks(self._benchmark.spec, site):
            process = self._start(task, processes, network, folder)
            if task.role == kind.measures:
                self._told(BenchmarkPhase.RUNNING)
                output = processes.finish(process)
                self._blame(output, processes)
                return output
            processes.wait_ready(process, task)
        raise BenchmarkFailed(Failure.REFUSED, f"{kind.name} has no part that measures")

    def _start(self, task: Task, processes: Processes, network: namespaces.Network, folder: Path) -> Process:
        name = f"{task.role}-{task.index}"
        own, part = folder / name, self._part(task)
        for path, text in task.files.items():
            (own / path).parent.mkdir(parents=True, exist_ok=True)
            (own / path).write_text(text, "utf-8")
        enter = network.enter(part.node)
        for argv in task.before:
            done = processes.finish(processes.start(f"{name}-before", [*enter, *argv], own, task.environment))
            parsing.ended_well(done, argv[0])
        return processes.start(name, [*enter, *task.argv], own, task.environment)

    def _blame(self, output: ToolOutput, processes: Processes) -> None:
        """When the measuring part failed because a server did, the server's words say why."""
        if output.exit_code:
            for server in processes.dead():
                parsing.ended_well(server.output(), server.program)

    def _part(self, task: Task) -> Part:
        return next(part for part in self._parts if (part.role, part.index) == (task.role, task.index))

    def _facts(self, network: namespaces.Network) -> networks.Network | None:
        """Interface, family and MTU on the way from the measuring part to its peer, as the kernel says."""
        enter, peer = self._way(network)
        return namespaces.way(enter, peer) if peer else None

    def _way(self, network: namespaces.Network) -> tuple[Sequence[str], str]:
        """How the measuring part's network is entered, and a peer's address; "" where there is none."""
        own = next(part for part in self._parts if part.role == self._benchmark.kind.measures)
        others = [part for part in self._parts if part.node != own.node] or [
            part for part in self._parts if part is not own
        ]
        return network.enter(own.node), network.address(others[0].node) if others else ""


def _memory() -> float:
    """Bytes that the kernel takes for available."""
    for line in Path("/proc/meminfo").read_text("utf-8").splitlines():
        if line.startswith("MemAvailable:"):
            return float(line.split()[1]) * 1024
    return float("inf")


def _several(benchmark: Benchmark) -> bool:
    return len({part.node for part in benchmark.kind.layout(benchmark.spec)}) > 1


def _failed(
    benchmark: Benchmark, failure: Failure, message: str, lines: Sequence[str] = (), remedy: str = ""
) -> BenchmarkResult:  # fmt: skip
    return BenchmarkResult(
        benchmark.name, BenchmarkPhase.FAILED, failure=failure, message=message, lines=tuple(lines), remedy=remedy
    )


def _stamped(ended: BenchmarkResult, benchmark: Benchmark, began: float, finished: float) -> BenchmarkResult:
    return replace(
        ended, started_s=began, finished_s=finished, permutation=benchmark.permutation, repetition=benchmark.repetition
    )
