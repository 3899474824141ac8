"""A progress whose lines a test reads, as a log would have them."""

from typing import Any

from scaletest.cli.progress_views import plain_line
from scaletest.model.run_progress import ProgressChange, RunProgress
from scaletest.runs.progress import Progress


def telling(lines: list[str], **options: Any) -> Progress:
    """A progress that adds its lines to these."""

    def show(change: ProgressChange, state: RunProgress, message: str) -> None:
        if line := plain_line(change, state, message):
            lines.append(line)

    return Progress(show, **options)
