"""scaletest ui: pages of queues, workers and runs."""

import gc
import os
import secrets
import socket
import sys
from functools import partial
from pathlib import Path
from threading import Thread

import click
import cloup

from scaletest.cli import options
from scaletest.cli.output import echo
from scaletest.model.errors import UsageError

# Of the page of a command that measures: where all processors are busy it has a fortieth of one.
# The lowest, 19, would show no page before the run is over.
PAGE_PRIORITY = 10


@cloup.command("ui")
@options.under_heading("Target")
@options.redis_url(None)
@click.option(
    "--archive",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    metavar="DIR",
    help="Show the runs that are kept in this folder. [default: the runs of this user]",
)
@options.under_heading("Server")
@click.option(
    "--listen",
    default="127.0.0.1:9995",
    show_default=True,
    metavar="ADDR:PORT",
    help="Serve the pages at this address.",
)
@click.option(
    "--prefix",
    default="",
    metavar="PATH",
    help="Serve the pages for a proxy that shows them below this path, e.g. /scaletest.",
)
@click.option(
    "--token",
    default="",
    metavar="TEXT",
    help=(
        "Open the pages under any host name with this token; it is better set as the"
        " variable SCALETEST_UI_TOKEN."
    ),
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help=("Also accept this host name without a token; the option may be repeated."),
)
@click.option(
    "--allow-start",
    is_flag=True,
    help=(
        "Start and stop validations of this machine from the page Start, for whoever has"
        " the printed address; with --listen on a loopback address only."
    ),
)
@click.option(
    "--socket", "handle", type=int, hidden=True, help="A descriptor of what listens already."
)
@click.option(
    "--run",
    type=click.Path(file_okay=False, path_type=Path),
    hidden=True,
    help="The run whose command serves these pages.",
)
def command(
    *,
    redis_url: str | None,
    archive: Path | None,
    listen: str,
    prefix: str,
    token: str,
    allow_host: tuple[str, ...],
    allow_start: bool,
    handle: int | None,
    run: Path | None,
) -> None:
    """Show queues, workers, the run in progress and stored runs in a browser.

    \b
    scaletest ui                                         # the runs of this user
    scaletest ui --redis-url redis://127.0.0.1:6379/0    # queues and workers too

    The pages are read-only, except with --allow-start. They answer until Ctrl-C.
    """
    # what serves pages takes a while to import, and --help needs none of it
    from scaletest.pages.security import HEADERS, LOOPBACK
    from scaletest.pages.server import Server
    from scaletest.pages.turns import THREADS
    from scaletest.runs.places import default_root, open_run
    from scaletest.ui.app import make_app
    from scaletest.ui.live import open_pages
    from scaletest.ui.runs import read_all_runs
    from scaletest.ui.sources import Sources
    from scaletest.ui.start import Starter

    sources = Sources(
        archive or default_root(os.environ),
        redis_url or "",
        run=open_run(run) if run else None,
    )
    starter = None
    if allow_start:
        if not LOOPBACK.fullmatch(listen):
            raise UsageError(
                f"--allow-start runs commands, and {listen} can be reached from elsewhere",
                hint="leave out --listen, or give an address such as 127.0.0.1:9995",
            )
        starter = Starter(secrets.token_urlsafe(24))
    app = make_app(sources, token=token, prefix=prefix, hosts=allow_host, starter=starter)
    if handle is not None:
        # after what takes long at the start, and before other threads, which inherit it
        os.setpriority(os.PRIO_PROCESS, 0, PAGE_PRIORITY)
    Thread(target=partial(read_all_runs, app), name="index", daemon=True).start()
    listening = listen if handle is None else socket.socket(fileno=handle)
    server = Server(app, listening, threads=THREADS, headers=HEADERS)
    # a page makes very many objects, hardly any in a cycle: they and what was loaded by now are not
    # searched for garbage each time, and the search comes after many new objects
    gc.freeze()
    gc.set_threshold(50_000)
    try:
        page = f"start#token={starter.token}" if starter else ""
        echo(f"open {server.url}{prefix.rstrip('/')}/{page}", err=True)
        if handle is None:
            server.wait()
        else:
            # the command closes it when its run has ended
            sys.stdin.read()
            with app.app_context():
                open_pages().wait_for_the_end()
    finally:
        server.close()
        if starter is not None:
            starter.close()
