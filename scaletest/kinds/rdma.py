"""What both RDMA kinds share: spec, command line, and tables of perftest for all message sizes.

The connection is made by the connection manager (-R), which needs no device name; the server says when it waits, so
that the client never starts too early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.kinds import reading
from scaletest.kinds.common import PairSpec
from scaletest.kinds.fields import spec_field
from scaletest.kinds.kind import Output, Site, Task, bound
from scaletest.model.errors import InvalidValue

READY = "Waiting for client to connect"
# perftest's -a measures 2, 4, ... 2^23 bytes
LARGEST = 2**23
MODES = ("read", "write")


@dataclass(frozen=True, kw_only=True)
class RDMASpec(PairSpec):
    """mode, iterations and extraArgs are the original's; the rest is ours, after its author's second attempt."""

    mode: str = spec_field("read", "The RDMA operation.", choices=MODES)
    iterations: int = spec_field(1000, "Iterations at each message size.", minimum=5, maximum=1_000_000_000)
    extra_args: tuple[str, ...] = spec_field((), "More arguments of the tool, such as --tclass=96.")
    device: str = spec_field(
        "",
        "The RDMA device, such as mlx5_0; empty: that of the route.",
        pattern=r"|[A-Za-z0-9_.:-]{1,64}",
        words="a name",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if any("\x00" in one for one in self.extra_args):
            raise InvalidValue("extraArgs hold a NUL character", hint="leave it out")
        if {"-D", "-s"} & {one[:2] for one in self.extra_args}:
            raise InvalidValue(
                "extraArgs hold -D or -s, but every message size is measured by iterations",
                hint="leave it out: duration mode gives no minimum, maximum or percentiles",
            )


def tasks(spec: RDMASpec, site: Site, program: str, arguments: Sequence[str]) -> Sequence[Task]:
    """Server and client of a perftest tool."""
    line = [program, "-a", "-F", "-R", "-n", str(spec.iterations), *arguments]
    line += ["--ipv6"] if spec.ip_family == "IPv6" else []
    line += ["-d", spec.device] if spec.device else []
    line += spec.extra_args
    return (
        Task("server", 0, bound(spec, line), ready_text=READY),
        Task("client", 0, bound(spec, [*line, site.address("server")])),
    )


def table(output: Output, program: str, columns: int) -> list[tuple[float, ...]]:
    """The rows of a complete run. Raises Failed."""
    reading.ended_well(output, program)
    rows = reading.rows_after(output.stdout, "#bytes", columns, program)
    if rows[-1][0] != LARGEST:
        raise reading.bad(
            f"{program}'s table ends at {rows[-1][0]:.0f} bytes instead of {LARGEST}", output.stdout.splitlines()[-3:]
        )
    return rows
