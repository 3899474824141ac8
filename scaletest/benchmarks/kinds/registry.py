"""Find benchmark kinds by name: those built in, and those that other packages provide.

These are the entry points of the group `scaletest.kinds`, each an object of class Kind under its
own name.
"""

from scaletest.benchmarks.kinds import Kind, fio, iperf, openfoam, pingpong, pytorch, rdma
from scaletest.model.errors import InvalidValue
from scaletest.plugins import Registry

SET = "BenchmarkSet"

BUILT_IN = {
    kind.name: kind
    for kind in (
        iperf.KIND,
        pingpong.KIND,
        openfoam.KIND,
        rdma.BANDWIDTH,
        rdma.LATENCY,
        fio.KIND,
        pytorch.KIND,
    )
}
KINDS = Registry("scaletest.kinds", Kind, BUILT_IN, taken=[SET])


def kind_of(name: object) -> Kind:
    """Return the kind of a name, in upper or lower case; InvalidValue lists the known kinds."""
    kind = {key.lower(): kind for key, kind in KINDS.items()}.get(str(name).lower())
    if str(name).lower() == SET.lower():
        raise InvalidValue(
            f"{SET} is not a kind of benchmark: it sweeps a benchmark over values",
            hint="write a file, see docs/how-to/benchmarks.md, for: scaletest bench run FILE",
        )
    if kind is None:
        raise KINDS.unknown(name, "kind")
    return kind
