"""The page Start of `scaletest ui --allow-start`: starts and stops a validation of this machine.

It runs what its user types, so nobody else may ask for it: a request must come from a page of this
server, under a loopback address, with the cookie that only the printed address gives.
"""

import hmac
import os
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from signal import SIGINT
from typing import cast
from urllib.parse import quote

from flask import current_app, g, redirect, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import Forbidden

from scaletest.model.errors import ScaletestError, UsageError
from scaletest.pages.security import LOOPBACK
from scaletest.pages.site import READ
from scaletest.processes.children import end_all, python_module
from scaletest.processes.guard import Guard
from scaletest.runs.folder import PLAN
from scaletest.runs.listing import ListedRun, read_listed_run
from scaletest.runs.places import new_path, open_run
from scaletest.ui.reports import folder_of, in_sentences
from scaletest.ui.sources import sources

COOKIE = "scaletest-start"
PLAN_TYPE = "validation"  # the type of the runs whose plans can be run again
# How long a page waits for the run to be there, and the end of these pages for that of the run.
PATIENCE_S, END_S = 20.0, 10.0


class Starter:
    """Runs one validation at a time, in a child that does not outlive this process."""

    def __init__(self, token: str) -> None:
        self.token = token
        self._guard = Guard("TERM")
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._name = ""  # of the run that was started last

    @property
    def running(self) -> str:
        """The name of the run that was started here and has not ended; "" for none."""
        process = self._process
        return self._name if process is not None and process.poll() is None else ""

    def start(self, path: Path, arguments: Sequence[str]) -> None:
        """Start a validation, and wait until its folder is there.

        UsageError where it is refused.
        """
        with self._lock, tempfile.TemporaryFile() as log:
            if self.running:
                raise UsageError(f"run {self.running} is in progress", hint="stop it first")
            line = python_module("scaletest", "validate", "--local", "--run-dir", str(path))
            process = subprocess.Popen(
                [*line, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                process_group=0,  # Ctrl-C in the terminal of these pages is not for the run
                env=self._guard.environment(),
            )
            self._guard.watch(process.pid)
            self._process, self._name = process, path.name
            until_s = time.monotonic() + PATIENCE_S
            while open_run(path) is None and time.monotonic() < until_s:
                if process.poll() is not None:
                    log.seek(0)
                    told = log.read().decode(errors="replace").rpartition("error: ")[2]
                    reason, _, hint = told.strip().partition("\n")
                    raise UsageError(reason or "it ended at once", hint=hint.strip())
                time.sleep(0.05)

    def stop(self, name: str) -> None:
        """Ask this run to end in order, as Ctrl-C does, if it is the one that runs."""
        if name and name == self.running:
            assert self._process is not None
            self._process.send_signal(SIGINT)

    def close(self) -> None:
        """End what runs."""
        if self._process is not None:
            end_all([self._process], END_S)
        self._guard.close()


def start_page() -> ResponseReturnValue:
    """Show the form; take the token of the printed address into a cookie."""
    token = request.args.get("token")
    if token is None:
        return _show_form(request.args.get("run", ""))
    response = redirect(f"{g.root}/start")
    # a wrong one of another site must not take the place of the right one
    if _is_token(token):
        path = f"{g.root}/start"
        response.set_cookie(COOKIE, token, path=path, httponly=True, samesite="Strict")
    return response


def start() -> ResponseReturnValue:
    """Start what the form asks for, and show its page."""
    _check_request()
    name, command, limit = (request.form.get(key, "") for key in ("run", "command", "limit"))
    path = sources().root / new_path(os.environ).name
    try:
        workload = ["--", *shlex.split(command)]
        if name:
            workload = ["-f", f"{_find_run(name).folder}/{PLAN}"]
        elif not command.strip():
            raise UsageError("there is no command", hint="type one, e.g. sleep 0.1")
        _starter().start(path, [*(["--limit", limit] if limit else []), *workload])
    except (ScaletestError, OSError, ValueError) as error:
        return _show_form(name, command, limit, in_sentences(error)), 400
    return redirect(f"{g.root}/live/{path.name}", 303)


def stop() -> ResponseReturnValue:
    """Stop the run that the form names, and show its page."""
    _check_request()
    name = request.form.get("run", "")
    _starter().stop(name)
    return redirect(f"{g.root}/live/{quote(name)}", 303)


def _starter() -> Starter:
    return cast(Starter, current_app.extensions["starter"])


def _check_request() -> None:
    """Refuse a request that the user of these pages did not make from them."""
    host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
    # the name that a stranger pointed at this address (DNS rebinding)
    if not LOOPBACK.fullmatch(host):
        raise Forbidden("runs are started under a loopback address only; nothing was started")
    # a form of another site, or of another server of this machine
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    if origin != f"{request.scheme}://{host}" or site != "same-origin":
        raise Forbidden("this did not come from the page Start; nothing was started")
    if not _is_token(request.cookies.get(COOKIE, "")):
        raise Forbidden("open the address that scaletest ui printed first; nothing was started")


def _is_token(text: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "replace"), _starter().token.encode())


def _find_run(name: str) -> ListedRun:
    """Return the stored run whose plan can be run again; UsageError when it is none."""
    folder = folder_of(name)
    run = read_listed_run(folder) if folder else None
    if run is None or run.kind != PLAN_TYPE:
        raise UsageError(f"there is no {PLAN_TYPE} {name!r:.80}", hint="choose another run")
    return run


def _show_form(name: str, command: str = "", limit: str = "", problem: str = "") -> str:
    """Show the form for a command, or for the plan of the stored run of that name."""
    run = None
    if name:
        try:
            run = _find_run(name)
        except UsageError as error:
            problem = problem or in_sentences(error)
    return render_template(
        "start.html", title="Start", run=run, command=command, limit=limit, problem=problem
    )


ROUTES = (
    ("/start", READ, start_page),
    ("/start", ("POST",), start),
    ("/start/stop", ("POST",), stop),
)
