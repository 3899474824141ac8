"""The page Runs: the stored runs, chosen and sorted by the query, a hundred at a time."""

from dataclasses import dataclass
from urllib.parse import urlencode

from flask import Flask, render_template, request

from scaletest.pages.site import READ, page_of
from scaletest.render.spark import sparkline
from scaletest.render.text import Markup
from scaletest.runs.listing import SORTS, VERDICTS, ListedRun, RunFilter, choose_runs
from scaletest.runs.registry import TYPES, run_type
from scaletest.runs.run_index import RunIndex
from scaletest.ui.sources import of_application, sources

AT_ONCE = 100
ORDERS = {
    "began": "newest first",
    "name": "by name",
    "verdict": "worst first",
    "elapsed": "longest first",
}


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs the query of the page asks for, and in which order."""

    wanted: RunFilter
    order: str

    def address(self, page: int) -> str:
        """Return the query of a page of the same list."""
        wanted = self.wanted
        pairs = [("type", wanted.run_type), ("name", wanted.name)]
        pairs += [("verdict", verdict) for verdict in wanted.verdicts]
        pairs += [("sort", self.order), ("page", str(page))]
        return "?" + urlencode([pair for pair in pairs if pair[1]])


def run_index() -> RunIndex:
    """Return the index of the runs of this application."""
    return of_application("runs", lambda: RunIndex(sources().root))


def read_all_runs(app: Flask) -> None:
    """Read all runs, before somebody asks for the page."""
    with app.app_context():
        run_index().runs()


def runs() -> str:
    """Show the stored runs that fit the query, a hundred a page."""
    # unknown values in the query count as not asked for
    arguments = request.args
    wanted_type = arguments.get("type", "")
    order = arguments.get("sort", "")
    query = RunQuery(
        RunFilter(
            wanted_type if wanted_type in TYPES else "",
            tuple(verdict for verdict in VERDICTS if verdict in arguments.getlist("verdict")),
            arguments.get("name", "").strip(),
        ),
        order if order in SORTS else "began",
    )
    # all runs that fit, of which a page shows some; `choose_runs` sorts upwards
    stored = run_index().runs()
    fitting = choose_runs(stored, query.wanted, query.order)
    if query.order != "name":
        fitting.reverse()
    page, _ = page_of(len(fitting), AT_ONCE)
    first = AT_ONCE * (page - 1)
    return render_template(
        "runs.html",
        title="Runs",
        query=query,
        page=page,
        runs=fitting[first : first + AT_ONCE],
        first=first,
        count=len(fitting),
        total=len(stored),
        emptiness=sources().why_no_runs,
        types=list(TYPES),
        verdicts=VERDICTS,
        orders=ORDERS,
        curve=draw_curve,
    )


def draw_curve(run: ListedRun) -> Markup | str:
    """Draw the run's main measure step by step; "" where it has no course."""
    if len(run.curve) < 2 or run.kind is None:
        return ""
    values = ", ".join(f"{value:.3g}" for value in run.curve[:12])
    return sparkline(run.curve, f"{run_type(run.kind).curve_title}: {values}", run.ideal)


ROUTES = (("/runs", READ, runs),)
