"""Simulated autoscaling rules as one HTML page: the figures side by side, and each rule's course
over time.

One file without scripts or anything from elsewhere; the charts are SVG, on one scale so that rules
can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from scaletest.analysis.autoscale.rule import SimulationPoint, SimulationResult

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 900, 190, 48, 26, 24
COLOURS = {"waiting": "#c2410c", "running": "#15803d", "replicas": "#2563eb"}

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #8884; }
th:first-child { text-align: left; }
.wide { overflow-x: auto; }
svg { width: 100%; height: auto; }
"""

COLUMNS = (
    "rule",
    "replica changes",
    "flips",
    "killed",
    "mean wait, s",
    "p95 wait, s",
    "makespan, s",
    "pod-seconds",
    "peak",
)


def page(title: str, results: Sequence[SimulationResult], notes: dict[str, str]) -> str:
    """The whole page. notes: a line for each rule."""
    parts = [
        (
            '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(title)}</title>"
        ),
        f"<style>{STYLE}</style>\n<h1>{escape(title)}</h1>",
        '<div class="wide"><table><thead><tr>',
        *(f'<th scope="col">{name}</th>' for name in COLUMNS),
        "</tr></thead><tbody>",
    ]
    for result in results:
        first, *rest = row(result)
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        parts.append(f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>')
    parts.append("</tbody></table></div>")
    until_s, top = scales(results)
    for result in results:
        parts.append(f"<h2>{escape(result.rule)}</h2><p>{escape(notes.get(result.rule, ''))}</p>")
        parts.append(chart(result, until_s, top))
    return "\n".join([*parts, "</html>", ""])


def row(result: SimulationResult) -> list[str]:
    """The figures of one rule as text, in the order of COLUMNS."""
    return [
        result.rule,
        str(result.changes),
        str(result.flips),
        str(result.killed),
        _number(result.mean_wait_s),
        _number(result.wait_s(0.95)),
        _number(result.makespan_s) if result.makespan_s is not None else "not finished",
        f"{result.pod_s:.0f}",
        str(result.peak),
    ]


def scales(results: Sequence[SimulationResult]) -> tuple[float, int]:
    """The scale of all charts: the latest end in seconds, and the largest number."""
    points = [point for result in results for point in result.course]
    most = max((max(p.replicas, p.pods, p.waiting, p.running) for p in points), default=1)
    return max((p.at_s for p in points), default=1.0) or 1.0, max(1, most)


def chart(result: SimulationResult, until_s: float, top: int) -> str:
    """One rule's course: what waits and runs as areas' outlines, the wanted replicas as steps."""
    lines = []
    for index, (name, colour) in enumerate(COLOURS.items()):
        path = _steps(result.course, name, until_s, top)
        dash = ' stroke-dasharray="5 3"' if name == "waiting" else ""
        lines.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
        lines.append(
            f'<text x="{LEFT + 4 + index * 110}" y="15" fill="{colour}" font-size="13" '
            f'font-family="sans-serif">{name}</text>'
        )
    base = HEIGHT - BOTTOM
    text = 'fill="#808080" font-size="12" font-family="sans-serif"'
    killed = f", {result.killed} killed" if result.killed else ""
    label = f"{result.rule}: {result.changes} replica changes, {result.flips} flips{killed}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(label)}">'
        f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH}" y2="{base}" stroke="#808080"/>'
        f'<line x1="{LEFT}" y1="{TOP}" x2="{LEFT}" y2="{base}" stroke="#808080"/>'
        f'<text x="{LEFT - 6}" y="{TOP + 8}" text-anchor="end" {text}>{top}</text>'
        f'<text x="{LEFT - 6}" y="{base}" text-anchor="end" {text}>0</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 6}" {text}>0</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 6}" text-anchor="end" {text}>{until_s / 60:.0f} min</text>'
        f'<text x="{WIDTH}" y="15" text-anchor="end" {text}>{escape(label)}</text>'
        f"{''.join(lines)}</svg>"
    )


def _steps(course: Sequence[SimulationPoint], name: str, until_s: float, top: int) -> str:
    """A path that holds each value until the next; points that change nothing are left out."""
    commands: list[str] = []
    last: int | None = None
    for point in course:
        value: int = getattr(point, name)
        if value != last or point is course[-1]:
            x = LEFT + (WIDTH - LEFT) * point.at_s / until_s
            y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top
            commands.append(f"H{x:.1f}V{y:.1f}" if commands else f"M{x:.1f} {y:.1f}")
        last = value
    return "".join(commands) or "M0 0"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"
