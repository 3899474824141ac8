"""The interface of a benchmark kind: parts, their processes, and the parser of the tool's output.

Kinds and executors meet only here. An executor takes the layout, gives each part an address
(`ExecutionSite`), starts the `Task`s in order, waits until each server is ready, and passes the
`ToolOutput` of the measuring part to the parser. A kind knows nothing of how processes are started,
an executor nothing of any tool.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scaletest.benchmarks.kinds.spec import DIFFERENT_NODES, SAME_NODE, CommonSpec

# The API group of the documents of kinds, in files and in clusters.
GROUP, VERSION = "scaletest.dev", "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"


@dataclass(frozen=True, slots=True)
class Headline:
    """A main number of a result."""

    name: str  # in documents and thresholds
    label: str  # as people read it
    unit: str  # bit/s, B/s, 1/s, s, B, or "" for a plain number
    higher: bool | None  # whether more is better; None if nothing is judged by it
    help: str


@dataclass(frozen=True, slots=True)
class ToolMeasurement:
    """The measurement in a tool's output."""

    headlines: Mapping[str, float]  # by name, in their units
    result: Mapping[str, Any]  # details, bounded in size
    remote: str = ""  # the peer's address as the tool reports it, "" if it does not
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
    """A process group of a benchmark."""

    role: str
    index: int
    node: int  # index among the nodes of the benchmark, from 0


@dataclass(frozen=True, slots=True)
class PartAddress:
    """Address of a part."""

    role: str
    index: int
    host: str  # its name, for programs that need one
    address: str
    folder: str = ""


@dataclass(frozen=True, slots=True)
class ExecutionSite:
    """Addresses and programs that an executor provides for the tasks."""

    # addresses of the parts, by role
    peers: Mapping[str, Sequence[PartAddress]]
    # program with which mpirun starts its daemon on other nodes
    agent: str = ""
    # command line of Python
    python: tuple[str, ...] = ("python3",)
    # paths of programs, by name
    programs: Mapping[str, str] = field(default_factory=dict)
    # path of a configuration with which ssh reaches the workers, "" without
    ssh: str = ""

    def address(self, role: str, index: int = 0) -> str:
        """Return the address of a part."""
        return self.peers[role][index].address


@dataclass(frozen=True, slots=True)
class Task:
    """The command of one part.

    A server is ready when its process listens on `port`, or has written `ready_text`. Relative
    paths and the working directory refer to the part's folder.
    """

    role: str
    index: int
    argv: tuple[str, ...]
    # commands to run first
    before: tuple[tuple[str, ...], ...] = ()
    # texts by relative path, written before anything runs
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    ready_text: str = ""
    # whether the workers need the part's folder too, at the same path, as it is after `before`
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """A benchmark kind: one tool. Its functions take a spec of its class."""

    name: str
    plural: str
    help: str
    spec: type[CommonSpec]
    # role of the part that measures
    measures: str
    layout: Callable[[Any], Sequence[Part]]
    # programs that must be installed
    programs: Callable[[Any], Sequence[str]]
    # commands of the parts, servers first; a part without a task only provides its node
    tasks: Callable[[Any, ExecutionSite], Sequence[Task]]
    # parses the output of the measuring part; raises BenchmarkFailed
    parse: Callable[[Any, ToolOutput], ToolMeasurement]
    # default time limit in seconds
    limit_s: Callable[[Any], float]
    headlines: tuple[Headline, ...]
    # fields of the spec in lists
    columns: tuple[str, ...]
    notes: tuple[str, ...] = ()
    # size of its files and memory that it needs; 0 where it does not matter
    scratch_bytes: Callable[[Any], float] = lambda spec: 0.0
    memory_bytes: Callable[[Any], float] = lambda spec: 0.0
    # fields with another default where the kind is named, without a document, on one machine
    here: Mapping[str, Any] = field(default_factory=dict)
    # name of the project's image with its tools
    image: str = "benchmarks"


def server_and_client(spec: CommonSpec) -> tuple[Part, ...]:
    """Lay out a server and a client, on two nodes unless the spec asks for one."""
    return Part("server", 0, 0), Part("client", 0, 0 if spec.placement == SAME_NODE else 1)


def master_and_workers(spec: CommonSpec, workers: int) -> tuple[Part, ...]:
    """Lay out a master and workers, each on its own node unless the spec asks for one.

    The master shares the node of the first worker, except if no two parts may share a node.
    """
    parts = [
        Part("worker", index, 0 if spec.placement == SAME_NODE else index)
        for index in range(workers)
    ]
    return (*parts, Part("master", 0, workers if spec.placement == DIFFERENT_NODES else 0))


def bind_to_cpus(spec: CommonSpec, argv: Sequence[str]) -> tuple[str, ...]:
    """Bind a command line to the CPUs of the spec."""
    binding = ("taskset", "--cpu-list", spec.cpu_affinity) if spec.cpu_affinity else ()
    return (*binding, *argv)
