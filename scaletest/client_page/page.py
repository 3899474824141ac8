"""The page for people: rendered on the server, useful without script; a script updates it."""

from collections.abc import Sequence
from typing import NamedTuple

from flask import Response, make_response, render_template

from scaletest.client_page.answers import counts, steering
from scaletest.load import LoadSnapshot
from scaletest.load.pace import MAX_RATE
from scaletest.load.steering import Steered
from scaletest.pages.site import READ
from scaletest.render import numbers
from scaletest.report import load


class Button(NamedTuple):
    """A button below the form that changes a load: it sends one value."""

    key: str  # its name for the script
    value: str
    shown: str  # its text, which is also its name for a screen reader
    effect: str  # its description
    is_step: bool = True  # the value depends on the current one


class Control(NamedTuple):
    """The form that changes a load, by its requests in parallel or by its rate."""

    path: str  # what it asks
    label: str
    value: str
    help: str
    pattern: str  # of the texts that it takes
    buttons: Sequence[Button]


def steering_form(snapshot: LoadSnapshot, steered: Steered) -> Control:
    """Return the form that changes the load: its requests in parallel, or its rate."""
    if steered is Steered.PARALLEL:
        now, most = snapshot.parallel, snapshot.maximum
        return Control(
            steered,
            "Requests in parallel",
            str(now),
            f"0 pauses the load; at most {numbers.group_thousands(most)}",
            "[0-9]+",
            [
                _pause_button(now, f"{snapshot.resume_with:g}"),
                Button("half", str(now // 2), "÷ 2", "Half as many"),
                Button("less", str(max(0, now - 1)), "\N{MINUS SIGN} 1", "One less"),
                Button("more", str(min(most, now + 1)), "+ 1", "One more"),
                Button("twice", str(min(most, now * 2)), "× 2", "Twice as many"),  # noqa: RUF001
            ],
        )
    rate = snapshot.rate or 0.0

    def times(factor: float) -> str:
        return f"{min(MAX_RATE, rate * factor):.6g}"

    return Control(
        steered,
        "Requests per second",
        f"{rate:.6g}",
        "0 pauses the load; per minute: 600/min",
        r"[0-9.]+(e[+\-]?[0-9]+)? *(/s|/min)?",
        [
            _pause_button(rate, f"{snapshot.resume_with:.6g}/s"),
            Button("half", times(0.5), "÷ 2", "Half the rate"),
            Button("less", times(0.9), "\N{MINUS SIGN} 10 %", "A tenth less"),
            Button("more", times(1.1), "+ 10 %", "A tenth more"),
            Button("twice", times(2.0), "× 2", "Twice the rate"),  # noqa: RUF001
        ],
    )


def _pause_button(now: float, before: str) -> Button:
    """Return the button that pauses a load, or resumes a paused one with what it had before."""
    if now:
        return Button("pause", "0", "Pause", "Start no request until resumed", is_step=False)
    return Button("pause", before, f"Resume {before}", "Start requests as before", is_step=False)


def index() -> Response:
    """Show the whole page: the load, its charts and tables, and the form that changes it."""
    return _render("page.html")


def live() -> Response:
    """Answer with the parts of the page that change, for its script."""
    return _render("changing.html")


def _render(template: str) -> Response:
    snapshot = steering().snapshot()
    context = {
        "snapshot": snapshot,
        "control": steering_form(snapshot, steering().steered),
        "http": counts(),
        "load": load.describe_load(snapshot),
        "per_s": load.format_rate,
        "charts": load.charts_of(snapshot),
        "sparse": load.SPARSE,
        "times": load.times_table(snapshot),
        "places": load.place_tables(snapshot),
        "itself": load.client_facts(snapshot),
        "most_rows": load.MOST_ROWS,
    }
    return make_response(render_template(template, **context))


ROUTES = (("/", READ, index), ("/live", READ, live))
