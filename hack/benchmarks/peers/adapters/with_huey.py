# /// script
# dependencies = ["huey==3.5.4", "redis==5.3.1", "hiredis==3.5.0"]
# [tool.peer]
# title = "Huey (1 thread, notify_result)"
# rate = 1900
# acknowledges = false
# note = "a job is popped before it runs and lost with its worker"
# left = ["LLEN", "huey.redis.peers"]
# work = ["{bin}/huey_consumer", "with_huey.huey", "-w", "1", "-k", "thread", "--quiet"]
# ///
"""Huey has no setting that acknowledges after execution: it pops a job and then runs it.

notify_result lets the caller block on a key; by default it polls, 50 ms a round trip. One thread: a
process is no faster for empty jobs.
"""

from commands import TIMEOUT_S, URL, main, timed
from huey import RedisHuey

huey = RedisHuey("peers", url=URL, notify_result=True)


@huey.task(name="noop")
def noop() -> int:
    """Nothing."""
    return 1


def fill(count: int) -> None:
    """One by one: there is no call for many."""
    for _ in range(count):
        noop()


def trips(count: int) -> list[float]:
    """Time round trips of a caller that blocks on the result's key."""
    return timed(lambda: noop().get(blocking=True, timeout=TIMEOUT_S), count)


if __name__ == "__main__":
    # Huey names a task after its module, which for the consumer is not __main__.
    import with_huey

    main(with_huey.fill, with_huey.trips)
