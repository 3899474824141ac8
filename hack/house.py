"""The house: a picture of the packages and of what imports what, from the imports themselves.

A package stands on the highest floor that it imports from, so an arrow could only go down. Features
are beside each other above the core, which they share.
"""

from collections import defaultdict
from html import escape
from itertools import groupby

import grimp

PACKAGES = ("scaletest", "scaletest_workers")
FEATURES = ("validation", "saturation", "lifecycle", "benchmarks", "capacity")
# pixels
WIDTH, ROOM, GAP, LEFT = 980, 40, 12, 24


def picture() -> str:
    """Draw every floor, the features at the top of the core that they use."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = _imports_of_packages(graph)
    floors = {package: _floor(package, imports) for package in imports}
    rooms = sorted(floors, key=lambda package: (-floors[package], package))
    rows = [list(group) for _, group in groupby(rooms, key=lambda package: floors[package])]
    height = len(rows) * (ROOM + GAP) + GAP + 40
    marks = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="system-ui, sans-serif" font-size="14" role="img">',
        "<title>The packages of scaletest: each imports only from floors below its own</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="26" fill="#333333">A package imports only from floors below its own.'
        " Orange rooms are features.</text>",
    ]
    for index, row in enumerate(rows):
        width = (WIDTH - 2 * LEFT - (len(row) - 1) * GAP) / len(row)
        for place, package in enumerate(row):
            x, y = LEFT + place * (width + GAP), 40 + index * (ROOM + GAP)
            fill = "#fde3c8" if package in FEATURES else "#dbe7f5"
            marks += [
                f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{ROOM}" rx="5"'
                f' fill="{fill}" stroke="#5b6b7b"/>',
                f'<text x="{x + width / 2:.0f}" y="{y + 25}" text-anchor="middle"'
                f' fill="#111111">{escape(package)}</text>',
            ]
    return "\n".join([*marks, "</svg>"]) + "\n"


def _imports_of_packages(graph: grimp.ImportGraph) -> dict[str, set[str]]:
    """Map each package below scaletest, and the workers, to the packages that it imports."""
    imports: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules:
        package = _package(module)
        if package:
            imported = map(_package, graph.find_modules_directly_imported_by(module))
            imports[package] |= {name for name in imported if name not in ("", package)}
    return dict(imports)


def _package(module: str) -> str:
    """Name the room of a module; "" for the entrance, which only says where the others are."""
    first, _, rest = module.partition(".")
    if first == "scaletest_workers":
        return "workers"
    return "" if rest in ("", "__main__") else rest.split(".")[0]


def _floor(package: str, imports: dict[str, set[str]], above: tuple[str, ...] = ()) -> int:
    """Count the floors below a package. What two packages import from each other adds none."""
    below = imports[package] - {*above, package}
    return 1 + max((_floor(name, imports, (*above, package)) for name in below), default=-1)
