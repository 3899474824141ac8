"""Small systems of linear equations."""

from __future__ import annotations

from collections.abc import Sequence


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float] | None:
    """Solve `matrix` x = `right` (up to 3 x 3) by Gauss with pivoting; None when singular."""
    size = len(right)
    rows = [[*equation, constant] for equation, constant in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda index: abs(rows[index][column]))
        if abs(rows[pivot][column]) < 1e-300:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for index in range(size):
            if index != column:
                factor = rows[index][column] / rows[column][column]
                rows[index] = [
                    a - factor * b for a, b in zip(rows[index], rows[column], strict=True)
                ]
    return [rows[index][size] / rows[index][index] for index in range(size)]
