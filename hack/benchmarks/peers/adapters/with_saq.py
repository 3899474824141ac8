# /// script
# dependencies = [
#   "saq[redis]==0.26.4", "redis==5.3.1", "hiredis==3.5.0", "typing_extensions==4.16.0",
# ]
# [tool.peer]
# title = "SAQ (concurrency 10, retries 3)"
# rate = 1800
# acknowledges = true
# note = "with retries above 1; run again after 65 s"
# ahead = 20
# left = ["LLEN", "saq:peers:queued"]
# work = ["{bin}/saq", "with_saq.settings", "--quiet"]
# ///
"""SAQ keeps a job on its active list while it runs; with retries above 1 a lost one is run again.

Ten at a time, the default: one is half as fast, a hundred no faster.
"""

import asyncio
import contextlib
from typing import Any

from commands import URL, main, timed_async
from saq import Queue

RETRIES = 3
BATCH = 20
MISSED_S = 1.0


async def noop(_: dict[Any, Any]) -> int:
    """Nothing."""
    return 1


queue = Queue.from_url(URL, name="peers")
settings = {"queue": queue, "functions": [noop], "concurrency": 10}


def fill(count: int) -> None:
    """Several calls at once; there is none for many jobs."""

    async def run() -> None:
        await queue.connect()
        for start in range(0, count, BATCH):
            batch = min(BATCH, count - start)
            await asyncio.gather(*(queue.enqueue("noop", retries=RETRIES) for _ in range(batch)))
        await queue.disconnect()

    asyncio.run(run())


def trips(count: int) -> list[float]:
    """Time round trips of a caller that subscribes to the job's channel.

    Queue.apply would take a second a call.
    """

    async def call() -> Any:
        job = await queue.enqueue("noop", retries=RETRIES)
        if job is None:
            return None
        while not job.completed:
            # It looks and then subscribes; a job that ends in between is seen by the next look.
            with contextlib.suppress(TimeoutError):
                await job.refresh(until_complete=MISSED_S)
        return job.result

    async def run() -> list[float]:
        await queue.connect()
        seconds = await timed_async(call, count)
        await queue.disconnect()
        return seconds

    return asyncio.run(run())


if __name__ == "__main__":
    main(fill, trips)
