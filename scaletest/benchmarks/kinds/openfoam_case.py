"""Write the lid-driven cavity for icoFoam as the files of a case.

A cube of 0.1 m, lid at 1 m/s, Reynolds number 10. The files depend on the number of cells along an
edge. The time step gives a Courant number of 0.5, and all sizes have the same number of time steps,
so they differ only in the work of each step.
"""

from collections.abc import Mapping

EDGE_M = 0.1
VISCOSITY = 0.01  # in m^2/s
COURANT = 0.5
STEPS = 50
# Cells along an edge; docs/how-to/benchmarks.md has the memory of each.
SIZES: Mapping[str, int] = {"XS": 20, "S": 100, "M": 200, "XL": 400, "XXL": 512}


def case_files(size: str, method: str, processes: int) -> dict[str, str]:
    """Return the text of all files of the case, by path."""
    cells = SIZES[size]
    step_s = COURANT * EDGE_M / cells
    # the solver of the pressure: to a fixed norm or a fixed number of iterations
    norm = "tolerance 1e-4; relTol 0; minIter 1; maxIter 3000;"
    if method == "fixedITER":
        norm = "tolerance 1e-30; relTol 0; minIter 100; maxIter 100;"
    preconditioner = "preconditioner DIC;"
    if method.startswith("FOAM-GAMG"):
        preconditioner = (
            "preconditioner { preconditioner GAMG; smoother DICGaussSeidel; tolerance 1e-5;"
            " relTol 0.1; nVcycles 1; }"
        )
    pressure = f"solver PCG; {preconditioner} {norm}"
    x, y, z = split_into_boxes(processes)
    bodies = {
        "system/blockMeshDict": (
            f"scale {EDGE_M};\n"
            "vertices ((0 0 0) (1 0 0) (1 1 0) (0 1 0) (0 0 1) (1 0 1) (1 1 1) (0 1 1));\n"
            f"blocks (hex (0 1 2 3 4 5 6 7) ({cells} {cells} {cells}) simpleGrading (1 1 1));\n"
            "edges ();\nboundary (\n  movingWall { type wall; faces ((3 7 6 2)); }\n"
            "  fixedWalls { type wall;"
            " faces ((0 4 7 3) (2 6 5 1) (1 5 4 0) (0 3 2 1) (4 5 6 7)); }\n"
            ");\nmergePatchPairs ();\n"
        ),
        # no field is written, as only the solver is measured
        "system/controlDict": (
            "application icoFoam;\nstartFrom startTime;\nstartTime 0;\nstopAt endTime;\n"
            f"endTime {step_s * STEPS:.9g};\ndeltaT {step_s:.9g};\n"
            "writeControl timeStep;\nwriteInterval 1000000;\npurgeWrite 0;\n"
            "writeFormat binary;\nwritePrecision 6;\nwriteCompression off;\ntimeFormat general;\n"
            "timePrecision 6;\nrunTimeModifiable false;\n"
        ),
        "system/fvSchemes": (
            "ddtSchemes { default Euler; }\n"
            "gradSchemes { default Gauss linear; }\n"
            "divSchemes { default none; div(phi,U) Gauss linear; }\n"
            "laplacianSchemes { default Gauss linear orthogonal; }\n"
            "interpolationSchemes { default linear; }\n"
            "snGradSchemes { default orthogonal; }\n"
        ),
        "system/fvSolution": (
            f"solvers {{\n  p {{ {pressure} }}\n  pFinal {{ {pressure} }}\n"
            "  U { solver PBiCGStab; preconditioner DILU; tolerance 1e-6; relTol 0; minIter 1;"
            " maxIter 100; }\n}\n"
            "PISO { nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }\n"
        ),
        "system/decomposeParDict": (
            f"numberOfSubdomains {processes};\nmethod simple;\n"
            f"simpleCoeffs {{ n ({x} {y} {z}); delta 0.001; }}\n"
        ),
        "constant/transportProperties": f"nu [0 2 -1 0 0 0 0] {VISCOSITY};\n",
        "0/U": (
            "dimensions [0 1 -1 0 0 0 0];\ninternalField uniform (0 0 0);\nboundaryField {\n"
            "  movingWall { type fixedValue; value uniform (1 0 0); }\n"
            "  fixedWalls { type noSlip; }\n}\n"
        ),
        "0/p": (
            "dimensions [0 2 -2 0 0 0 0];\ninternalField uniform 0;\nboundaryField {\n"
            "  movingWall { type zeroGradient; }\n  fixedWalls { type zeroGradient; }\n}\n"
        ),
    }
    classes = {"0/U": "volVectorField", "0/p": "volScalarField"}
    files = {}
    for path, body in bodies.items():
        place, _, name = path.partition("/")
        files[path] = (
            f"FoamFile {{ version 2.0; format ascii; class {classes.get(path, 'dictionary')};"
            f' location "{place}"; object {name}; }}\n{body}'
        )
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
