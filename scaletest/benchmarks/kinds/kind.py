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
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from scaletest.model.checks import refuse
from scaletest.model.declared import aliases, choice, text
from scaletest.model.writing import Written, members

SAME_NODE, DIFFERENT_NODES, SPREAD = "sameNode", "differentNodes", "spread"
PLACEMENTS = (SPREAD, SAME_NODE, DIFFERENT_NODES)
TCP, RDMA = "TCP", "RDMA"
NO_GANG, VOLCANO = "none", "volcano"
CPUS = r"|\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*"


class Spec(Written):
    """A spec, or a part of one, as people and Kubernetes write it."""

    camel_case = True

    def to_dict(self) -> dict[str, Any]:
        """The document, without what is as by default."""
        written = super().to_dict()
        for member in members(type(self)):
            if getattr(self, member.attribute) == member.default:
                del written[member.name]
        return written


@dataclass(frozen=True, kw_only=True)
class PodOverrides(Spec):
    """Changes to the pods of a benchmark, or of one of its parts."""

    labels: Annotated[Mapping[str, str], "Labels added to the pods."] = field(default_factory=dict)
    annotations: Annotated[Mapping[str, str], "Annotations added to the pods."] = field(
        default_factory=dict
    )
    node_selector: Annotated[Mapping[str, str], "Labels that the node must have."] = field(
        default_factory=dict
    )
    node_affinity: Annotated[Mapping[str, Any], "Node affinity, as in a pod's spec."] = field(
        default_factory=dict
    )
    tolerations: Annotated[tuple[Mapping[str, Any], ...], "Tolerations, as in a pod's spec."] = ()
    resources: Annotated[Mapping[str, Any], "Requests and limits of these pods only."] = field(
        default_factory=dict
    )


@dataclass(frozen=True, kw_only=True)
class CommonSpec(Spec):
    """Spec with the fields of every kind."""

    host_network: Annotated[bool, "Use the node's network instead of the pod's own."] = False
    network_name: Annotated[
        str,
        text(r"|[a-z0-9.-]+(/[a-z0-9.-]+)?", "namespace/name"),
        "Multus network of the pods, as namespace/name; ignored with hostNetwork.",
    ] = ""
    resources: Annotated[
        Mapping[str, Any], "Requests and limits of the benchmark's containers."
    ] = field(default_factory=dict)
    mtu: Annotated[
        Annotated[int, Meta(ge=68, le=65535)] | None,
        "MTU of the interface inside the pod, in bytes; ignored with hostNetwork. The result has"
        " the one that was used.",
    ] = None
    image: Annotated[str, "Image of the benchmark; empty: the kind's default."] = ""
    image_pull_policy: Annotated[
        str | None,
        choice(("Always", "IfNotPresent", "Never")),
        "When the image is pulled; not set: the operator's choice.",
    ] = None
    scheduler_name: Annotated[
        str,
        text(r"|[a-z0-9.-]{1,253}", "a name"),
        "Scheduler of the pods; empty: the operator's choice.",
    ] = ""
    ip_family: Annotated[
        str, choice(("IPv4", "IPv6")), "Family of the addresses that the peers use."
    ] = "IPv4"
    placement: Annotated[
        str,
        choice(PLACEMENTS),
        "Where the parts run: spread over nodes when there are several, all on one node, or never"
        " two on one node.",
    ] = SPREAD
    nodes: Annotated[
        tuple[str, ...], "Names of the nodes to use, in the order of the parts; empty: any nodes."
    ] = ()
    cpu_affinity: Annotated[
        str,
        text(CPUS, "CPUs as in 0-3,8"),
        "CPUs that the tool's processes are bound to, such as 0-3,8.",
    ] = ""
    time_limit: Annotated[
        int, Meta(ge=0), "Seconds after which the benchmark fails; 0: the kind's default."
    ] = 0
    start_limit: Annotated[
        int, Meta(ge=0), "Seconds, in a cluster, by which all parts must have started; 0: 600."
    ] = 0
    gang: Annotated[
        str,
        choice((NO_GANG, VOLCANO)),
        "volcano: Volcano places all parts together or none; none: servers start before the"
        " measuring part.",
    ] = NO_GANG
    queue_name: Annotated[
        str,
        text(r"|[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", "a name"),
        "Volcano's queue of the gang; empty: its default one.",
    ] = ""
    queue_limit: Annotated[
        int, Meta(ge=0), "Seconds, in a cluster, by which a gang must be admitted; 0: 86400, a day."
    ] = 0
    paused: Annotated[bool, "Do not start the benchmark until this is false."] = False
    pods: Annotated[PodOverrides, "Changes to all pods of the benchmark."] = PodOverrides()

    def __post_init__(self) -> None:
        refuse(
            (
                self.mtu is not None and self.mtu < 1280 and self.ip_family == "IPv6",
                f"mtu {self.mtu} is too small for IPv6",
                "IPv6 needs 1280 (RFC 8200)",
            ),
            (
                self.queue_name and self.gang == NO_GANG,
                f"queueName {self.queue_name} has no effect without a gang",
                "set gang to volcano",
            ),
            (
                self.queue_limit and self.gang == NO_GANG,
                "queueLimit has no effect without a gang",
                "set gang, or use startLimit",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class PairSpec(CommonSpec):
    """Spec of a benchmark with a server and a client."""

    server: Annotated[PodOverrides, "Changes to the server's pod."] = PodOverrides()
    client: Annotated[PodOverrides, "Changes to the client's pod."] = PodOverrides()


@dataclass(frozen=True, kw_only=True)
class CrowdSpec(CommonSpec):
    """Spec of a benchmark with a master that measures, and workers."""

    master: Annotated[PodOverrides, "Changes to the master's pod."] = PodOverrides()
    worker: Annotated[PodOverrides, "Changes to the workers' pods."] = PodOverrides()


@dataclass(frozen=True, kw_only=True)
class MpiSpec(CrowdSpec):
    """Spec of a benchmark with a master that starts MPI processes on workers."""

    ssh_port: Annotated[int, Meta(ge=1, le=65535), "Port of the SSH servers of the workers."] = 2222
    transport: Annotated[
        str,
        choice((TCP, RDMA)),
        aliases({"tcp": TCP, "rdma": RDMA}),
        "Transport of MPI: TCP, or RDMA by UCX.",
    ] = TCP


# Limits for the lines of a tool's output in an error.
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

    @property
    def unmeasured(self) -> bool:
        """Whether the subject was not measured at all, so that the run is INVALID."""
        return self in _UNMEASURED

    @property
    def advice(self) -> str:
        """General advice for this failure."""
        return _ADVICE[self]


_UNMEASURED = (
    Failure.NO_DEVICE,
    Failure.NO_BINARY,
    Failure.REFUSED,
    Failure.INTERRUPTED,
)
_LOGS = "in logs/ of the run's folder"
_ADVICE = {
    Failure.NONE: "",
    Failure.NO_DEVICE: "run it where there is such a device, or set another device in the spec",
    Failure.NO_BINARY: (
        "install the program wherever the benchmark runs, or name an image that has it"
    ),
    Failure.EXIT: f"correct what the tool complains about, {_LOGS}, and run it again",
    Failure.BAD_OUTPUT: (
        f"read the whole output, {_LOGS}; another version of the tool may be needed"
    ),
    Failure.MISMATCH: "change the spec, or what made the tool use other settings",
    Failure.TIMED_OUT: "raise timeLimit or startLimit, or measure less",
    Failure.REFUSED: "change the spec, or run it elsewhere",
    Failure.INTERRUPTED: "run it again",
}


class BenchmarkFailed(Exception):
    """A benchmark failed.

    lines: the relevant ones of the tool's output. remedy: what to do, "" for the failure's
    general advice.
    """

    def __init__(
        self, failure: Failure, message: str, lines: Sequence[str] = (), remedy: str = ""
    ) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message
        self.lines = tuple(line.strip()[:MOST_CHARACTERS] for line in lines if line.strip())[
            :MOST_LINES
        ]
        self.remedy = remedy


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
