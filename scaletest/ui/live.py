"""The page Live."""

from __future__ import annotations

from flask import render_template

from scaletest.pages.site import READ


def live() -> str:
    """The page."""
    return render_template("ui.html")


ROUTES = (("/live", READ, live),)
