"""The loop of a process that stays alive between requests: a request a line comes in, an answer a
line goes out.

Standard output holds answers only: what libraries print there is sent to standard error.
"""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from typing import Any

Answer = dict[str, Any]
# Index of ru_maxrss in struct_rusage.
_MEMORY = 2


def serve(answer: Callable[[Any], Answer]) -> None:
    """Answer until the input ends. A request's text is not read by what it runs."""
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    # the time of the imports counts for the first request, which waits for it
    used = Used()
    process = os.getpid()
    for line in requests:
        document = answer(json.loads(line))
        if os.getpid() != process:
            # a fork that came back from the request: its answer would be taken for the next one's
            os._exit(0)
        answers.write(json.dumps({**document, "usage": used.since_last()}) + "\n")


class Used:
    """Resources that this process, and the children that it waited for, have used since the last
    answer.
    """

    def __init__(self) -> None:
        self._before: list[float] = [0.0] * 16

    def since_last(self) -> list[float]:
        """Usage in struct_rusage's order; peak memory is that of the process's whole life."""
        own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        now = [mine + theirs for mine, theirs in zip(own, children, strict=True)]
        used = [later - earlier for later, earlier in zip(now, self._before, strict=True)]
        self._before = now
        used[_MEMORY] = max(own[_MEMORY], children[_MEMORY])
        return used
