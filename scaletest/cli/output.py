"""What reaches the terminal: the text that commands print, and the lines that they log.

Texts of commands go to standard output or standard error in this one way. Logs go to standard
error, one line an event.
"""

import json
import logging
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click

from scaletest.model.checks import escape_unprintable
from scaletest.model.errors import UsageError

# RQ colours its own messages, nobody else does.
_COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")
# What to do with a file that was written, by its suffix.
TO_LOOK = {".html": "; open it in a browser, or see all runs with: scaletest ui"}


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text. Names, notes and errors in it may be foreign: no terminal obeys them.

    A terminal wraps lines at words. Text that brings its line end (nl=False) stays as it is: it is
    data.
    """
    shown = escape_unprintable(str(text), keep="\n\t")
    stream = sys.stderr if err else sys.stdout
    if nl and stream and stream.isatty():
        # takes a while to import, and pipes need none of it
        from scaletest.render.text import wrap_line

        width = shutil.get_terminal_size().columns
        shown = "\n".join(wrap_line(line, width) for line in shown.split("\n"))
    click.echo(shown, err=err, nl=nl)


def warn_without_worker(queue: str, worker_names: Sequence[str]) -> None:
    """Warn that requests of this queue will wait, before somebody waits for their replies."""
    if not worker_names:
        echo(
            f"warning: no worker serves queue {queue} now, so its requests wait; start one:"
            f" scaletest worker --queue {queue}",
            err=True,
        )


def write(text: str, path: Path) -> None:
    """Write text without control characters to a file, or to standard output for "-"."""
    write_bytes(text.encode(errors="replace"), path)


def write_bytes(content: bytes, path: Path) -> None:
    """Write a file, or to standard output for "-"; UsageError when that fails."""
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror or error}", hint="give another -o FILE"
        ) from error
    echo(f"{path} written{TO_LOOK.get(path.suffix, '')}", err=True)


@dataclass(frozen=True, slots=True)
class Output:
    """Where the result of a command goes, - for standard output, and in which form."""

    path: Path
    form: str

    @property
    def is_data(self) -> bool:
        """Whether programs read it."""
        return self.form in ("json", "yaml")

    def show(self, data: object, lines: Iterable[str]) -> None:
        """Write data as JSON or YAML, else the lines, which people read."""
        if str(self.path) == "-" and not self.is_data:
            for line in lines:
                echo(line)
            return
        text = as_text(data, self.form) if self.is_data else "\n".join((*lines, ""))
        if str(self.path) == "-":
            echo(text, nl=False)
        else:
            write(escape_unprintable(text, keep="\n\t"), self.path)


def as_text(data: object, form: str = "json") -> str:
    """Return data as JSON, or as YAML for the form "yaml", with the end of its last line."""
    if form == "json":
        return json.dumps(data, indent=2, allow_nan=False) + "\n"
    # takes a while, and `scaletest --help` has no data
    import yaml

    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    if escape_unprintable(text, keep="\n") == text:
        return text
    # YAML's own escapes, since with ours it would be other data
    return yaml.safe_dump(data, sort_keys=False)


def live_rows(rows: Callable[[], Sequence[str]], per_s: int) -> AbstractContextManager[object]:
    """Draw rows at the foot of the terminal, `per_s` times a second; nothing without a terminal."""
    if not (sys.stderr and sys.stderr.isatty()):
        return nullcontext()
    # takes a while, and most workers and clients have no terminal
    from scaletest.cli.live_rows import LiveRows

    return LiveRows(lambda width: rows(), per_s=per_s)


def confirm(question: str) -> bool:
    """Ask on standard error, as `echo` prints, and return the answer."""
    return click.confirm(escape_unprintable(question), err=True)


class _Formatter(logging.Formatter):
    """Formats log lines that no terminal obeys, whatever foreign text is in them."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        """Write one line: a name with a line's end in it cannot pretend to be another event."""
        return escape_unprintable(super().formatMessage(record), keep="\t")

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """Keep the lines of a traceback."""
        return escape_unprintable(super().formatException(ei), keep="\n\t")


def _disarm_rq_message(record: logging.LogRecord) -> bool:
    """Filter a record of RQ: of control characters only colours and line ends may stay."""
    # texts and colours in turn
    parts = _COLOURS.split(record.getMessage())
    parts[::2] = [escape_unprintable(part, keep="\n\t") for part in parts[::2]]
    record.msg = "".join(parts)
    record.args = ()
    return True


class _Handler(logging.StreamHandler[TextIO]):
    """Writes to what standard error is now, as that changes where live rows are drawn."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line to standard error as it is now."""
        self.stream = sys.stderr
        super().emit(record)


def set_up_logging(verbose: bool) -> None:
    """Log warnings by default; with -v everything of ours, and RQ's information."""
    handler = _Handler()
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    root = logging.getLogger("scaletest")
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(logging.DEBUG if verbose else logging.WARNING)
    for name in ("rq.worker", "rq.queue", "rq.job", "rq.registry"):
        logging.getLogger(name).addFilter(_disarm_rq_message)


def is_verbose() -> bool:
    """Return whether the program was called with -v."""
    return logging.getLogger("scaletest").level == logging.DEBUG


def show_messages() -> None:
    """Also log single requests and replies (--log-messages)."""
    for name in ("scaletest.worker", "scaletest.client"):
        logging.getLogger(name).setLevel(logging.INFO)
