"""Names for a shell that completes a line: of queues, for which Redis is asked and never waited
for long, and of measures.
"""

from __future__ import annotations

import logging
import threading

import click
from click.shell_completion import CompletionItem

from scaletest.model.errors import ScaletestError

# A shell stands still meanwhile.
PATIENCE_S = 0.6


def queues(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The declared queues; none when Redis is away, slow, or nobody knows where it is."""
    url = context.params.get("redis_url")
    names: list[str] = []
    if url:
        # a name server may keep a thread waiting that nothing can interrupt
        thread = threading.Thread(target=_ask, args=(str(url), names), daemon=True)
        thread.start()
        thread.join(PATIENCE_S)
    plain = [name for name in names if name.isprintable() and not name.isspace()]
    return [CompletionItem(name) for name in plain if name.startswith(incomplete)]


def measures(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The measures of a validation."""
    # documents take a while to import, and --help needs none of them
    from scaletest.model.verdict import VALIDATION_MEASURES

    return [CompletionItem(name) for name in VALIDATION_MEASURES if name.startswith(incomplete)]


def _ask(url: str, names: list[str]) -> None:
    """Add the names of all declared queues; none when there is any trouble."""
    # in the thread: it takes longer than the rest, and counts
    from scaletest.broker import Queues, connection

    logging.getLogger("scaletest").disabled = True
    try:
        with connection.prepare(url, socket_timeout_s=PATIENCE_S) as redis:
            names += Queues(redis).names()
    except (ScaletestError, *connection.REDIS_ERRORS, OSError):
        pass
