# /// script
# dependencies = ["dramatiq[redis]==2.2.1", "redis==5.3.1", "hiredis==3.5.0"]
# [tool.peer]
# title = "Dramatiq (1 thread, prefetch 100)"
# rate = 3200
# acknowledges = true
# note = "run again when a clean-up that is rolled by chance comes, seconds to tens of minutes"
# ahead = 110
# left = ["LLEN", "dramatiq:default"]
# work = ["{bin}/dramatiq", "with_dramatiq", "-p", "1", "-t", "1"]
# environment = { dramatiq_queue_prefetch = "100" }
# ///
"""Dramatiq acknowledges after execution. One process, one thread.

A queue prefetch of 100: with the default, twice the threads, the consumer backs off whenever its
cache is full and an empty job takes 4 ms. The setting favours throughput: the consumer polls, so a
round trip takes 7 ms; a worker time-out of 2 ms makes that about 2 ms.
"""

import dramatiq
from commands import TIMEOUT_S, URL, main, timed
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

broker = RedisBroker(url=URL)
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="noop", store_results=True)
def noop() -> int:
    """Nothing."""
    return 1


def fill(count: int) -> None:
    """One by one: there is no call for many."""
    for _ in range(count):
        noop.send()


def trips(count: int) -> list[float]:
    """Time round trips of a caller that blocks on the list of the result."""
    return timed(lambda: noop.send().get_result(block=True, timeout=TIMEOUT_S * 1000), count)


if __name__ == "__main__":
    main(fill, trips)
