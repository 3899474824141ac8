"""Draws the charts of docs/how-to/autoscale.md: a rule that flaps, and one that does not.

The random seed is fixed, so the charts are always the same.
"""

import random

from scaletest.capacity.autoscale.load import draw_requests, draw_run_times
from scaletest.capacity.autoscale.rule import parse_rule
from scaletest.capacity.autoscale.simulation import simulate
from scaletest.capacity.report import common_scale, draw_course
from scaletest.render.chart import Chart
from scaletest.render.style import CHART, PALETTE
from scaletest.render.svg import draw_chart

COMPLAINT, REMEDY = "waiting-fast", "desired:window=300"


def charts() -> tuple[str, str]:
    """Draw two SVGs on one scale: half an hour of two requests a minute, four minutes each."""
    chance = random.Random(1)
    requests = draw_requests("poisson", chance, draw_run_times(chance, 240.0, 0.3), 2 / 60, 1800.0)
    results = [
        simulate(requests, parse_rule(rule), 20.0, random.Random(1)) for rule in (COMPLAINT, REMEDY)
    ]
    until_s, top = common_scale(results)
    first, second = (standalone_chart(draw_course(result, until_s, top)) for result in results)
    return first, second


def standalone_chart(drawn: Chart) -> str:
    """Return a chart as a file of its own, with its style."""
    opening, _, rest = str(draw_chart(drawn)).partition(">")
    named = opening.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"')
    return f"{named}><style>{PALETTE}{CHART}</style>{rest}\n"
