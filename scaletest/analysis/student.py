"""Two-sided 95 % quantiles of Student's t, from a short table; the source is any statistics textbook's t table."""

from __future__ import annotations

# degrees of freedom -> quantile 0.975
_TABLE = (
    (1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (6, 2.447), (7, 2.365), (8, 2.306), (9, 2.262),
    (10, 2.228), (12, 2.179), (15, 2.131), (20, 2.086), (30, 2.042), (60, 2.000), (120, 1.980),
)  # fmt: skip
_NORMAL = 1.960


def t95(freedom: int) -> float:
    """The 0.975 quantile for `freedom` degrees of freedom; between rows the larger (safer) value; infinity for 0."""
    if freedom < 1:
        return float("inf")
    below = [value for row, value in _TABLE if row <= freedom]
    return below[-1] if freedom <= _TABLE[-1][0] else _NORMAL
