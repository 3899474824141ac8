"""The page of a run that a command measures: --ui of every long command.

A child process serves it, with a low priority as soon as it has started, so that it takes hardly
any time from what is measured. It does not outlive its parent, however that ends.
"""

import os
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException
from urllib.parse import quote

import click

from scaletest.cli.options import WatchOptions
from scaletest.cli.output import echo
from scaletest.cli.progress_views import NONE, show_progress
from scaletest.processes.children import end_all, python_module
from scaletest.processes.guard import Guard
from scaletest.runs.folder import RunFolder
from scaletest.runs.progress import FROM_COMMAND, LONGEST_PAGE_S, Progress

# So long a command waits for its page before it measures, and when it has ended: a process of low
# priority needs that on a busy machine.
PATIENCE_S = 10.0
# For the process of the page to end.
END_S = 2.0


class RunPage:
    """The page of the runs of one command, in a process that is started with the first run."""

    def __init__(self) -> None:
        """Open a free port of this machine, which the page will have."""
        # what serves pages takes a while to import, and most runs have none
        from scaletest.pages.server import bind_socket, url_of

        self._socket = bind_socket("127.0.0.1:0")
        self._url = url_of(self._socket)
        # takes down at the end what was set up, the last first
        self._cleanup = ExitStack()
        self._cleanup.callback(self._socket.close)
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""

    def serve(self, folder: RunFolder) -> str:
        """Serve the page of this run; say where it is."""
        self._address = f"{self._url}/live/{quote(folder.name)}"
        if self._process is None:
            # start the process of the page, and measure only when it has made one
            guard = Guard("KILL")
            self._cleanup.callback(guard.close)
            handle = self._socket.fileno()
            line = python_module("scaletest", "ui", "--socket", str(handle))
            line += ["--run", str(folder.path)]
            # it shows this run, and no queues: reading them would disturb what is measured
            environment = {**os.environ, "SCALETEST_REDIS_URL": ""}
            self._process = process = subprocess.Popen(
                line,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[handle],
                # Ctrl-C is for the run; in a session of its own its priority would count for
                # nothing
                process_group=0,
                env=guard.environment(environment),
            )
            self._cleanup.callback(end_all, [process], END_S)
            guard.watch(process.pid)
            self._wait_for_page()
        return f"watch it at {self._address}"

    def close(self) -> None:
        """Let an open page show the end; then the address answers no more."""
        with self._cleanup:
            if self._process is not None:
                # its process keeps the page that shows the end, for whoever asks for it
                self._wait_for_page()
                # at the end of its input the process waits until open pages show the end
                assert self._process.stdin is not None
                self._process.stdin.close()
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(LONGEST_PAGE_S + END_S)
                echo("the page of the run is closed; see it again with: scaletest ui", err=True)

    def _wait_for_page(self) -> None:
        """Wait until the page is made, at most PATIENCE_S."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        direct.addheaders = [(FROM_COMMAND, "1")]
        with suppress(OSError, HTTPException):
            direct.open(self._address, timeout=PATIENCE_S).close()


@contextmanager
def watch_runs(watch: WatchOptions) -> Iterator[Progress]:
    """Show the progress of the runs of a command, and serve their page where one is wanted."""
    if not watch.ui:
        with show_progress(watch.progress) as progress:
            yield progress
        return
    page = RunPage()

    def begun(folder: RunFolder) -> str:
        line = page.serve(folder)
        if watch.progress == NONE:
            echo(line, err=True)
        return line

    click.get_current_context().call_on_close(page.close)
    with show_progress(watch.progress, begun=begun) as progress:
        yield progress
