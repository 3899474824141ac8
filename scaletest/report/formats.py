"""The forms in which a run can be had, by the name that the command line uses."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

from scaletest.report.run import Run

TEXT_WIDTH = 100


def _text(run: Run) -> str:
    from rich.console import Console

    from scaletest.report.terminal import summary

    out = io.StringIO()
    summary(run, Console(file=out, width=TEXT_WIDTH, color_system=None))
    return out.getvalue()


def _html(run: Run) -> str:
    from scaletest.report.html import page

    return page(run)


def _markdown(run: Run) -> str:
    from scaletest.report.markdown import comment

    return comment(run)


def _csv(run: Run) -> str:
    from scaletest.report.csvs import table

    return table(run)


def _json(run: Run) -> str:
    return (
        json.dumps({**run.result.to_dict(), "folder": run.folder}, indent=2, allow_nan=False) + "\n"
    )


def _junit(run: Run) -> str:
    from scaletest.report.junit import suite

    return suite(run)


FORMATS: dict[str, Callable[[Run], str]] = {
    "text": _text,
    "html": _html,
    "md": _markdown,
    "csv": _csv,
    "json": _json,
    "junit": _junit,
}
