"""Finds the programs that a benchmark needs, and describes the machine of a measurement.

scaletest's MPI ping-pong is compiled once. The machine is described by its kernel, processor,
programs and network card; without this description results of two machines cannot be compared.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from scaletest.benchmarks.documents.benchmark import Benchmark
from scaletest.benchmarks.documents.result import BenchmarkPhase, BenchmarkResult
from scaletest.benchmarks.kinds import network as networks
from scaletest.benchmarks.kinds import parsing
from scaletest.benchmarks.kinds.failure import BenchmarkFailed, Failure
from scaletest.benchmarks.kinds.kind import ToolMeasurement
from scaletest.benchmarks.kinds.pingpong import IMB, KIND, OURS
from scaletest.benchmarks.measure import namespaces
from scaletest.benchmarks.measure.namespaces import PATIENCE_S
from scaletest.runs.environment import machine

COMPILE_S, ASK_S = 120.0, 10.0
_WITH_VERSION = (
    "iperf3",
    "iperf",
    "fio",
    "mpirun",
    "ib_read_bw",
    "ib_write_bw",
    "ib_read_lat",
    "ib_write_lat",
)
_PACKAGES = {
    "mpirun": "openmpi-bin",
    "icoFoam": "openfoam",
    "blockMesh": "openfoam",
    "decomposePar": "openfoam",
}


def find(benchmark: Benchmark) -> dict[str, str]:
    """Find all programs, and map the ones that have no fixed name to their paths. BenchmarkFailed
    when one is missing.
    """
    require(benchmark)
    return {"pingpong": _pingpong()} if benchmark.kind is KIND else {}


def require(benchmark: Benchmark) -> None:
    """BenchmarkFailed when a program is missing, with the package to install."""
    needed = [
        *benchmark.kind.programs(benchmark.spec),
        *(["taskset"] if benchmark.spec.cpu_affinity else []),
    ]
    missing = [name for name in needed if shutil.which(name) is None]
    if missing:
        package = _PACKAGES.get(
            missing[0], "perftest" if missing[0].startswith("ib_") else missing[0]
        )
        raise BenchmarkFailed(
            Failure.NO_BINARY,
            f"{', '.join(missing)} not found",
            remedy=f"install it, as in: apt install {package}",
        )


def versions(names: Sequence[str]) -> dict[str, str]:
    """Map programs to the first line of their --version; programs without that option are left out.

    The version of a program that does not answer is "": the measurement is valid without it.
    """
    return {
        name: _output([name, "--version"]).strip().partition("\n")[0][:100]
        for name in names
        if name in _WITH_VERSION and shutil.which(name)
    }


def _output(line: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=ASK_S, check=False, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout or done.stderr


def _pingpong() -> str:
    """Find IMB-MPI1, else scaletest's own program, which mpicc compiles into the user's cache."""
    for name in (*IMB, OURS):
        path = shutil.which(name)
        if path:
            return path
    source = resources.files("scaletest.benchmarks").joinpath("pingpong.c").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scaletest"
    program = cache / f"pingpong-{hashlib.sha256(source).hexdigest()[:16]}"
    if not program.exists():
        _compile(source, program)
    return str(program)


def _compile(source: bytes, target: Path) -> None:
    parsing.fail_if(
        shutil.which("mpicc") is None,
        f"neither {IMB[0]} nor mpicc found",
        failure=Failure.NO_BINARY,
        remedy="install it, as in: apt install libopenmpi-dev",
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        file = Path(folder) / "pingpong.c"
        file.write_bytes(source)
        done = subprocess.run(
            ["mpicc", "-O2", "-o", str(file.with_suffix("")), str(file)],
            capture_output=True,
            text=True,
            timeout=COMPILE_S,
            check=False,
        )
        parsing.fail_if(
            done.returncode,
            "scaletest's MPI ping-pong cannot be compiled",
            done.stderr.splitlines(),
            failure=Failure.NO_BINARY,
        )
        file.with_suffix("").replace(target)


CARDS = Path("/sys/class/net")


def facts(benchmark: Benchmark) -> dict[str, Any]:
    """Describe this machine, and the versions of the programs that the benchmark runs."""
    return {
        **machine(),
        "programs": versions(list(benchmark.kind.programs(benchmark.spec))),
    }


def card(enter: Sequence[str], interface: str, cards: Path = CARDS) -> dict[str, Any]:
    """Describe an interface: its kind, as in veth, or its hardware's driver and speed in bit/s."""
    description: dict[str, Any] = {"name": interface}
    if shutil.which("ip"):
        # the measurement is valid without this description, so no error here counts
        with contextlib.suppress(
            ValueError, AttributeError, TypeError, OSError, subprocess.SubprocessError
        ):
            done = subprocess.run(
                [*enter, "ip", "-json", "-details", "link", "show", "dev", interface],
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
            (link,) = json.loads(done.stdout)
            if "linkinfo" in link:
                description["kind"] = str(link["linkinfo"]["info_kind"])
    # /sys shows the interfaces of this process's own network namespace only
    driver = cards / interface / "device" / "driver"
    if not enter and driver.exists():
        description["driver"] = driver.resolve().name
        with contextlib.suppress(OSError, ValueError):
            description["speed_bit_s"] = int((cards / interface / "speed").read_text()) * 1_000_000
    return description


def result(
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
    spec, network = benchmark.spec, dict[str, Any]()
    route = namespaces.route(enter, peer) if peer else None
    parsing.fail_if(
        peer and not route and (spec.mtu is not None or spec.network_name),
        "without the program ip it is unknown which network was used",
        failure=Failure.NO_BINARY,
        remedy="install it, as in: apt install iproute2",
    )
    if route:
        environment = {**environment, "card": card(enter, route.interface)}
        network = route.to_dict()
        networks.check(spec, route, measured.remote)
    return BenchmarkResult(
        benchmark.name,
        BenchmarkPhase.COMPLETED,
        measured.headlines,
        measured.result,
        network,
        environment,
        notes=(*measured.notes, *benchmark.kind.notes),
    )
