# /// script
# dependencies = ["celery[redis]==5.7.0", "kombu==5.7.0", "redis==8.1.0", "hiredis==3.5.0"]
# [tool.peer]
# title = "Celery (prefork -c1, acks_late)"
# rate = 900
# acknowledges = true
# note = "acks_late; run again after the visibility time-out, 1 h by default"
# ahead = 70
# left = ["LLEN", "celery"]
# work = [
#   "{bin}/celery", "-A", "with_celery", "worker", "-P", "prefork", "-c", "1",
#   "--loglevel", "WARNING",
#   "--without-gossip", "--without-mingle", "--without-heartbeat",
# ]
# ///
"""Celery with acks_late, which acknowledges after execution.

Its default acknowledges before, and loses the job of a worker that dies.

A prefetch of 64: more is no faster, 1 is slower. One pool process: faster than the solo pool for
empty jobs, since the parent speaks Redis while the child runs. Gossip, mingle and heartbeat are
off: they serve several workers.
"""

from celery import Celery
from commands import TIMEOUT_S, URL, main, timed

app = Celery("with_celery", broker=URL, backend=URL)
app.conf.update(
    task_acks_late=True, worker_prefetch_multiplier=64, broker_connection_retry_on_startup=True
)


@app.task(name="noop")
def noop() -> int:
    """Nothing."""
    return 1


def fill(count: int) -> None:
    """One by one: there is no call for many."""
    for _ in range(count):
        noop.delay()


def trips(count: int) -> list[float]:
    """Time round trips of a caller that subscribes to the result's channel."""
    return timed(lambda: noop.delay().get(timeout=TIMEOUT_S), count)


if __name__ == "__main__":
    main(fill, trips)
