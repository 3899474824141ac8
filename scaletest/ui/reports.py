"""Reports of stored runs: a run as its HTML report or as a file, runs compared, and a trend.

A report is judged anew from the run's records, and kept as long as its files stay the same.
"""

from collections import Counter
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from flask import Response, abort, g, make_response, render_template, request

from scaletest.model.errors import ScaletestError, UsageError
from scaletest.model.labels import LATEST
from scaletest.model.wording import as_options
from scaletest.pages.site import READ, printable_line
from scaletest.render.blocks import Pairs
from scaletest.render.contents import Report
from scaletest.render.text import Markup
from scaletest.report import formats
from scaletest.report.comparison import comparison_report
from scaletest.report.formats import html
from scaletest.report.trend import trend_report
from scaletest.runs import registry
from scaletest.runs.folder import RunFolder
from scaletest.runs.listing import choose_for_trend
from scaletest.runs.places import find_named
from scaletest.runs.run_index import stamps_of
from scaletest.stats.comparison import TOLERANCE
from scaletest.ui.reading import PageCache
from scaletest.ui.runs import run_index
from scaletest.ui.sources import of_application, sources

# Forms that a run is downloaded in: their names and types.
DOWNLOADS = {
    "html": ("HTML", "text/html"),
    "md": ("Markdown", "text/markdown"),
    "png": ("PNG", "image/png"),
    "json": ("JSON", "application/json"),
    "csv": ("CSV", "text/csv"),
    "junit": ("JUnit", "application/xml"),
}
# Runs that may be chosen without the list, and that one comparison takes.
MOST_CHOICES = 200
MOST_COMPARED = 20


def report_cache() -> PageCache:
    """Return the reports that this application made last."""
    return of_application("reports", PageCache)


def folder_of(name: str) -> RunFolder | None:
    """Find a run of the archive, or the one whose command serves these pages.

    name: that of its folder, or one that people gave it, of which the newest run counts; or LAST.
    """
    run_of_command = sources().run
    if run_of_command is not None and run_of_command.name == name:
        return run_of_command
    folder = find_named(sources().root, name)
    if folder is None:
        called = [run for run in run_index().runs() if name in (LATEST, run.name)]
        folder = find_named(sources().root, called[-1].run) if called else None
    return folder


def run(name: str) -> Response:
    """Show the report of a run, or the run in the form that the suffix of its name says."""
    form = ""
    folder = folder_of(name)
    if folder is None:
        stem, _, form = name.rpartition(".")
        folder = folder_of(stem) if form in DOWNLOADS else None
    if folder is None:
        abort(404)

    def make_page() -> bytes:
        report = registry.report(folder)
        if form:
            return formats.content(report, form)
        links = [("Compare with another run", f"/compare?run={quote(folder.name)}")]
        return _page_of_site(report, links, folder)

    try:
        content = report_cache().page((folder.path, form or g.root), stamps_of(folder), make_page)
    except (ScaletestError, OSError) as error:
        page = render_template(
            "message.html", title=printable_line(folder.name), text=in_sentences(error)
        )
        return make_response(page, 422)
    response = _page_response(content, DOWNLOADS[form or "html"][1])
    if form:
        file = quote(f"{folder.name}.{form}".replace(".junit", ".junit.xml"), safe="")
        response.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{file}"
    return response


def _page_response(content: bytes, mimetype: str = "text/html") -> Response:
    response = Response(content, mimetype=mimetype)
    response.headers["Content-Security-Policy"] = html.SERVED_POLICY
    return response


def in_sentences(error: Exception) -> str:
    """Put an error into sentences: what happened, and what to do where that is known."""
    reason = printable_line(str(error)).rstrip(".")
    remedy = printable_line(getattr(error, "hint", "")).rstrip(".")
    return as_options(f"{reason}. What to do: {remedy}." if remedy else f"{reason}.")


def compare() -> Response:
    """Show runs over each other, the changed measures first.

    Where they are not named, or cannot be compared, it is a form to choose them.
    """
    names = list(dict.fromkeys(filter(None, request.args.getlist("run"))))
    if len(names) < 2:
        return _ask_for_runs(names, "Choose a second run." if names else "")
    try:
        if len(names) > MOST_COMPARED:
            raise UsageError(
                f"{len(names)} runs are too many", hint=f"mark at most {MOST_COMPARED}"
            )
        folders = []
        for name in names:
            folder = folder_of(name)
            if folder is None:
                raise UsageError(f"there is no run {name!r:.80}", hint="choose others")
            folders.append(folder)
        # the oldest run is the base
        folders.sort(key=lambda folder: (folder.began, folder.name))
        key = ("compare", g.root, *(folder.path for folder in folders))
        stamps = tuple(chain.from_iterable(map(stamps_of, folders)))
        content = report_cache().page(key, stamps, lambda: _comparison_page(folders))
    except (ScaletestError, OSError) as error:
        return _ask_for_runs(names, in_sentences(error), status=400)
    return _page_response(content)


def _comparison_page(folders: list[RunFolder]) -> bytes:
    comparison = registry.compare(folders, TOLERANCE, force=False)
    links = [("Compare other runs", "/compare")]
    for folder in folders:
        links.append((folder.labels.name or folder.name, f"/runs/{quote(folder.name)}"))
    return _page_of_site(comparison_report(comparison), links)


def trend() -> Response:
    """Show a measure over the runs of a name; where there is no name, a form that asks for it."""
    name = request.args.get("name", "").strip()
    measure = request.args.get("measure", "")
    stored = run_index().runs()
    problem = ""
    if name:
        try:
            folders = [RunFolder(Path(run.folder)) for run in choose_for_trend(stored, name)]
            key = ("trend", g.root, name, measure, *(folder.path for folder in folders))
            stamps = tuple(chain.from_iterable(map(stamps_of, folders)))
            content = report_cache().page(key, stamps, lambda: _trend_page(folders, name, measure))
            return _page_response(content)
        except (ScaletestError, OSError) as error:
            problem = in_sentences(error)
    # the names that several runs have are offered
    counts = Counter(run.name for run in stored if run.name)
    names = [offered for offered, count in counts.items() if count > 1][:MOST_CHOICES]
    page = render_template("trend.html", title="Trend", name=name, problem=problem, names=names)
    return make_response(page, 400 if problem else 200)


def _trend_page(folders: list[RunFolder], name: str, measure: str) -> bytes:
    trend = registry.trend(folders, measure, TOLERANCE)
    links = [("Other runs", "/trend")]
    for choice in trend.choices:
        links.append((choice, f"/trend?name={quote(name)}&measure={quote(choice)}"))
    return _page_of_site(trend_report(trend, name), links)


def _page_of_site(report: Report, links: Pairs, run: RunFolder | None = None) -> bytes:
    """Write a report below the navigation. run: what it is about, if that is a single one."""
    navigation = render_template(
        "report_navigation.html",
        links=links,
        run=run,
        can_run_again=run is not None and registry.can_run_again(run),
        forms=DOWNLOADS,
    )
    return html.render(report, Markup(navigation)).encode(errors="replace")


def _ask_for_runs(names: list[str], problem: str, status: int = 200) -> Response:
    """Show the form that asks which runs to compare."""
    stored = run_index().runs()
    return make_response(
        render_template(
            "compare.html",
            title="Compare",
            problem=problem,
            names=names[:MOST_COMPARED],
            emptiness=sources().why_no_runs,
            runs=[
                run
                for number, run in enumerate(reversed(stored))
                if number < MOST_CHOICES or run.run in names
            ],
        ),
        status,
    )


ROUTES = (("/runs/<name>", READ, run), ("/compare", READ, compare), ("/trend", READ, trend))
