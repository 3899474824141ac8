"""A run as JSON: everything that other formats show, in base units."""

import json

from scaletest.render.contents import Report


def render(report: Report) -> str:
    """Write the whole document."""
    return json.dumps(report.data(), indent=2, allow_nan=False) + "\n"
