"""Benchmark kinds: spec, command line and output parser of each tool, in a file or a few.

Pure: nothing here starts a program, or reads a file or a clock.
"""

from scaletest.benchmarks.kinds.failure import ADVICE, BenchmarkFailed, Failure, fail_if
from scaletest.benchmarks.kinds.kind import (
    API_VERSION,
    GROUP,
    VERSION,
    ExecutionSite,
    Headline,
    Kind,
    Part,
    PartAddress,
    Task,
    ToolMeasurement,
    ToolOutput,
    bind_to_cpus,
    master_and_workers,
    server_and_client,
)
from scaletest.benchmarks.kinds.spec import (
    DIFFERENT_NODES,
    RDMA,
    SAME_NODE,
    TCP,
    CommonSpec,
    CrowdSpec,
    MpiSpec,
    PairSpec,
    PodOverrides,
)

__all__ = [
    "ADVICE",
    "API_VERSION",
    "DIFFERENT_NODES",
    "GROUP",
    "RDMA",
    "SAME_NODE",
    "TCP",
    "VERSION",
    "BenchmarkFailed",
    "CommonSpec",
    "CrowdSpec",
    "ExecutionSite",
    "Failure",
    "Headline",
    "Kind",
    "MpiSpec",
    "PairSpec",
    "Part",
    "PartAddress",
    "PodOverrides",
    "Task",
    "ToolMeasurement",
    "ToolOutput",
    "bind_to_cpus",
    "fail_if",
    "master_and_workers",
    "server_and_client",
]
