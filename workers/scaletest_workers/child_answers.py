"""The loop of a process that stays alive between requests: [NUMBER, REQUEST] a line comes in, an
answer with the same number goes out.

Standard output holds answers only: what libraries print there is sent to standard error. A workload
shares these descriptors with us: what it writes to one of them has no number, and one that it
closed may be a file of its own by now.
"""

import json
import os
import resource
import sys
from collections.abc import Callable
from typing import Any

Answer = dict[str, Any]
# Exit code of a process whose workload closed the descriptor of its answers, as EX_IOERR of
# sysexits.h. Where standard error leads is not known then.
ANSWERS_CLOSED = 74
# Index of ru_maxrss in struct_rusage.
PEAK_MEMORY = 2


def answer_requests(answer: Callable[[Any], Answer]) -> None:
    """Answer until the input ends. A request's text is not read by what it runs."""
    # Python must not close their numbers at the end either, which may be the workload's by then
    requests = os.fdopen(os.dup(0), encoding="utf-8", closefd=False)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1, closefd=False)
    requests_pipe, answers_pipe = _identify(requests.fileno()), _identify(answers.fileno())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    # the time of the imports counts for the first request, which waits for it
    before = [0.0] * 16
    process = os.getpid()
    for line in requests:
        number, request = json.loads(line)
        document = answer(request)
        if os.getpid() != process:
            # a fork that came back from the request: its answer would be taken for the next one's
            os._exit(0)
        if _identify(answers.fileno()) != answers_pipe:
            sys.exit(ANSWERS_CLOSED)
        # without the requests' pipe it can answer, but take no other
        last = document.get("last", False) or _identify(requests.fileno()) != requests_pipe
        # what this process, and the children that it waited for, have used since the last answer,
        # in struct_rusage's order; peak memory is that of the process's whole life
        mine, childrens = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        now = [a + b for a, b in zip(mine, childrens, strict=True)]
        usage = [later - earlier for later, earlier in zip(now, before, strict=True)]
        usage[PEAK_MEMORY] = max(mine[PEAK_MEMORY], childrens[PEAK_MEMORY])
        before = now
        answers.write(
            json.dumps({**document, "number": number, "last": last, "usage": usage}) + "\n"
        )
        if last:
            return


def _identify(descriptor: int) -> tuple[int, int] | None:
    """Return what a descriptor leads to, as device and inode; None when it is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino
