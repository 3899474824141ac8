"""Describe the machine and the network of a measurement.

Without this description results of two machines cannot be compared.
"""

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scaletest.benchmarks.documents import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.benchmarks.kinds import Failure, ToolMeasurement, fail_if, network
from scaletest.benchmarks.measure import namespaces, programs
from scaletest.runs.environment import describe_host


def describe_machine(benchmark: Benchmark) -> dict[str, Any]:
    """Describe this machine, and the versions of the programs that the benchmark runs."""
    return {
        **describe_host(),
        "programs": programs.program_versions(benchmark.kind.programs(benchmark.spec)),
    }


def describe_card(interface: str, cards: Path = Path("/sys/class/net")) -> dict[str, Any]:
    """Describe an interface of this process's own network: of hardware driver and speed in bit/s.

    cards: the kernel's folders of interfaces.
    """
    description: dict[str, Any] = {"name": interface}
    driver = cards / interface / "device" / "driver"
    if driver.exists():
        description["driver"] = driver.resolve().name
        # a card without a link has no speed
        with contextlib.suppress(OSError, ValueError):
            description["speed_bit_s"] = int((cards / interface / "speed").read_text()) * 1_000_000
    return description


def build_result(
    benchmark: Benchmark,
    measured: ToolMeasurement,
    enter: Sequence[str],
    peer: str,
    environment: Mapping[str, Any],
) -> BenchmarkResult:
    """Build the result, with the network to the peer that was used.

    enter: command prefix of the measuring node, which still exists. peer: its address, "" without
    one. environment: what the machine is. Raises BenchmarkFailed when the network is not what the
    spec asks for.
    """
    spec = benchmark.spec
    route = None
    if peer and shutil.which("ip"):
        ip_json = [*enter, "ip", "-json"]
        route = network.parse_network(
            peer,
            route=namespaces.run_command([*ip_json, "route", "get", peer]).stdout,
            links=namespaces.run_command([*ip_json, "link", "show"]).stdout,
        )
    fail_if(
        peer and not route and (spec.mtu is not None or spec.network_name),
        "without the program ip it is unknown which network was used",
        failure=Failure.NO_BINARY,
        remedy="install it: apt install iproute2",
    )
    if route:
        network.check_network(spec, route, measured.remote)
        if not enter:
            environment = {**environment, "card": describe_card(route.interface)}
    return BenchmarkResult(
        benchmark.name,
        BenchmarkPhase.COMPLETED,
        measured.headlines,
        measured.result,
        asdict(route) if route else {},
        environment,
        notes=(*measured.notes, *benchmark.kind.notes),
    )
