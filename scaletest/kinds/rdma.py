"""Common code of both RDMA kinds: spec, command line, and perftest's tables for all message sizes.

The connection manager (-R) makes the connection, which needs no device name. The server prints when
it is ready, so the client never starts too early.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.kinds import parsing
from scaletest.kinds.common import PairSpec
from scaletest.kinds.fields import spec_field
from scaletest.kinds.kind import BenchmarkFailed, ExecutionSite, Failure, Task, ToolOutput, bound
from scaletest.model.errors import InvalidValue

READY = "Waiting for client to connect"
# perftest's -a measures 2, 4, ... 2^23 bytes
LARGEST_POWER = 23
# with extraArgs there may be other words between, as in RDMA_Write Bidirectional BW Test
_TITLE = re.compile(r"RDMA_(Read|Write)\b[^\n]*\b(BW|Latency) Test")
_UNIT = re.compile(r"\[([^\]]+)\]")
MODES = ("read", "write")


@dataclass(frozen=True, kw_only=True)
class RDMASpec(PairSpec):
    """Spec of both kinds.

    kube-perftest has mode, iterations and extraArgs; its successor has others.
    """

    mode: str = spec_field("read", "RDMA operation.", choices=MODES)
    iterations: int = spec_field(
        1000, "Iterations at each message size.", minimum=5, maximum=1_000_000_000
    )
    extra_args: tuple[str, ...] = spec_field(
        (), "More arguments of the tool, such as --tclass=96.", trusted=True
    )
    device: str = spec_field(
        "",
        "RDMA device, such as mlx5_0; empty: that of the route.",
        pattern=r"|[A-Za-z0-9_.:-]{1,64}",
        pattern_text="a name",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if any("\x00" in argument for argument in self.extra_args):
            raise InvalidValue("extraArgs contain a NUL character", hint="leave it out")
        if {"-D", "-s"} & {argument[:2] for argument in self.extra_args}:
            raise InvalidValue(
                "extraArgs contain -D or -s, but all message sizes are measured, by iterations",
                hint="leave it out: duration mode has no minimum, maximum or percentiles",
            )


def tasks(
    spec: RDMASpec, site: ExecutionSite, program: str, arguments: Sequence[str]
) -> Sequence[Task]:
    """Server and client of a perftest tool."""
    line = [program, "-a", "-F", "-R", "-n", str(spec.iterations), *arguments]
    if spec.ip_family == "IPv6":
        line += ["--ipv6"]
    if spec.device:
        line += ["-d", spec.device]
    line += spec.extra_args
    return (
        Task("server", 0, bound(spec, line), ready_text=READY),
        Task("client", 0, bound(spec, [*line, site.address("server")])),
    )


def table(
    spec: RDMASpec, output: ToolOutput, program: str, test: str, columns: int, units: frozenset[str]
) -> list[tuple[float, ...]]:
    """Rows of a complete run.

    test, units: perftest's names of the test and of the columns' units.
    """
    parsing.ended_well(output, program)
    rows = parsing.rows_after(output.stdout, "#bytes", columns, program)
    wanted = f"RDMA_{spec.mode.capitalize()} {test} Test"
    titles = _TITLE.findall(output.stdout)
    if [(mode, kind) for mode, kind in titles] != [(spec.mode.capitalize(), test)]:
        raise BenchmarkFailed(
            Failure.MISMATCH,
            f"{program} did not measure {wanted}",
            [f"RDMA_{' '.join(title)}" for title in titles],
        )
    header = next(line for line in output.stdout.splitlines() if "#bytes" in line)
    if set(_UNIT.findall(header)) != units:
        raise BenchmarkFailed(
            Failure.MISMATCH, f"{program} has other units than {', '.join(sorted(units))}", [header]
        )
    parsing.check_sizes(rows, [2**power for power in range(1, LARGEST_POWER + 1)], program)
    return rows
