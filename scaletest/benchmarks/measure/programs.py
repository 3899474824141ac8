"""Find the programs that a benchmark needs, or compile scaletest's MPI ping-pong."""

import contextlib
import shutil
import subprocess
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from scaletest.benchmarks.documents import Benchmark
from scaletest.benchmarks.kinds import BenchmarkFailed, Failure, fail_if, pingpong

VERSION_LIMIT_S = 10.0  # time limit of --version
COMPILE_LIMIT_S = 120.0
_WITH_VERSION = (  # the others have no option --version
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


def find_programs(benchmark: Benchmark, folder: Path) -> dict[str, str]:
    """Find all programs, and map the ones that have no fixed name to their paths.

    That is the MPI ping-pong: IMB-MPI1, else scaletest's own program, which mpicc compiles in the
    folder. Raises BenchmarkFailed when one is missing.
    """
    require_programs(benchmark)
    if benchmark.kind is not pingpong.KIND:
        return {}
    if installed := next(filter(None, map(shutil.which, (*pingpong.IMB, pingpong.OURS))), ""):
        return {"pingpong": installed}
    fail_if(
        shutil.which("mpicc") is None,
        f"neither {pingpong.IMB[0]} nor mpicc found",
        failure=Failure.NO_BINARY,
        remedy="install it: apt install libopenmpi-dev",
    )
    source = folder / "pingpong.c"
    source.write_bytes(resources.files("scaletest.benchmarks").joinpath(source.name).read_bytes())
    program = str(source.with_suffix(""))
    completed = subprocess.run(
        ["mpicc", "-O2", "-o", program, str(source)],
        capture_output=True,
        text=True,
        timeout=COMPILE_LIMIT_S,
        check=False,
    )
    fail_if(
        completed.returncode,
        "scaletest's MPI ping-pong cannot be compiled",
        completed.stderr.splitlines(),
        failure=Failure.NO_BINARY,
    )
    return {"pingpong": program}


def require_programs(benchmark: Benchmark) -> None:
    """Raise BenchmarkFailed when a program is missing, with the package to install."""
    needed = list(benchmark.kind.programs(benchmark.spec))
    if benchmark.spec.cpu_affinity:
        needed.append("taskset")
    if missing := [name for name in needed if shutil.which(name) is None]:
        package = "perftest" if missing[0].startswith("ib_") else missing[0]
        raise BenchmarkFailed(
            Failure.NO_BINARY,
            f"{', '.join(missing)} not found",
            remedy=f"install it: apt install {_PACKAGES.get(missing[0], package)}",
        )


def program_versions(names: Sequence[str]) -> dict[str, str]:
    """Map programs to the first line of their --version; programs without that option are left out.

    The version of a program that does not answer is "": the measurement is valid without it.
    """
    first_lines = {}
    for name in names:
        if name in _WITH_VERSION and shutil.which(name):
            first_lines[name] = ""
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                completed = subprocess.run(
                    [name, "--version"],
                    capture_output=True,
                    text=True,
                    timeout=VERSION_LIMIT_S,
                    check=False,
                    errors="replace",
                )
                text = completed.stdout or completed.stderr
                first_lines[name] = text.strip().partition("\n")[0][:100]
    return first_lines
