"""The forms in which a saturation run can be had, by the name that the command line uses."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

from scaletest.report.saturation.run import SaturationRun

TEXT_WIDTH = 100


def _text(run: SaturationRun) -> str:
    from rich.console import Console

    from scaletest.report.saturation.terminal import summary

    out = io.StringIO()
    summary(run, Console(file=out, width=TEXT_WIDTH, color_system=None))
    return out.getvalue()


def _html(run: SaturationRun) -> str:
    from scaletest.report.saturation.html import page

    return page(run)


def _markdown(run: SaturationRun) -> str:
    from scaletest.report.saturation.markdown import comment

    return comment(run)


def _csv(run: SaturationRun) -> str:
    from scaletest.report.saturation.csvs import table

    return table(run)


def _json(run: SaturationRun) -> str:
    from scaletest.report.saturation.words import pods, queries

    asked = [one.to_dict() for one in queries(run)]
    row = {
        "queries": asked,
        **run.result.to_dict(),
        "pods": [one.to_dict() for one in pods(run)],
        "folder": run.folder,
    }
    return (
        json.dumps(
            {**row, **({"extra": run.extra} if run.extra else {})}, indent=2, allow_nan=False
        )
        + "\n"
    )


def _junit(run: SaturationRun) -> str:
    from scaletest.report.saturation.junit import suite

    return suite(run)


FORMATS: dict[str, Callable[[SaturationRun], str]] = {
    "text": _text,
    "html": _html,
    "md": _markdown,
    "csv": _csv,
    "json": _json,
    "junit": _junit,
}
