"""The 3-D lid-driven cavity as an OpenFOAM case: a cube of 0.1 m, lid at 1 m/s, Reynolds number 10.

The files depend on the number of cells along an edge. The time step gives a Courant number of 0.5;
all sizes have the same number of time steps, so they differ only in the work of each.
"""

from __future__ import annotations

from collections.abc import Mapping

EDGE_M, VISCOSITY, COURANT, STEPS = 0.1, 0.01, 0.5, 50
# Cells along an edge; docs/how-to/benchmarks.md has the memory of each.
SIZES: Mapping[str, int] = {"XS": 20, "S": 100, "M": 200, "XL": 400, "XXL": 512}
METHODS = ("fixedNORM", "fixedITER", "FOAM-DIC-PCG.fixedNORM", "FOAM-GAMG-PCG.fixedNORM")
_ITERATIONS = 100

_HEADER = (
    'FoamFile {{ version 2.0; format ascii; class {kind}; location "{place}"; object {name}; }}\n'
)
_GAMG = (
    "preconditioner { preconditioner GAMG; smoother DICGaussSeidel; tolerance 1e-5; relTol 0.1;"
    " nVcycles 1; }"
)


def files(size: str, method: str, processes: int) -> dict[str, str]:
    """Text of all files of the case, by path."""
    cells = SIZES[size]
    time_step = COURANT * EDGE_M / cells
    return {
        "system/blockMeshDict": _file("dictionary", "system", "blockMeshDict", _mesh(cells)),
        "system/controlDict": _file("dictionary", "system", "controlDict", _control(time_step)),
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
