"""The page Overview."""

from __future__ import annotations

from flask import render_template

from scaletest.pages.site import READ


def overview() -> str:
    """The page."""
    return render_template("ui.html")


ROUTES = (("/", READ, overview),)
