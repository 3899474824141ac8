"""The page Runs."""

from __future__ import annotations

from flask import render_template

from scaletest.pages.site import READ


def runs() -> str:
    """The page."""
    return render_template("ui.html")


ROUTES = (("/runs", READ, runs),)
