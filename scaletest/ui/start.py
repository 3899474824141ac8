"""The page Start of `scaletest ui --allow-start`: starts and stops a validation of this machine.

It runs what its user types, so nobody else may ask for it: a request must come from a page of this
server, under a loopback address, with the token that only the printed address has. The browser
keeps that for this address and port alone (static/start.js), and no page holds it. A cookie would
go to every server of this machine, also to that of another user.
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
from scaletest.processes.children import end_all, has_exited, python_module
from scaletest.processes.guard import Guard
from scaletest.runs.folder import PLAN
from scaletest.runs.listing import ListedRun, read_listed_run
from scaletest.runs.places import new_path, open_run
from scaletest.runs.registry import can_run_again
from scaletest.ui.reports import folder_of, in_sentences
from scaletest.ui.sources import sources

# How long a page waits for the run to be there.
PATIENCE_S = 20.0
# How long the end of these pages waits for that of the run.
END_S = 10.0


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
        # it is not reaped before the next one: until then the guard holds the id of its group
        return self._name if process is not None and not has_exited(process) else ""

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
            if self._process is not None:
                self._process.wait()
            self._process = process
            self._name = path.name
            until_s = time.monotonic() + PATIENCE_S
            while open_run(path) is None and time.monotonic() < until_s:
                if has_exited(process):
                    log.seek(0)
                    told = log.read().decode(errors="replace").rpartition("error: ")[2]
                    reason, _, hint = told.strip().partition("\n")
                    raise UsageError(reason or "it ended at once", hint=hint.strip())
                time.sleep(0.05)

    def stop(self, name: str) -> None:
        """Ask this run to end in order, as Ctrl-C does, if it is the one that runs."""
        if name and name == self.running:
            assert self._process is not None
            os.kill(self._process.pid, SIGINT)

    def close(self) -> None:
        """End the validation that runs, and what guards it."""
        if self._process is not None:
            end_all([self._process], END_S)
        self._guard.close()


def start_page() -> str:
    """Show the form that asks for a command and the largest number of workers."""
    return _show_form(request.args.get("run", ""))


def start() -> ResponseReturnValue:
    """Start what the form asks for, and show its page."""
    _check_request()
    run_name = request.form.get("run", "")
    command = request.form.get("command", "")
    limit = request.form.get("limit", "")
    path = sources().root / new_path(os.environ).name
    try:
        workload = ["--", *shlex.split(command)]
        if run_name:
            workload = ["-f", f"{_find_run(run_name).folder}/{PLAN}"]
        elif not command.strip():
            raise UsageError("there is no command", hint="type one, e.g. sleep 0.1")
        options = ["--limit", limit] if limit else []
        _starter().start(path, [*options, *workload])
    except (ScaletestError, OSError, ValueError) as error:
        return _show_form(run_name, command, limit, in_sentences(error)), 400
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
    host = request.headers.get("Host", "")
    origin = request.headers.get("Origin")
    # the name that a stranger pointed at this address (DNS rebinding)
    if not LOOPBACK.fullmatch(host):
        raise Forbidden("runs are started under a loopback address only; nothing was started")
    # a form of another site, or of another server of this machine
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    if origin != f"{request.scheme}://{host}" or site != "same-origin":
        raise Forbidden("this did not come from the page Start; nothing was started")
    if not hmac.compare_digest(
        request.form.get("token", "").encode("utf-8", "replace"), _starter().token.encode()
    ):
        raise Forbidden("open the address that scaletest ui printed first; nothing was started")


def _find_run(name: str) -> ListedRun:
    """Return the stored run whose plan can be run again here; UsageError when it is none."""
    folder = folder_of(name)
    if folder is None:
        raise UsageError(f"there is no run {name!r:.80}", hint="choose another run")
    if not can_run_again(folder):
        raise UsageError(
            f"run {folder.name} is not a validation of local workers",
            hint="measure it again with its command",
        )
    return read_listed_run(folder)


def _show_form(name: str, command: str = "", limit: str = "", problem: str = "") -> str:
    """Show the form for a command, or for the plan of the stored run of that name."""
    run = None
    if name:
        try:
            run = _find_run(name)
        except (ScaletestError, OSError) as error:
            problem = problem or in_sentences(error)
    return render_template(
        "start.html", title="Start", run=run, command=command, limit=limit, problem=problem
    )


ROUTES = (
    ("/start", READ, start_page),
    ("/start", ("POST",), start),
    ("/start/stop", ("POST",), stop),
)
