"""What a kind of benchmark is: its spec, its parts, the processes of each, and what its tool's output says.

Kinds and executors meet here and nowhere else. An executor asks for the layout, gives each part an address (`Site`),
starts the `Task`s in order, waits for each server to be ready, and hands the measuring one's `Output` to the parser.
A kind knows nothing of how processes are started, an executor nothing of any tool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scaletest.kinds.common import DIFFERENT_NODES, SAME_NODE, CommonSpec

# What of a tool's output goes into an error: the lines that offend, not the log.
MOST_LINES = 8
MOST_CHARACTERS = 200


class Failure(StrEnum):
    """Why a benchmark failed."""

    NONE = ""
    NO_DEVICE = "no_device"
    NO_BINARY = "no_binary"
    EXIT = "exit"
    BAD_OUTPUT = "bad_output"
    MISMATCH = "mismatch"
    TIMED_OUT = "timed_out"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"
    INVALID = "invalid"

    @property
    def unmeasured(self) -> bool:
        """Whether nothing was measured, so that it says nothing of what was to be measured: the run is INVALID."""
        return self in (
            Failure.NO_DEVICE, Failure.NO_BINARY, Failure.REFUSED, Failure.INTERRUPTED, Failure.INVALID,
        )  # fmt: skip

    @property
    def advice(self) -> str:
        """What to do about it where nothing more is known."""
        return _ADVICE[self]


_LOGS = "in logs/ of the run's folder"
_ADVICE = {
    Failure.NONE: "",
    Failure.NO_DEVICE: "run it where there is such a device, or let the spec ask for another",
    Failure.NO_BINARY: "install the program wherever the benchmark runs, or name an image that has it",
    Failure.EXIT: f"mend what the tool complains of, {_LOGS}, and run it again",
    Failure.BAD_OUTPUT: f"read the whole output, {_LOGS}; another version of the tool may be needed",
    Failure.MISMATCH: "change the spec, or whatever made the tool do something else",
    Failure.TIMED_OUT: "raise timeLimit or startLimit, or measure less",
    Failure.REFUSED: "change the spec, or run it elsewhere",
    Failure.INTERRUPTED: "run it again",
    Failure.INVALID: f"mend what its own result names, {_LOGS}, and run it again",
}


class BenchmarkFailed(Exception):
    """A benchmark ended without a result.

    lines: those of the tool's output that tell why. remedy: what to do, "" where it is what the failure always advises.
    """

    def __init__(self, failure: Failure, message: str, lines: Sequence[str] = (), remedy: str = "") -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message
        self.lines = tuple(line.strip()[:MOST_CHARACTERS] for line in lines if line.strip())[:MOST_LINES]
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Headline:
    """A number that stands for a result. unit: bit/s, B/s, 1/s, s, B, or empty for a plain number.

    higher: whether more is better; None when neither is, so that nothing is judged by it.
    """

    name: str
    unit: str
    higher: bool | None
    help: str


@dataclass(frozen=True, slots=True)
class ToolMeasurement:
    """What a parser found. headlines: by name, in their units. result: the whole, bounded in size.

    remote: the peer's address as the tool itself says, "" when it does not.
    """

    headlines: Mapping[str, float]
    result: Mapping[str, Any]
    remote: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What the measuring process wrote, and how it ended. files: those that the task asked to read back."""

    stdout: str
    stderr: str = ""
    exit_code: int = 0

    @property
    def text(self) -> str:
        """Both together."""
        return f"{self.stdout}\n{self.stderr}"


@dataclass(frozen=True, slots=True)
class Part:
    """One process group of a benchmark. node: its place among the nodes that the benchmark uses, from 0."""

    role: str
    index: int
    node: int


@dataclass(frozen=True, slots=True)
class PartAddress:
    """Where a part can be reached. host: its name, for programs that want one."""

    role: str
    index: int
    host: str
    address: str
    folder: str = ""


@dataclass(frozen=True, slots=True)
class ExecutionSite:
    """What an executor offers. agent: how mpirun starts its daemon on another node; python: how Python is called.

    ssh: a configuration of ssh with which the workers are reached, where that is how. programs: paths of programs that
    the executor found or made, by name.
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
    """What one part runs. before: commands that prepare. files: to write into its folder first, by relative path.

    A server is ready when its process listens on `port`, or has written `ready_text`. Relative paths and
    the working directory are those of the part's folder. shared: whether the workers need that folder too, as it is
    after `before`, at the same path.
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
    """A kind of benchmark.

    spec: its dataclass. layout: its parts, of which the one of role `measures` measures. programs: what must be there.
    tasks: what each part runs, servers first; a part without a task only offers its node. parse: reads the measuring
    part's output, raises Failed. limit_s: seconds after which it cannot be right any more. columns: fields of the spec
    that lists show. absent: the headlines that a spec cannot have, each with the reason. scratch_bytes: of files that
    it makes; memory_bytes: that it needs; 0 where neither matters. image: which of the project's images has its tools.
    trusted: whether it always decides what runs, as a field that is `trusted` does.
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
    image: str = "benchmarks"
    trusted: bool = False

    def headline(self, name: str) -> Headline:
        """The headline of that name."""
        return next(one for one in self.headlines if one.name == name)


def server_and_client(spec: CommonSpec) -> tuple[Part, ...]:
    """A server and a client, on two nodes unless one was asked for."""
    return Part("server", 0, 0), Part("client", 0, 0 if spec.placement == SAME_NODE else 1)


def master_and_workers(spec: CommonSpec, workers: int) -> tuple[Part, ...]:
    """A master and workers, each worker on a node of its own unless one node was asked for.

    The master sits beside the first worker, except where no two parts may share a node.
    """

    def node(index: int) -> int:
        return 0 if spec.placement == SAME_NODE else index

    master = workers if spec.placement == DIFFERENT_NODES else 0
    return (*(Part("worker", index, node(index)) for index in range(workers)), Part("master", 0, master))


def bound(spec: CommonSpec, argv: Sequence[str]) -> tuple[str, ...]:
    """The command, bound to the CPUs of the spec."""
    return ("taskset", "--cpu-list", spec.cpu_affinity, *argv) if spec.cpu_affinity else tuple(argv)
