"""A lifecycle run as one HTML file: no script, nothing from elsewhere, readable in the dark and on
paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from scaletest.analysis.lifecycle.result import LifecycleResult
from scaletest.render.numbers import NOTHING, plural, significant
from scaletest.render.style import CHART, PALETTE
from scaletest.render.text import Markup, clean
from scaletest.report.lifecycle import figures
from scaletest.report.lifecycle.terminal import HEADINGS, booked, cells


def page(
    result: LifecycleResult, title: str, plan: Mapping[str, Any], environment: Mapping[str, Any]
) -> str:
    """The whole file. plan, environment: shown as they are, templates left out."""
    pages = Environment(
        loader=PackageLoader("scaletest.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_safe,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    rate = result.throughput
    facts = [
        ("measured", str(result.books.measured)),
        ("pending", str(result.books.pending)),
        ("failed", str(result.books.failed)),
        ("lost", str(result.books.lost)),
        ("rejected", str(result.books.rejected)),
        ("pods seen", str(rate.seen)),
        ("pods scheduled a second", significant(rate.per_s) if rate.per_s else NOTHING),
    ]
    return pages.get_template("lifecycle.html").render(
        style=Markup(PALETTE + CHART),
        title=title,
        verdict=result.verdict,
        facts=facts,
        booked=booked(result),
        headings=HEADINGS,
        steps=[cells(one) for one in result.steps],
        thresholds=[(str(one.kind), one.text, one.reason) for one in result.thresholds],
        rejections=[(str(count), reason) for reason, count in result.books.rejections.items()],
        failures=[(str(count), reason) for reason, count in result.books.failures.items()],
        skipped=[
            f"{plural(count, 'workload')} left out: {reason}"
            for reason, count in result.skipped.items()
        ],
        placing=figures.placing(result),
        general=[figures.charts(one) for one in figures.panels(result, figures.GENERAL)],
        detailed=[figures.charts(one) for one in figures.panels(result, figures.DETAILED)],
        plan=_pairs(plan),
        environment=_pairs(environment),
    )


def _pairs(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    kept = (
        (key, value)
        for key, value in values.items()
        if value and key not in ("template", "schema_version")
    )
    return [(key.replace("_", " "), clean(value, 300)) for key, value in kept]


def _safe(value: object) -> object:
    """Foreign text printable; markup and numbers as they are."""
    return clean(value) if type(value) is str else value
