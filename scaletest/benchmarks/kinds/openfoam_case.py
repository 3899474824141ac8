"""Write the lid-driven cavity for icoFoam as the files of a case.

A cube of 0.1 m, lid at 1 m/s, Reynolds number 10. The files depend on the number of cells along an
edge. The time step gives a Courant number of 0.5, and all sizes have the same number of time steps,
so they differ only in the work of each step.
"""

from collections.abc import Mapping

EDGE_M, VISCOSITY, COURANT, STEPS = 0.1, 0.01, 0.5, 50
# Cells along an edge; docs/how-to/benchmarks.md has the memory of each.
SIZES: Mapping[str, int] = {"XS": 20, "S": 100, "M": 200, "XL": 400, "XXL": 512}
_HEADER = (
    'FoamFile {{ version 2.0; format ascii; class {kind}; location "{place}"; object {name}; }}\n'
)
_GAMG = (
    "preconditioner { preconditioner GAMG; smoother DICGaussSeidel; tolerance 1e-5; relTol 0.1;"
    " nVcycles 1; }"
)
_MESH = (
    "scale {edge};\nvertices ((0 0 0) (1 0 0) (1 1 0) (0 1 0) (0 0 1) (1 0 1) (1 1 1) (0 1 1));\n"
    "blocks (hex (0 1 2 3 4 5 6 7) ({cells} {cells} {cells}) simpleGrading (1 1 1));\nedges ();\n"
    "boundary (\n  movingWall {{ type wall; faces ((3 7 6 2)); }}\n  fixedWalls {{ type wall;"
    " faces ((0 4 7 3) (2 6 5 1) (1 5 4 0) (0 3 2 1) (4 5 6 7)); }}\n);\nmergePatchPairs ();\n"
)
# no field is written, as only the solver is measured
_CONTROL = (
    "application icoFoam;\nstartFrom startTime;\nstartTime 0;\nstopAt endTime;\nendTime {end:.9g};"
    "\ndeltaT {step:.9g};\nwriteControl timeStep;\nwriteInterval 1000000;\npurgeWrite 0;\n"
    "writeFormat binary;\nwritePrecision 6;\nwriteCompression off;\ntimeFormat general;\n"
    "timePrecision 6;\nrunTimeModifiable false;\n"
)
_SOLUTION = (
    "solvers {{\n  p {{ {pressure} }}\n  pFinal {{ {pressure} }}\n  U {{ solver PBiCGStab;"
    " preconditioner DILU; tolerance 1e-6; relTol 0; minIter 1; maxIter 100; }}\n}}\nPISO {{"
    " nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }}\n"
)
_SPLIT = (
    "numberOfSubdomains {processes};\nmethod simple;\nsimpleCoeffs {{ n ({x} {y} {z}); delta"
    " 0.001; }}\n"
)
_SCHEMES = (
    "ddtSchemes { default Euler; }\ngradSchemes { default Gauss linear; }\ndivSchemes { default"
    " none; div(phi,U) Gauss linear; }\nlaplacianSchemes { default Gauss linear orthogonal;"
    " }\ninterpolationSchemes { default linear; }\nsnGradSchemes { default orthogonal; }\n"
)
_VELOCITY = (
    "dimensions [0 1 -1 0 0 0 0];\ninternalField uniform (0 0 0);\nboundaryField {\n"
    "  movingWall { type fixedValue; value uniform (1 0 0); }\n  fixedWalls { type noSlip; }\n}\n"
)
_PRESSURE = (
    "dimensions [0 2 -2 0 0 0 0];\ninternalField uniform 0;\nboundaryField {\n"
    "  movingWall { type zeroGradient; }\n  fixedWalls { type zeroGradient; }\n}\n"
)


def case_files(size: str, method: str, processes: int) -> dict[str, str]:
    """Return the text of all files of the case, by path."""
    cells = SIZES[size]
    step_s = COURANT * EDGE_M / cells
    # the solver of the pressure: to a fixed norm or a fixed number of iterations
    norm = "tolerance 1e-4; relTol 0; minIter 1; maxIter 3000;"
    if method == "fixedITER":
        norm = "tolerance 1e-30; relTol 0; minIter 100; maxIter 100;"
    preconditioner = _GAMG if method.startswith("FOAM-GAMG") else "preconditioner DIC;"
    x, y, z = split_into_boxes(processes)
    bodies = {
        "system/blockMeshDict": _MESH.format(edge=EDGE_M, cells=cells),
        "system/controlDict": _CONTROL.format(end=step_s * STEPS, step=step_s),
        "system/fvSchemes": _SCHEMES,
        "system/fvSolution": _SOLUTION.format(pressure=f"solver PCG; {preconditioner} {norm}"),
        "system/decomposeParDict": _SPLIT.format(processes=processes, x=x, y=y, z=z),
        "constant/transportProperties": f"nu [0 2 -1 0 0 0 0] {VISCOSITY};\n",
        "0/U": _VELOCITY,
        "0/p": _PRESSURE,
    }
    classes = {"0/U": "volVectorField", "0/p": "volScalarField"}
    files = {}
    for path, body in bodies.items():
        place, _, name = path.partition("/")
        header = _HEADER.format(kind=classes.get(path, "dictionary"), place=place, name=name)
        files[path] = header + body
    return files


def split_into_boxes(processes: int) -> tuple[int, int, int]:
    """Return three factors with this product, as equal as possible."""
    best = (processes, 1, 1)
    for x in range(1, processes + 1):
        for y in range(1, processes // x + 1):
            z, remainder = divmod(processes, x * y)
            if not remainder and max(x, y, z) < max(best):
                best = (x, y, z)
    return best
