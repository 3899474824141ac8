"""The loop of a process that stays alive between requests.

A line with [NUMBER, REQUEST] comes in, and an answer with the same number goes out. The worker's
side of this is workloads/persistent.py.

Standard output holds answers only: what libraries print there is sent to standard error. A workload
shares these descriptors with us; what it writes to one of them has no number.
"""

import json
import os
import resource
from collections.abc import Callable
from typing import Any

Answer = dict[str, Any]
# Index of ru_maxrss in struct_rusage.
PEAK_MEMORY = 2


def answer_requests(answer: Callable[[Any], Answer]) -> None:
    """Answer each request until the input ends."""
    # Move both pipes away from the numbers that every program knows, so that the workload neither
    # reads requests nor prints among answers.
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    process = os.getpid()
    # from 0, so that the time of the imports counts for the first request, which waits for it
    used_before = [0.0] * 16
    for line in requests:
        number, request = json.loads(line)
        document = answer(request)
        if os.getpid() != process:
            # a fork that came back from the request: its answer would be taken for the next one's
            os._exit(0)

        # what this process, and the children that it waited for, have used since the last answer,
        # in struct_rusage's order; peak memory is that of the process's whole life
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = [mine + theirs for mine, theirs in zip(own, children, strict=True)]
        usage = [now - before for now, before in zip(used, used_before, strict=True)]
        usage[PEAK_MEMORY] = max(own[PEAK_MEMORY], children[PEAK_MEMORY])
        used_before = used
        answers.write(json.dumps({**document, "number": number, "usage": usage}) + "\n")
        if document.get("last"):
            return
