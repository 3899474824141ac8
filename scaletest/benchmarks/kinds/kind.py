"""The interface of a benchmark kind: spec, parts, processes, parser of the tool's output.

Kinds and executors meet only here. An executor takes the layout, gives each part an address
(`ExecutionSite`), starts the `Task`s in order, waits until each server is ready, and passes the
`ToolOutput` of the measuring part to the parser. A kind knows nothing of how processes are started,
an executor nothing of any tool.

All specs have fields for network, placement, pods and limits. Names, defaults and choices of
hostNetwork, networkName, resources, mtu, image and imagePullPolicy are those of kube-perftest's
CRDs, so that its documents can be read; the others are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scaletest.benchmarks.kinds.spec import DIFFERENT_NODES, SAME_NODE, CommonSpec


@dataclass(frozen=True, slots=True)
class Headline:
    """A main number of a result.

    name: in documents and thresholds. label: as people read it. unit: bit/s, B/s, 1/s, s, B, or
    empty for a plain number. higher: whether more is better; None if neither is better, so that
    nothing is judged by it.
    """

    name: str
    label: str
    unit: str
    higher: bool | None
    help: str


@dataclass(frozen=True, slots=True)
class ToolMeasurement:
    """The measurement in a tool's output.

    headlines: by name, in their units. result: details, bounded.

    remote: the peer's address as the tool reports it, "" if it does not.
    """

    headlines: Mapping[str, float]
    result: Mapping[str, Any]
    remote: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """Output and exit code of the measuring process."""

    stdout: str
    stderr: str = ""
    exit_code: int = 0

    @property
    def text(self) -> str:
        """Both outputs, stdout first."""
        return f"{self.stdout}\n{self.stderr}"


@dataclass(frozen=True, slots=True)
class Part:
    """A process group of a benchmark. node: index among the nodes of the benchmark, from 0."""

    role: str
    index: int
    node: int


@dataclass(frozen=True, slots=True)
class PartAddress:
    """Address of a part. host: its name, for programs that need one. folder: its directory."""

    role: str
    index: int
    host: str
    address: str
    folder: str = ""


@dataclass(frozen=True, slots=True)
class ExecutionSite:
    """Addresses and programs that an executor provides for the tasks.

    peers: addresses of the parts by role. agent: program with which mpirun starts its daemon on
    other nodes. python: command line of Python. programs: paths by name. ssh: path of a
    configuration with which ssh reaches the workers, "" without.
    """

    peers: Mapping[str, Sequence[PartAddress]]
    agent: str = ""
    python: tuple[str, ...] = ("python3",)
    programs: Mapping[str, str] = field(default_factory=dict)
    ssh: str = ""

    def address(self, role: str, index: int = 0) -> str:
        """The address of a part."""
        return self.peers[role][index].address


@dataclass(frozen=True, slots=True)
class Task:
    """The command of one part. before: commands to run first. files: text by relative path.

    A server is ready when its process listens on `port`, or has written `ready_text`. Relative
    paths and the working directory refer to the part's folder, where files are written before
    anything runs. shared: whether the workers need that folder too, at the same path, as it is
    after `before`.
    """

    role: str
    index: int
    argv: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    ready_text: str = ""
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """A benchmark kind: one tool.

    spec: its dataclass. layout: parts, of which that with the role `measures` measures.
    programs: required ones. tasks: commands of the parts, servers first; a part without a task
    only provides its node. parse: parses the output of the measuring part, raises
    BenchmarkFailed. limit_s: default time limit in seconds. columns: fields of the spec in
    lists. absent: headlines that a spec cannot have, each with the reason. scratch_bytes: size
    of its files; memory_bytes: required memory; 0 where it does not matter. files: a sentence about
    the files that it lays out, by its spec and its scratch folder; "" without any. here: fields of
    the spec that have another default where it runs on this machine. image: name of the
    project's image with its tools.
    """

    name: str
    plural: str
    help: str
    spec: type[CommonSpec]
    measures: str
    layout: Callable[[Any], Sequence[Part]]
    programs: Callable[[Any], Sequence[str]]
    tasks: Callable[[Any, ExecutionSite], Sequence[Task]]
    parse: Callable[[Any, ToolOutput], ToolMeasurement]
    limit_s: Callable[[Any], float]
    headlines: tuple[Headline, ...]
    columns: tuple[str, ...]
    notes: tuple[str, ...] = ()
    absent: Callable[[Any], Mapping[str, str]] = lambda spec: {}
    scratch_bytes: Callable[[Any], float] = lambda spec: 0.0
    memory_bytes: Callable[[Any], float] = lambda spec: 0.0
    files: Callable[[Any, str], str] = lambda spec, folder: ""
    here: Mapping[str, Any] = field(default_factory=dict)
    image: str = "benchmarks"


def server_and_client(spec: CommonSpec) -> tuple[Part, ...]:
    """Layout of a server and a client, on two nodes unless the spec asks for one."""
    return Part("server", 0, 0), Part("client", 0, 0 if spec.placement == SAME_NODE else 1)


def master_and_workers(spec: CommonSpec, workers: int) -> tuple[Part, ...]:
    """Layout of a master and workers, each on its own node unless the spec asks for one.

    The master shares the node of the first worker, except if no two parts may share a node.
    """

    def node(index: int) -> int:
        return 0 if spec.placement == SAME_NODE else index

    master = workers if spec.placement == DIFFERENT_NODES else 0
    return (
        *(Part("worker", index, node(index)) for index in range(workers)),
        Part("master", 0, master),
    )


def bound(spec: CommonSpec, argv: Sequence[str]) -> tuple[str, ...]:
    """The command line, bound to the CPUs of the spec."""
    if spec.cpu_affinity:
        return ("taskset", "--cpu-list", spec.cpu_affinity, *argv)
    return tuple(argv)
