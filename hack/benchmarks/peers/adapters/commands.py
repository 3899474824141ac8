"""The commands that every adapter takes: `fill COUNT` and `trips COUNT`, some also `work`.

An adapter runs in the environment of its own library and imports nothing of this project but this
file, which needs only Python. `trips` prints one JSON list: the seconds of each round trip. A wrong
result ends it: a peer that did not run the job is not measured.
"""

import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

URL = os.environ["PEER_URL"]
EXPECTED = 1
TIMEOUT_S = 20
WARM_UP = 20


def main(
    fill: Callable[[int], None],
    trips: Callable[[int], list[float]] | None = None,
    work: Callable[[], None] | None = None,
) -> None:
    """Run the action that the command line names."""
    action = sys.argv[1]
    if action == "fill":
        fill(int(sys.argv[2]))
    elif action == "trips" and trips:
        print(json.dumps(trips(int(sys.argv[2]))))
    elif action == "work" and work:
        work()
    else:
        raise SystemExit(f"{sys.argv[0]} cannot {action}")


def timed(call: Callable[[], Any], count: int) -> list[float]:
    """Seconds of `count` calls in turn; each must return what the job returns."""
    seconds = []
    for _ in range(WARM_UP + count):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
        _check(result)
    return seconds[WARM_UP:]


async def timed_async(call: Callable[[], Awaitable[Any]], count: int) -> list[float]:
    """Seconds of `count` calls of a coroutine, for libraries whose callers are coroutines."""
    seconds = []
    for _ in range(WARM_UP + count):
        start = time.perf_counter()
        result = await call()
        seconds.append(time.perf_counter() - start)
        _check(result)
    return seconds[WARM_UP:]


def _check(result: Any) -> None:
    if result != EXPECTED:
        raise SystemExit(f"the job returned {result!r}, not {EXPECTED!r}")
