# /// script
# dependencies = ["arq==0.28.0", "redis==5.3.1", "hiredis==3.5.0"]
# [tool.peer]
# title = "arq (100 jobs, poll 1 ms)"
# rate = 2000
# acknowledges = true
# note = "run again after 308 s by default"
# left = ["ZCARD", "arq:queue"]
# work = ["{bin}/arq", "with_arq.WorkerSettings", "--custom-log-dict", "with_arq.QUIET"]
# ///
"""arq removes a job from its queue after execution.

It polls: with the default of 0.5 s and 10 jobs it does 200 jobs a second at most, hence 1 ms and
100 jobs at a time. Logging is off: two lines a job cost more than the job.
"""

import asyncio
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from commands import TIMEOUT_S, URL, main, timed_async

POLL_S = 0.001
BATCH = 50
QUIET = {"version": 1, "disable_existing_loggers": True}
SETTINGS = RedisSettings.from_dsn(URL)


async def noop(_: dict[Any, Any]) -> int:
    """Nothing."""
    return 1


class WorkerSettings:
    """Read by arq's command line."""

    functions = (noop,)
    redis_settings = SETTINGS
    poll_delay = POLL_S
    max_jobs = 100


def fill(count: int) -> None:
    """Several calls at once; there is none for many jobs."""

    async def run() -> None:
        pool = await create_pool(SETTINGS)
        for start in range(0, count, BATCH):
            await asyncio.gather(
                *(pool.enqueue_job("noop") for _ in range(min(BATCH, count - start)))
            )

    asyncio.run(run())


def trips(count: int) -> list[float]:
    """Time round trips of a caller that polls, as often as the worker."""

    async def run() -> list[float]:
        pool = await create_pool(SETTINGS)

        async def call() -> Any:
            job = await pool.enqueue_job("noop")
            return job and await job.result(timeout=TIMEOUT_S, poll_delay=POLL_S)

        return await timed_async(call, count)

    return asyncio.run(run())


if __name__ == "__main__":
    main(fill, trips)
