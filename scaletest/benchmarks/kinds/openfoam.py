"""OpenFOAM: wall-clock time of icoFoam on the 3-D lid-driven cavity, by MPI on one node or several.

The case is generated here: a cube of 0.1 m, lid at 1 m/s, Reynolds number 10. Its files depend on
the number of cells along an edge; the time step gives a Courant number of 0.5, and all sizes have
the same number of time steps, so they differ only in the work of each. It is not the OpenFOAM HPC
collection's case, so its times can only be compared with each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from scaletest.benchmarks.kinds import mpi, parsing
from scaletest.benchmarks.kinds.kind import (
    ExecutionSite,
    Headline,
    Kind,
    Task,
    ToolMeasurement,
    ToolOutput,
    bound,
    master_and_workers,
)
from scaletest.benchmarks.kinds.spec import MpiSpec
from scaletest.model.checks import refuse
from scaletest.model.declared import choice, refused

EDGE_M, VISCOSITY, COURANT, STEPS = 0.1, 0.01, 0.5, 50
# Cells along an edge; docs/how-to/benchmarks.md has the memory of each.
SIZES: Mapping[str, int] = {"XS": 20, "S": 100, "M": 200, "XL": 400, "XXL": 512}
METHODS = ("fixedNORM", "fixedITER", "FOAM-DIC-PCG.fixedNORM", "FOAM-GAMG-PCG.fixedNORM")
_ITERATIONS = 100
_PETSC = "no packaged OpenFOAM has PETSc"
_CLOCK = re.compile(
    r"^ExecutionTime = (\d{1,9}(?:\.\d{1,9})?) s\s+ClockTime = (\d{1,9}) s", re.MULTILINE
)
_PROCESSES = re.compile(r"^nProcs : (\d{1,6})$", re.MULTILINE)
_FATAL = ("FOAM FATAL", "FOAM aborting", "FOAM exiting", "Cannot open file", "cannot open file")
PROJECT = "/usr/share/openfoam"
# Measured: blockMesh and icoFoam use 0.92 GB each on S; XS with two ranks uses 80 MB a rank.
_MEMORY_PER_CELL, _WRITTEN_PER_CELL = 950, 700


@dataclass(frozen=True, kw_only=True)
class OpenFOAMSpec(MpiSpec):
    """Spec of OpenFOAM, all fields as in kube-perftest; the size XS is ours."""

    problem_size: Annotated[
        str, choice(tuple(SIZES)), "Cells along each edge: XS 20, S 100, M 200, XL 400, XXL 512."
    ] = "S"
    iterative_method: Annotated[
        str,
        choice(METHODS),
        refused(
            {
                "PETSc-AMG-CG.fixedNORM": _PETSC,
                "PETSc-AMG-CG.fixedNORM.caching": _PETSC,
                "PETSc-ICC-CG.fixedNORM": _PETSC,
            }
        ),
        "Solver of the pressure: to a fixed norm or a fixed number of iterations, and its"
        " preconditioner.",
    ] = "fixedNORM"
    num_procs: Annotated[int, Meta(ge=1, le=4096), "MPI processes."] = 1
    num_nodes: Annotated[int, Meta(ge=1, le=1000), "Nodes of the processes."] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse(
            (
                self.num_procs < self.num_nodes,
                f"{self.num_procs} processes cannot use {self.num_nodes} nodes",
                "raise numProcs, or lower numNodes",
            )
        )


def cells(spec: OpenFOAMSpec) -> int:
    """Number of cells of the mesh."""
    return int(SIZES[spec.problem_size] ** 3)


def memory_bytes(spec: OpenFOAMSpec) -> float:
    """Estimated memory of all processes together."""
    return 80e6 * spec.num_procs + _MEMORY_PER_CELL * cells(spec)


def tasks(spec: OpenFOAMSpec, site: ExecutionSite) -> Sequence[Task]:
    """The master creates the case and runs the solver, with several processes on the workers."""
    parallel = spec.num_procs > 1
    solver = ["icoFoam", "-case", site.peers["master"][0].folder or "."]
    if parallel:
        exported = ["-x", "PATH", "-x", "WM_PROJECT_DIR"]
        solver = [*mpi.mpirun(spec, site, spec.num_procs, "node"), *exported, *solver, "-parallel"]
    files = case_files(spec.problem_size, spec.iterative_method, spec.num_procs)
    files[mpi.HOSTFILE] = mpi.hostfile(site, -(-spec.num_procs // spec.num_nodes))
    task = Task(
        "master",
        0,
        # `time -p` is built into bash, so it needs no further program
        ("bash", "-c", 'time -p "$@"', "openfoam", *bound(spec, solver)),
        before=(("blockMesh",), ("decomposePar",)) if parallel else (("blockMesh",),),
        files=files,
        # Debian's programs need this variable to find their settings; others ignore it
        environment={"WM_PROJECT_DIR": PROJECT},
        shared=parallel,
    )
    return (task,)


def parse(spec: OpenFOAMSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse the solver's log, and the output of `time -p` after it."""
    text = output.text
    fatal = parsing.lines_with(text, _FATAL)
    parsing.fail_if(
        fatal and output.exit_code,
        "OpenFOAM ended with an error",
        fatal,
    )
    parsing.ended_well(output, "icoFoam")
    steps = _check_log(spec, text)
    times = _times(text)
    execution = float(steps[-1][0])
    parsing.fail_if(
        times["real"] <= 0 or execution <= 0,
        "the solver took no time",
        [f"real {times['real']}", f"ExecutionTime = {execution} s"],
    )
    return ToolMeasurement(
        {
            "wallTime": times["real"],
            "executionTime": execution,
            "timePerStep": execution / len(steps),
        },
        {
            "wallclockTime": times["real"],
            "userTime": times["user"],
            "sysTime": times["sys"],
            "executionTime": execution,
            "clockTime": int(steps[-1][1]),
            "steps": len(steps),
            "cells": cells(spec),
        },
    )


def _times(text: str) -> dict[str, float]:
    """Seconds that `time -p` printed. Raises BenchmarkFailed unless each is there once."""
    timed = parsing.TIMES.findall(text)
    parsing.fail_if(
        sorted(name for name, _ in timed) != ["real", "sys", "user"],
        "the output does not have the times of the solver once",
        [f"{name} {seconds}" for name, seconds in timed],
    )
    return {name: float(seconds) for name, seconds in timed}


def _check_log(spec: OpenFOAMSpec, text: str) -> list[tuple[str, str]]:
    """icoFoam's times after each time step.

    Raises BenchmarkFailed unless it ran once to its end.
    """
    steps, processes = _CLOCK.findall(text), _PROCESSES.findall(text)
    parsing.fail_if(
        not re.search(r"^End\s*$", text, re.MULTILINE) or not steps,
        "icoFoam's log is incomplete",
        text.splitlines()[-4:],
    )
    parsing.fail_if(
        processes != [str(spec.num_procs)],
        f"icoFoam ran on {', '.join(processes) or 'an unknown number of'} processes instead of"
        f" {spec.num_procs}",
        [f"nProcs : {count}" for count in processes],
    )
    parsing.fail_if(
        len(steps) != STEPS,
        f"icoFoam reports {len(steps)} time steps instead of {STEPS}",
    )
    return steps


# -- the case
# --------------------------------------------------------------------------------------------------

_HEADER = (
    'FoamFile {{ version 2.0; format ascii; class {kind}; location "{place}"; object {name}; }}\n'
)
_GAMG = (
    "preconditioner { preconditioner GAMG; smoother DICGaussSeidel; tolerance 1e-5; relTol 0.1;"
    " nVcycles 1; }"
)


def case_files(size: str, method: str, processes: int) -> dict[str, str]:
    """Text of all files of the case, by path."""
    cells = SIZES[size]
    return {
        "system/blockMeshDict": _file("dictionary", "system", "blockMeshDict", _mesh(cells)),
        "system/controlDict": _file(
            "dictionary", "system", "controlDict", _control(COURANT * EDGE_M / cells)
        ),
        "system/fvSchemes": _file("dictionary", "system", "fvSchemes", _SCHEMES),
        "system/fvSolution": _file("dictionary", "system", "fvSolution", _solution(method)),
        "system/decomposeParDict": _file(
            "dictionary", "system", "decomposeParDict", _split(processes)
        ),
        "constant/transportProperties": _file(
            "dictionary", "constant", "transportProperties", f"nu [0 2 -1 0 0 0 0] {VISCOSITY};\n"
        ),
        "0/U": _file("volVectorField", "0", "U", _VELOCITY),
        "0/p": _file("volScalarField", "0", "p", _PRESSURE),
    }


def boxes(processes: int) -> tuple[int, int, int]:
    """Three factors with this product, as equal as possible."""
    best = (processes, 1, 1)
    for x in range(1, processes + 1):
        if processes % x:
            continue
        rest = processes // x
        for y in range(1, rest + 1):
            if rest % y == 0 and max(x, y, rest // y) < max(best):
                best = (x, y, rest // y)
    return best


def _file(kind: str, place: str, name: str, body: str) -> str:
    return _HEADER.format(kind=kind, place=place, name=name) + body


def _mesh(cells: int) -> str:
    square = ("0 0", "1 0", "1 1", "0 1")
    corners = " ".join(
        [f"({corner} 0)" for corner in square] + [f"({corner} 1)" for corner in square]
    )
    walls = "(0 4 7 3) (2 6 5 1) (1 5 4 0) (0 3 2 1) (4 5 6 7)"
    return (
        f"scale {EDGE_M};\nvertices ({corners});\nblocks (hex (0 1 2 3 4 5 6 7) ({cells} {cells}"
        f" {cells}) simpleGrading (1 1 1));\nedges ();\nboundary (\n  movingWall {{ type wall;"
        f" faces ((3 7 6 2)); }}\n  fixedWalls {{ type wall; faces ({walls});"
        " }\n);\nmergePatchPairs ();\n"
    )


def _control(time_step: float) -> str:
    """The control file. No field is written, as only the solver is measured."""
    return (
        "application icoFoam;\nstartFrom startTime;\nstartTime 0;\nstopAt endTime;\nendTime"
        f" {time_step * STEPS:.9g};\ndeltaT {time_step:.9g};\nwriteControl timeStep;\nwriteInterval"
        " 1000000;\npurgeWrite 0;\nwriteFormat binary;\nwritePrecision 6;\nwriteCompression"
        " off;\ntimeFormat general;\ntimePrecision 6;\nrunTimeModifiable false;\n"
    )


_SCHEMES = (
    "ddtSchemes { default Euler; }\ngradSchemes { default Gauss linear; }\ndivSchemes { default"
    " none; div(phi,U) Gauss linear; }\nlaplacianSchemes { default Gauss linear orthogonal;"
    " }\ninterpolationSchemes { default linear; }\nsnGradSchemes { default orthogonal; }\n"
)


def _solution(method: str) -> str:
    norm = "tolerance 1e-4; relTol 0; minIter 1; maxIter 3000;"
    if method == "fixedITER":
        norm = f"tolerance 1e-30; relTol 0; minIter {_ITERATIONS}; maxIter {_ITERATIONS};"
    inner = _GAMG if method.startswith("FOAM-GAMG") else "preconditioner DIC;"
    pressure = f"solver PCG; {inner} {norm}"
    return (
        f"solvers {{\n  p {{ {pressure} }}\n  pFinal {{ {pressure} }}\n  U {{ solver PBiCGStab;"
        " preconditioner DILU; tolerance 1e-6; relTol 0; minIter 1; maxIter 100; }\n}\nPISO {"
        " nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }\n"
    )


def _split(processes: int) -> str:
    x, y, z = boxes(processes)
    return (
        f"numberOfSubdomains {processes};\nmethod simple;\nsimpleCoeffs {{ n ({x} {y} {z}); delta"
        " 0.001; }\n"
    )


_VELOCITY = (
    "dimensions [0 1 -1 0 0 0 0];\ninternalField uniform (0 0 0);\nboundaryField {\n"
    "  movingWall { type fixedValue; value uniform (1 0 0); }\n  fixedWalls { type noSlip; }\n}\n"
)
_PRESSURE = (
    "dimensions [0 2 -2 0 0 0 0];\ninternalField uniform 0;\nboundaryField {\n"
    "  movingWall { type zeroGradient; }\n  fixedWalls { type zeroGradient; }\n}\n"
)


KIND = Kind(
    name="OpenFOAM",
    plural="openfoams",
    help="A flow solver over MPI: icoFoam on the lid-driven cavity.",
    spec=OpenFOAMSpec,
    measures="master",
    layout=lambda spec: master_and_workers(spec, spec.num_nodes),
    programs=lambda spec: (
        "blockMesh",
        "icoFoam",
        *(("decomposePar", "mpirun") if spec.num_procs > 1 else ()),
    ),
    tasks=tasks,
    parse=parse,
    limit_s=lambda spec: 600 + cells(spec) ** (4 / 3) / 1e4,
    headlines=(
        Headline(
            "wallTime",
            "wall-clock time",
            "s",
            False,
            "Wall-clock time of the solver, with start and end of all processes.",
        ),
        Headline("executionTime", "CPU time", "s", False, "CPU time that icoFoam reports."),
        Headline(
            "timePerStep", "CPU time of a time step", "s", False, "CPU time of each time step."
        ),
    ),
    columns=("transport", "problemSize", "numProcs", "numNodes"),
    notes=(
        (
            "own lid-driven cavity, not the OpenFOAM HPC collection's: compare its times only with"
            " each other"
        ),
    ),
    scratch_bytes=lambda spec: _WRITTEN_PER_CELL * cells(spec),
    memory_bytes=memory_bytes,
    image="openfoam",
)
