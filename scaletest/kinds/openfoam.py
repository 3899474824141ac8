"""OpenFOAM: icoFoam on the 3-D lid-driven cavity, by MPI over one node or several; wall-clock time of the solver.

The case is our own generator's (openfoam_case), not that of the OpenFOAM HPC collection, so times compare with each
other only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.kinds import mpi, openfoam_case, parsing
from scaletest.kinds.common import MpiSpec
from scaletest.kinds.fields import spec_field
from scaletest.kinds.kind import (
    ExecutionSite,
    Headline,
    Kind,
    Task,
    ToolMeasurement,
    ToolOutput,
    bound,
    master_and_workers,
)
from scaletest.model.errors import InvalidValue

_PETSC = "no packaged OpenFOAM has PETSc"
_TIMES = re.compile(r"^(real|user|sys)\s+(\d{1,9}(?:\.\d{1,9})?)\s*$", re.MULTILINE)
_CLOCK = re.compile(r"^ExecutionTime = (\d{1,9}(?:\.\d{1,9})?) s\s+ClockTime = (\d{1,9}) s", re.MULTILINE)
_PROCESSES = re.compile(r"^nProcs : (\d{1,6})$", re.MULTILINE)
_FATAL = ("FOAM FATAL", "FOAM aborting", "FOAM exiting", "Cannot open file", "cannot open file")
PROJECT = "/usr/share/openfoam"
# blockMesh and icoFoam on S: 0.92 GB at most, each; XS with two ranks: 80 MB a rank
_MEMORY_PER_CELL, _WRITTEN_PER_CELL = 950, 700


@dataclass(frozen=True, kw_only=True)
class OpenFOAMSpec(MpiSpec):
    """All fields are the original's; the size XS is ours."""

    problem_size: str = spec_field(
        "S", "Cells along each edge: XS 20, S 100, M 200, XL 400, XXL 512.", choices=tuple(openfoam_case.SIZES)
    )
    iterative_method: str = spec_field(
        "fixedNORM",
        "How pressure is solved: to a fixed norm or a fixed number of iterations, by which preconditioner.",
        choices=openfoam_case.METHODS,
        refused={
            "PETSc-AMG-CG.fixedNORM": _PETSC,
            "PETSc-AMG-CG.fixedNORM.caching": _PETSC,
            "PETSc-ICC-CG.fixedNORM": _PETSC,
        },
    )
    num_procs: int = spec_field(1, "MPI processes.", minimum=1, maximum=4096)
    num_nodes: int = spec_field(1, "Nodes that they run on.", minimum=1, maximum=1000)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_procs < self.num_nodes:
            raise InvalidValue(
                f"{self.num_procs} processes cannot use {self.num_nodes} nodes",
                hint="raise numProcs, or lower numNodes",
            )


def cells(spec: OpenFOAMSpec) -> int:
    """Of the whole mesh."""
    return int(openfoam_case.SIZES[spec.problem_size] ** 3)


def memory_bytes(spec: OpenFOAMSpec) -> float:
    """What all processes need together, about."""
    return 80e6 * spec.num_procs + _MEMORY_PER_CELL * cells(spec)


def tasks(spec: OpenFOAMSpec, site: ExecutionSite) -> Sequence[Task]:
    """The master makes the case, and runs the solver on the workers. A single process runs without -parallel."""
    slots = -(-spec.num_procs // spec.num_nodes)
    case = site.peers["master"][0].folder
    before: list[tuple[str, ...]] = [("blockMesh",)]
    solver = ["icoFoam", "-case", case or "."]
    if spec.num_procs > 1:
        before.append(("decomposePar",))
        solver = [
            *mpi.mpirun(spec, site, spec.num_procs, "node"),
            "-x",
            "PATH",
            "-x",
            "WM_PROJECT_DIR",
            *solver,
            "-parallel",
        ]
    # bash's own `time -p` gives POSIX times wherever bash is
    line = ("bash", "-c", 'time -p "$@"', "openfoam", *bound(spec, solver))
    made = openfoam_case.files(spec.problem_size, spec.iterative_method, spec.num_procs)
    # Debian's programs find their settings by this alone; it does no harm where they are found otherwise
    environment = {"WM_PROJECT_DIR": PROJECT}
    files = {**made, mpi.HOSTFILE: mpi.hostfile(site, slots)}
    return (Task("master", 0, line, tuple(before), files, environment, shared=spec.num_procs > 1),)


def parse(spec: OpenFOAMSpec, output: ToolOutput) -> ToolMeasurement:
    """The solver's log, and the times of `time -p` after it. Raises Failed."""
    text = output.text
    fatal = [line for line in text.splitlines() if any(words in line for words in _FATAL)]
    if fatal and output.exit_code:
        raise parsing.bad("OpenFOAM ended with an error", fatal)
    parsing.ended_well(output, "icoFoam")
    steps = _check_log(spec, text)
    timed = _TIMES.findall(text)
    times = {name: float(value) for name, value in timed}
    if sorted(times) != sorted(name for name, _ in timed) or set(times) != {"real", "user", "sys"}:
        raise parsing.bad("the times of the solver are not there once", [f"{name} {value}" for name, value in timed])
    execution = float(steps[-1][0])
    if times["real"] <= 0 or execution <= 0:
        raise parsing.bad("the solver took no time", [f"real {times['real']}", f"ExecutionTime = {execution} s"])
    return ToolMeasurement(
        {"wallTime": times["real"], "executionTime": execution, "timePerStep": execution / len(steps)},
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


def _check_log(spec: OpenFOAMSpec, text: str) -> list[tuple[str, str]]:
    """What icoFoam says of its times after each step. Raises Failed unless all of it was run, once."""
    steps, processes = _CLOCK.findall(text), _PROCESSES.findall(text)
    if not re.search(r"^End\s*$", text, re.MULTILINE) or not steps:
        raise parsing.bad("icoFoam's log does not reach its end", text.splitlines()[-4:])
    if processes != [str(spec.num_procs)]:
        lines = [f"nProcs : {count}" for count in processes]
        message = (
            f"icoFoam ran on {', '.join(processes) or 'an unknown number of'} processes instead of {spec.num_procs}"
        )
        raise parsing.bad(message, lines)
    if len(steps) != openfoam_case.STEPS:
        raise parsing.bad(f"icoFoam reports {len(steps)} time steps instead of {openfoam_case.STEPS}")
    return steps


KIND = Kind(
    name="OpenFOAM",
    plural="openfoams",
    help="A flow solver over MPI: icoFoam on the lid-driven cavity.",
    spec=OpenFOAMSpec,
    measures="master",
    layout=lambda spec: master_and_workers(spec, spec.num_nodes),
    programs=lambda spec: ("blockMesh", "icoFoam", *(("decomposePar", "mpirun") if spec.num_procs > 1 else ())),
    tasks=tasks,
    parse=parse,
    limit_s=lambda spec: 600 + cells(spec) ** (4 / 3) / 1e4,
    headlines=(
        Headline("wallTime", "s", False, "Of the solver, start and end of all processes included."),
        Headline("executionTime", "s", False, "CPU time that icoFoam itself reports."),
        Headline("timePerStep", "s", False, "The same for each time step."),
    ),
    columns=("transport", "problemSize", "numProcs", "numNodes"),
    notes=("own lid-driven cavity, not the OpenFOAM HPC collection's: times compare with each other only",),
    scratch_bytes=lambda spec: _WRITTEN_PER_CELL * cells(spec),
    memory_bytes=memory_bytes,
    image="openfoam",
)
