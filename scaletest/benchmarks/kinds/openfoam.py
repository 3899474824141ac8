"""Measure the time of icoFoam on the 3-D lid-driven cavity, by MPI on one node or several.

The case is not that of the OpenFOAM HPC collection, so times can only be compared with each other.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from scaletest.benchmarks.kinds import (
    ExecutionSite,
    Headline,
    Kind,
    MpiSpec,
    Task,
    ToolMeasurement,
    ToolOutput,
    bind_to_cpus,
    fail_if,
    master_and_workers,
    mpirun,
    openfoam_case,
    parsing,
)
from scaletest.model import checks, declared

_PETSC = "no packaged OpenFOAM has PETSc"


@dataclass(frozen=True, kw_only=True)
class OpenFOAMSpec(MpiSpec):
    """Spec of OpenFOAM, all fields as in kube-perftest; the size XS is ours."""

    problem_size: Annotated[
        str,
        declared.choice(tuple(openfoam_case.SIZES)),
        "Cells along each edge: XS 20, S 100, M 200, XL 400, XXL 512.",
    ] = "S"
    iterative_method: Annotated[
        str,
        declared.choice(
            ("fixedNORM", "fixedITER", "FOAM-DIC-PCG.fixedNORM", "FOAM-GAMG-PCG.fixedNORM")
        ),
        declared.refused_texts(
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
        checks.raise_first_mistake(
            (
                self.num_procs < self.num_nodes,
                f"{self.num_procs} processes cannot use {self.num_nodes} nodes",
                "raise numProcs, or lower numNodes",
            )
        )


def mesh_cells(spec: OpenFOAMSpec) -> int:
    """Return the number of cells of the mesh."""
    return openfoam_case.SIZES[spec.problem_size] ** 3


def tasks(spec: OpenFOAMSpec, site: ExecutionSite) -> Sequence[Task]:
    """Create the case and run the solver on the master, with several processes on the workers."""
    parallel = spec.num_procs > 1
    solver = ["icoFoam", "-case", site.peers["master"][0].folder or "."]
    if parallel:
        solver = [
            *mpirun.command_prefix(spec, site, spec.num_procs, "node"),
            *("-x", "PATH", "-x", "WM_PROJECT_DIR"),
            *solver,
            "-parallel",
        ]
    return (
        Task(
            "master",
            0,
            # `time -p` is built into bash, so it needs no further program
            ("bash", "-c", 'time -p "$@"', "openfoam", *bind_to_cpus(spec, solver)),
            before=(("blockMesh",), ("decomposePar",)) if parallel else (("blockMesh",),),
            files={
                **openfoam_case.case_files(
                    spec.problem_size, spec.iterative_method, spec.num_procs
                ),
                mpirun.HOSTFILE: mpirun.hostfile(
                    site, slots=math.ceil(spec.num_procs / spec.num_nodes)
                ),
            },
            # Debian's programs need this variable to find their settings; others ignore it
            environment={"WM_PROJECT_DIR": "/usr/share/openfoam"},
            shared=parallel,
        ),
    )


def parse(spec: OpenFOAMSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse the solver's log, and the output of `time -p` after it."""
    text = output.text
    fatal = parsing.lines_with(
        text,
        ("FOAM FATAL", "FOAM aborting", "FOAM exiting", "Cannot open file", "cannot open file"),
    )
    fail_if(fatal and output.exit_code, "OpenFOAM ended with an error", fatal)
    parsing.check_exit(output, "icoFoam")
    # icoFoam ran once to its end
    steps = re.findall(
        r"^ExecutionTime = (\d{1,9}(?:\.\d{1,9})?) s\s+ClockTime = (\d{1,9}) s",
        text,
        re.MULTILINE,
    )
    processes = re.findall(r"^nProcs : (\d{1,6})$", text, re.MULTILINE)
    fail_if(
        not re.search(r"^End\s*$", text, re.MULTILINE) or not steps,
        "icoFoam's log is incomplete",
        text.splitlines()[-4:],
    )
    fail_if(
        processes != [str(spec.num_procs)],
        f"icoFoam ran on {', '.join(processes) or 'an unknown number of'} processes instead of"
        f" {spec.num_procs}",
        [f"nProcs : {count}" for count in processes],
    )
    fail_if(
        len(steps) != openfoam_case.STEPS,
        f"icoFoam reports {len(steps)} time steps instead of {openfoam_case.STEPS}",
    )
    # `time -p` printed each time once
    printed = parsing.TIMES.findall(text)
    fail_if(
        sorted(name for name, _ in printed) != ["real", "sys", "user"],
        "the output does not have the times of the solver once",
        [f"{name} {seconds}" for name, seconds in printed],
    )
    times_s = {name: float(seconds) for name, seconds in printed}
    execution_s = float(steps[-1][0])
    fail_if(
        times_s["real"] <= 0 or execution_s <= 0,
        "the solver took no time",
        [f"real {times_s['real']}", f"ExecutionTime = {execution_s} s"],
    )
    return ToolMeasurement(
        {
            "wallTime": times_s["real"],
            "executionTime": execution_s,
            "timePerStep": execution_s / len(steps),
        },
        {
            "wallclockTime": times_s["real"],
            "userTime": times_s["user"],
            "sysTime": times_s["sys"],
            "executionTime": execution_s,
            "clockTime": int(steps[-1][1]),
            "steps": len(steps),
            "cells": mesh_cells(spec),
        },
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
    limit_s=lambda spec: 600 + mesh_cells(spec) ** (4 / 3) / 1e4,
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
    # measured: blockMesh and icoFoam use 0.92 GB each on S; XS with two ranks uses 80 MB a rank
    scratch_bytes=lambda spec: 700 * mesh_cells(spec),
    memory_bytes=lambda spec: 80e6 * spec.num_procs + 950 * mesh_cells(spec),
    image="openfoam",
)
