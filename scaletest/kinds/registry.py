"""All kinds of benchmarks by name, and the groups whose documents are read."""

from __future__ import annotations

from collections.abc import Mapping

from scaletest.kinds import (
    fio,
    iperf,
    lifecycle,
    mpi_pingpong,
    openfoam,
    pytorch,
    rdma_bandwidth,
    rdma_latency,
    validation,
)
from scaletest.kinds.kind import Kind
from scaletest.model.errors import InvalidValue

GROUP, VERSION = "scaletest.dev", "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
# kube-perftest's groups: the first one, and that of its author's second attempt
FOREIGN = ("perftest.stackhpc.com", "perftest.nscale.com")
SET = "BenchmarkSet"

KINDS: Mapping[str, Kind] = {
    one.name: one
    for one in (
        iperf.KIND,
        mpi_pingpong.KIND,
        openfoam.KIND,
        rdma_bandwidth.KIND,
        rdma_latency.KIND,
        fio.KIND,
        pytorch.KIND,
        validation.KIND,
        lifecycle.KIND,
    )
}


def kind_of(name: object) -> Kind:
    """The kind of that name, in any case of letters; InvalidValue names those that there are."""
    found = {one.lower(): kind for one, kind in KINDS.items()}.get(str(name).lower())
    if found is None:
        raise InvalidValue(f"there is no kind {str(name)[:60]!r}", hint=f"use one of: {', '.join(KINDS)}")
    return found
