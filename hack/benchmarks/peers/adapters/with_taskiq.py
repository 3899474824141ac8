# /// script
# dependencies = ["taskiq==0.13.0", "taskiq-redis==1.2.4", "redis==8.1.0", "hiredis==3.5.0"]
# [tool.peer]
# title = "taskiq (RedisStreamBroker)"
# rate = 1900
# acknowledges = true
# note = "claimed after 600 s by default, and only when another message comes"
# ahead = 100
# done = ["DBSIZE"]
# work = [
#   "{bin}/taskiq", "worker", "with_taskiq:broker", "--workers", "1", "--log-level", "WARNING",
#   "--ack-type", "when_executed",
# ]
# ///
"""taskiq on a Redis stream, acknowledged when executed.

Its list broker is as fast and acknowledges nothing.

The stream broker reads up to 100 messages at once, its default, and runs up to 100 at a time.
Progress is counted in stored results: a stream keeps what was read.
"""

import asyncio

from commands import TIMEOUT_S, URL, main, timed_async
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

CHECK_S = 0.0005
BATCH = 50
broker = RedisStreamBroker(URL).with_result_backend(RedisAsyncResultBackend(URL))


@broker.task(task_name="noop")
async def noop() -> int:
    """Nothing."""
    return 1


def fill(count: int) -> None:
    """Several calls at once; there is none for many jobs."""

    async def run() -> None:
        await broker.startup()
        for start in range(0, count, BATCH):
            await asyncio.gather(*(noop.kiq() for _ in range(min(BATCH, count - start))))
        await broker.shutdown()

    asyncio.run(run())


def trips(count: int) -> list[float]:
    """Time round trips of a caller that polls, by default five times a second."""

    async def call() -> int:
        task = await noop.kiq()
        return (await task.wait_result(check_interval=CHECK_S, timeout=TIMEOUT_S)).return_value

    async def run() -> list[float]:
        await broker.startup()
        seconds = await timed_async(call, count)
        await broker.shutdown()
        return seconds

    return asyncio.run(run())


if __name__ == "__main__":
    main(fill, trips)
