"""A run as one HTML file that reads on a phone, in the dark and on paper.

It has no script and no address outside itself. Whatever is no markup is escaped on its way in.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from scaletest.model.wording import as_options
from scaletest.render.blocks import BLOCKS, Share, Table
from scaletest.render.contents import Head, Report, Section, ThresholdLine
from scaletest.render.numbers import NOTHING, format_seconds
from scaletest.render.style import CHART, COMMON, STYLE
from scaletest.render.svg import draw_chart
from scaletest.render.text import Markup, clean_text, html_element

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
# A server adds what a file cannot say of itself.
SERVED_POLICY = f"{POLICY}; frame-ancestors 'none'"
NO_NAVIGATION = Markup("")
# What is no setting, stands elsewhere, or may hold secrets and whole documents.
LEFT_OUT = ("schema_version", "command_line", "template")
EMPTY: tuple[Any, ...] = (None, "", [], (), {})


def render(report: Report, navigation: Markup = NO_NAVIGATION) -> str:
    """Write the whole file. navigation: what stands above it, where it is a page of a site."""
    head = report.head
    return (
        template_environment()
        .get_template("report.html")
        .render(
            head=head,
            thresholds=_threshold_table(head.thresholds),
            sections=report.sections(),
            style=Markup(STYLE),
            policy=POLICY,
            is_live=False,
            navigation=navigation,
            environment=setting_pairs(head.environment),
            plan=setting_pairs(head.plan),
        )
    )


def render_contents(head: Head, sections: Sequence[Section]) -> Markup:
    """Write verdict, facts, warnings and sections, for a page with a frame of its own.

    The page has the rules of `style_below`.
    """
    template = template_environment().get_template("report.html")
    context = {
        "head": head,
        "thresholds": _threshold_table(head.thresholds),
        "sections": sections,
        "is_live": True,
    }
    return Markup("".join(template.blocks["contents"](template.new_context(context))))


def style_below(selector: str) -> str:
    """Return the CSS that `render_contents` needs inside an element of a page with other rules."""
    rules = template_environment().get_template("report.css").render()
    # pages have a size of their own for texts of charts, in units of their own charts
    return f"{selector}{{{CHART}{COMMON}{rules}.chart text{{font-size:inherit}}}}"


def render_notebook(report: Report) -> Markup:
    """Write the page for the output of a notebook, in a frame: its rules concern nothing else."""
    return html_element(
        "iframe",
        srcdoc=render(report),
        title=report.head.title,
        sandbox="",
        style="width:100%;height:40rem;border:0",
    )


def _threshold_table(lines: Sequence[ThresholdLine]) -> Table:
    rows = [(str(line.kind), line.text, as_options(line.reason)) for line in lines]
    return Table(("verdict", "threshold", "measured"), rows, texts=(0, 1, 2), layout="wrapped")


@cache
def template_environment() -> Environment:
    """Load the templates; what is no markup is escaped on its way in."""
    templates = Environment(
        loader=PackageLoader("scaletest.report"),
        autoescape=True,
        undefined=StrictUndefined,
        # markup, numbers and the like stay as they are
        finalize=lambda text: clean_text(text) if type(text) is str else text,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.tests["share"] = lambda cell: isinstance(cell, Share)
    templates.filters.update(
        anchor=heading_id,
        as_options=as_options,
        block=lambda block: BLOCKS[type(block)],
        svg=draw_chart,
    )
    return templates


def heading_id(title: str) -> str:
    """Return the id of a heading, as links to it name it."""
    return f"section-{re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')}"


def setting_pairs(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a plan or an environment holds, as names and values; durations with units."""
    texts = []
    for key, setting in settings.items():
        if key in LEFT_OUT or setting in EMPTY:
            continue
        if isinstance(setting, int | float) and key.endswith("_s") and not key.endswith("_per_s"):
            texts.append((key.removesuffix("_s").replace("_", " "), format_seconds(setting)))
        else:
            texts.append((key.replace("_", " "), setting_text(setting)))
    return texts


def setting_text(setting: object) -> str:
    """Format any value of a plan or an environment."""
    if setting in EMPTY:
        return NOTHING
    if isinstance(setting, dict):
        return ", ".join(f"{key} {setting_text(inner)}" for key, inner in setting.items())
    if isinstance(setting, list | tuple):
        return " ".join(map(setting_text, setting))
    return clean_text(setting, limit=4000)
