"""The pages Live: the runs in progress of the archive and of Redis, and one of them.

A run of the archive is judged anew when its files have changed, and less often where that takes
long. A run that is measured elsewhere is shown as its command tells it to Redis.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast
from urllib.parse import quote

from flask import Response, g, make_response, redirect, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from scaletest.broker.run_progress import PublishedRun
from scaletest.model.errors import InvalidValue, ScaletestError, Unreachable
from scaletest.model.labels import UNLABELLED, Labels
from scaletest.model.run_progress import RunProgress
from scaletest.model.verdict import VerdictKind
from scaletest.pages.site import READ, printable
from scaletest.render import encoding
from scaletest.render.encoding import ReportOutline, outline
from scaletest.render.text import Markup
from scaletest.report.formats import html
from scaletest.runs import registry
from scaletest.runs.folder import PROGRESS, RunFolder
from scaletest.runs.listing import Signature
from scaletest.ui.open_pages import OpenPages
from scaletest.ui.reading import reader
from scaletest.ui.reports import folder_of, in_sentences, stamps_of
from scaletest.ui.runs import PATIENCE_S, index
from scaletest.ui.sources import of_application, sources

# A report is made at most this often, and takes at most this part of a processor's time: a process
# of low priority waits for one much longer than it uses it.
REPORT_EVERY_S, REPORT_PAUSE = 2.0, 10.0
MOST_REPORTS = 8
MOST_PROGRESS_BYTES = 128 * 1024
# A command tells Redis of its run every few seconds; one that was silent for longer may be gone.
SILENT_S = 15.0
NOTHING = Markup("")
RUNNING, ENDED, INTERRUPTED, SILENT = "running", "ended", "interrupted", "silent"


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run as its page shows it.

    state: RUNNING, ENDED, INTERRUPTED where its process is gone, or SILENT. contents: the report so
    far. problem: why there is none. is_stored: whether its report can be asked for here. age_s:
    since it was told of. labels: of a run that is stored here.
    """

    progress: RunProgress
    state: str
    is_stored: bool
    contents: Markup = NOTHING
    problem: str = ""
    age_s: float = 0.0
    labels: Labels = UNLABELLED

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.progress.run

    @property
    def title(self) -> str:
        """Its type, and the title of what is measured; its name where these are unknown."""
        run_type, title = map(printable, (self.progress.run_type, self.progress.title))
        if title.startswith(run_type):
            return title or self.name
        return ": ".join(filter(None, (run_type, title)))


@dataclass(frozen=True, slots=True)
class _ReportSoFar:
    """contents: of the files with these stamps; due_s: when it may be made again."""

    stamps: Signature
    contents: Markup
    problem: str
    due_s: float


class LiveReports:
    """The reports so far of runs in progress. Only one is made at a time."""

    def __init__(self) -> None:
        self._reports: dict[tuple[Path, bool], _ReportSoFar] = {}
        self._lock = threading.Lock()

    def contents(self, folder: RunFolder, *, is_final: bool = False) -> tuple[Markup, str]:
        """The report so far, and why there is none. is_final: the run is over, whoever still holds
        it, so none is older.
        """
        key, stamps = (folder.path, is_final), stamps_of(folder)
        with self._lock:
            report = self._reports.pop(key, None)
            if report is None or (
                report.stamps != stamps and (is_final or time.monotonic() >= report.due_s)
            ):
                began_s = time.thread_time()
                contents, problem = _contents(folder, is_final=is_final)
                pause_s = REPORT_PAUSE * (time.thread_time() - began_s)
                due_s = time.monotonic() + max(REPORT_EVERY_S, pause_s)
                report = _ReportSoFar(stamps, contents, problem, due_s)
            self._reports[key] = report
            while len(self._reports) > MOST_REPORTS:
                del self._reports[next(iter(self._reports))]
            return report.contents, report.problem


def live() -> AnyResponse:
    """The run in progress where there is one; else a list of them."""
    runs, problem = in_progress()
    if len(runs) == 1 and not problem:
        return redirect(f"{g.root}/live/{quote(runs[0].name)}")
    stored, _ = index().look(PATIENCE_S)
    page = render_template(
        "live.html",
        title="Live",
        runs=runs,
        problem=problem,
        latest=stored[:-6:-1],
        has_redis=reader() is not None,
    )
    return make_response(page)


def live_run(name: str) -> Response:
    """A run in progress; also one that has just ended."""
    run, problem, missing, page_name = None, "", 404, request.headers.get("X-Page", "")
    open_pages().asked(page_name)
    folder = folder_of(name)
    if folder is not None:
        run = _stored(folder)
        contents, problem = _reports().contents(folder, is_final=run.state != RUNNING)
        run = replace(run, contents=contents, problem=problem)
    elif reader() is not None:
        try:
            run = _published(name)
        except Unreachable as error:
            problem, missing = in_sentences(error), 503
    title, status = (run.title, 200) if run else ("Live", missing)
    page = render_template("live_run.html", title=title, name=name, run=run, problem=problem)
    shows_end = run is not None and run.state == ENDED
    open_pages().answered(page_name, shows_end=shows_end)
    return make_response(page, status)


def open_pages() -> OpenPages:
    """The open pages of runs of this application."""
    return of_application("open pages", OpenPages)


def in_progress() -> tuple[list[LiveRun], str]:
    """The runs in progress, those of the archive first; and why others are not known."""
    stored, _ = index().look(PATIENCE_S)
    names = [run.run for run in stored if run.in_use]
    if sources().run is not None:
        names.append(cast(RunFolder, sources().run).name)
    folders = filter(None, map(folder_of, dict.fromkeys(names)))
    runs = [run for run in map(_stored, folders) if run.state == RUNNING]
    if reader() is None:
        return runs, ""
    try:
        published = reader().runs()
    except Unreachable as error:
        return runs, in_sentences(error)
    known = {run.name for run in runs}
    elsewhere = [_elsewhere(run) for run in published if run.progress.run not in known]
    return [*runs, *(run for run in elsewhere if run.state == RUNNING)], ""


def _stored(folder: RunFolder) -> LiveRun:
    """A run of the archive, without its report."""
    is_held, progress = folder.in_use, _progress(folder)
    unknown = RunProgress(folder.name, "", "", ended=not is_held)
    shown = progress or unknown
    state = RUNNING if is_held else INTERRUPTED
    return LiveRun(shown, ENDED if shown.ended else state, True, labels=folder.labels)


def _progress(folder: RunFolder) -> RunProgress | None:
    """The progress in a run's folder; None where there is none that can be read."""
    if not 0 < folder.size(PROGRESS) <= MOST_PROGRESS_BYTES:
        return None
    try:
        return RunProgress.from_dict(folder.read(PROGRESS))
    except ScaletestError:
        return None


def _contents(folder: RunFolder, *, is_final: bool) -> tuple[Markup, str]:
    try:
        report = outline(registry.report(folder, is_final=is_final))
    except (ScaletestError, OSError) as error:
        return NOTHING, str(error)
    if report.head.verdict.kind is VerdictKind.RUNNING and not report.sections:
        # its figures would be those of no step at all
        return NOTHING, ""
    return _shown(report), ""


def _shown(report: ReportOutline) -> Markup:
    return html.contents(report.head, report.sections)


def _published(name: str) -> LiveRun | None:
    """A run that is measured elsewhere; None where Redis knows none of that name."""
    published, report = reader().run(name)
    if published is None:
        return None
    run = _elsewhere(published)
    try:
        return replace(run, contents=_shown(encoding.decode(report))) if report else run
    except InvalidValue as error:
        return replace(run, problem=error.message)


def _elsewhere(published: PublishedRun) -> LiveRun:
    progress, age_s = published.progress, published.age_s
    state = SILENT if age_s > SILENT_S else RUNNING
    if progress.ended:
        state = ENDED
    return LiveRun(progress, state, False, age_s=age_s)


def _reports() -> LiveReports:
    return of_application("live", LiveReports)


def report_style() -> Response:
    """The rules of reports for the part of a page that shows one."""
    return Response(html.style_below(".report"), mimetype="text/css")


ROUTES = (
    ("/live", READ, live),
    ("/live/<name>", READ, live_run),
    ("/report.css", READ, report_style),
)
