"""All benchmark kinds by name."""

from __future__ import annotations

from collections.abc import Mapping

from scaletest.kinds import (
    fio,
    iperf,
    mpi,
    openfoam,
    own_commands,
    pytorch,
    rdma,
)
from scaletest.kinds.kind import Kind
from scaletest.model.errors import InvalidValue, suggestion

GROUP, VERSION = "scaletest.dev", "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
SET = "BenchmarkSet"

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        iperf.KIND,
        mpi.KIND,
        openfoam.KIND,
        rdma.BANDWIDTH,
        rdma.LATENCY,
        fio.KIND,
        pytorch.KIND,
        own_commands.VALIDATION,
        own_commands.LIFECYCLE,
    )
}


def kind_of(name: object) -> Kind:
    """The kind of a name, in upper or lower case; InvalidValue lists the known kinds."""
    kind = {known.lower(): kind for known, kind in KINDS.items()}.get(str(name).lower())
    if kind is None:
        raise InvalidValue(f"there is no kind {str(name)[:60]!r}", hint=suggestion(name, KINDS))
    return kind
