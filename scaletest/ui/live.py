"""The pages Live: the runs in progress of the archive, and one of them.

A run is judged anew when its files have changed, and less often where that takes long.
"""

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import quote

from flask import Response, g, make_response, redirect, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from scaletest.model.errors import ScaletestError
from scaletest.model.labels import UNLABELLED, Labels
from scaletest.model.run_progress import RunProgress
from scaletest.model.verdict import VerdictKind
from scaletest.model.wording import as_options
from scaletest.pages.site import READ, printable_line
from scaletest.render.text import Markup
from scaletest.report.formats import html
from scaletest.runs import registry
from scaletest.runs.folder import PROGRESS, RunFolder
from scaletest.runs.progress import FROM_COMMAND, LONGEST_PAGE_S
from scaletest.runs.run_index import stamps_of
from scaletest.ui.reports import folder_of, report_cache
from scaletest.ui.runs import run_index
from scaletest.ui.sources import of_application, sources

NOTHING = Markup("")
RUNNING, ENDED, INTERRUPTED = "running", "ended", "interrupted"
# An open page asks every two seconds; one that did not for so long is closed, or hidden.
SILENT_S = 6.0


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run in progress, or one that has just ended, as its page shows it."""

    progress: RunProgress
    state: str  # RUNNING, ENDED, or INTERRUPTED where its process is gone
    contents: Markup = NOTHING  # the report so far
    problem: str = ""  # why there is none
    labels: Labels = UNLABELLED

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.progress.run

    @property
    def title(self) -> str:
        """The type of the run and what is measured; the run's name where these are unknown."""
        run_type, title = map(printable_line, (self.progress.run_type, self.progress.title))
        if title.startswith(run_type):
            return title or self.name
        return ": ".join(filter(None, (run_type, title)))


@dataclass(slots=True)
class OpenPages:
    """The pages of runs that are open in a browser."""

    asked_s: float = -SILENT_S  # when one of them asked last
    ends: int = 0  # how often they were told of the end of a run

    def wait_for_the_end(self) -> None:
        """Wait until the open pages show the end, as far as they still ask.

        A page shows the end when it asks again after it was told.
        """
        until_s = time.monotonic() + LONGEST_PAGE_S
        while self.ends < 2 and time.monotonic() < min(until_s, self.asked_s + SILENT_S):
            time.sleep(0.1)


def open_pages() -> OpenPages:
    """Return the open pages of this application."""
    return of_application("open pages", OpenPages)


def live() -> AnyResponse:
    """Show the run in progress, or a list where there are several or none."""
    runs = runs_in_progress()
    if len(runs) == 1:
        return redirect(f"{g.root}/live/{quote(runs[0].name)}")
    latest = run_index().runs()[:-6:-1]
    page = render_template("live.html", title="Live", runs=runs, latest=latest)
    return make_response(page)


def live_run(name: str) -> Response:
    """Show a run in progress; also one that has just ended."""
    if FROM_COMMAND not in request.headers:
        # the page is not silent while its report is made, which may take long
        open_pages().asked_s = time.monotonic() + LONGEST_PAGE_S
    folder = folder_of(name)
    run = _add_report(_describe_run(folder), folder) if folder else None
    page = render_template("live_run.html", title=run.title if run else "Live", name=name, run=run)
    if FROM_COMMAND not in request.headers:
        open_pages().asked_s = time.monotonic()
        open_pages().ends += run is not None and run.state == ENDED
    return make_response(page, 200 if run else 404)


def runs_in_progress() -> list[LiveRun]:
    """Return the runs in progress: those of the archive, and that of the command of these pages."""
    names = [run.run for run in run_index().runs() if run.in_use]
    own_run = sources().run
    if own_run is not None:
        names.append(own_run.name)
    folders = filter(None, map(folder_of, dict.fromkeys(names)))
    return [run for run in map(_describe_run, folders) if run.state == RUNNING]


def _describe_run(folder: RunFolder) -> LiveRun:
    """Describe how far a run is by its folder, without its report."""
    is_held = folder.in_use
    progress = RunProgress(folder.name, "", "", ended=not is_held)
    # where it cannot be read, the page shows what else is known
    with suppress(ScaletestError):
        progress = RunProgress.from_dict(folder.read(PROGRESS))
    state = RUNNING if is_held else INTERRUPTED
    return LiveRun(progress, ENDED if progress.ended else state, labels=folder.labels)


def _add_report(run: LiveRun, folder: RunFolder) -> LiveRun:
    """Return the run with its report so far, or with the whole one when it has ended."""
    is_final = run.state != RUNNING

    def make_report() -> tuple[Markup, str]:
        try:
            report = registry.report(folder, is_final=is_final)
            sections = report.sections()
        except (ScaletestError, OSError) as error:
            return NOTHING, as_options(str(error))
        if report.head.verdict.kind is VerdictKind.RUNNING and not sections:
            # its figures would be those of no step at all
            return NOTHING, ""
        return html.render_contents(report.head, sections), ""

    key = ("live", folder.path, is_final)
    # the report so far takes at most a tenth of a processor's time
    rest_factor = 0.0 if is_final else 10.0
    contents, problem = report_cache().page(
        key, stamps_of(folder), make_report, rest_factor=rest_factor
    )
    return replace(run, contents=contents, problem=problem)


def report_style() -> Response:
    """Serve the rules of reports for the part of a page that shows one."""
    return Response(html.style_below(".report"), mimetype="text/css")


ROUTES = (
    ("/live", READ, live),
    ("/live/<name>", READ, live_run),
    ("/report.css", READ, report_style),
)
