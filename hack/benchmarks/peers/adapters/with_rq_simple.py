# /// script
# dependencies = ["rq==3.0.0", "redis==5.3.1", "hiredis==3.5.0"]
# [tool.peer]
# title = "RQ SimpleWorker (JSON)"
# rate = 350
# acknowledges = true
# note = "a lost job fails; run again only with Retry, after 811 s by default"
# left = ["LLEN", "rq:queue:bench"]
# queue = "rq:queue:bench"
# registered = ["SCARD", "rq:workers"]
# work = [
#   "{bin}/rq", "worker", "-u", "{url}", "-S", "json", "-w", "rq.SimpleWorker", "--quiet",
#   "bench",
# ]
# ///
"""Stock RQ at its fastest: without a fork a job, quiet, with the JSON serialiser.

Ours is built on it.

A job leaves the started registry after execution. redis-py 5.3 rather than 8: RQ is an eighth
faster on it. The function is a built-in one that returns its argument: a job that imports a module
would measure the import.
"""

from commands import TIMEOUT_S, URL, main, timed
from redis import Redis
from rq import Queue
from rq.serializers import JSONSerializer

FUNCTION = "operator.index"
BATCH = 500


def fill(count: int) -> None:
    """Many jobs a call; results are kept for the default time."""
    queue = _queue()
    for start in range(0, count, BATCH):
        queue.enqueue_many(
            [Queue.prepare_data(FUNCTION, args=(1,)) for _ in range(min(BATCH, count - start))]
        )


def trips(count: int) -> list[float]:
    """Time round trips of a caller that blocks on the job's own stream of results."""
    queue = _queue()

    def call() -> object:
        result = queue.enqueue(FUNCTION, 1).latest_result(timeout=TIMEOUT_S)
        return result and result.return_value

    return timed(call, count)


def _queue() -> Queue:
    return Queue("bench", connection=Redis.from_url(URL), serializer=JSONSerializer)


if __name__ == "__main__":
    main(fill, trips)
