# /// script
# dependencies = []
# [tool.peer]
# title = "scaletest"
# rate = 7000
# acknowledges = true
# note = "run again after two heartbeat intervals"
# left = ["LLEN", "rq:queue:bench"]
# queue = "rq:queue:bench"
# registered = ["SCARD", "rq:workers"]
# work = ["{bin}/python", "-m", "scaletest", "worker", "--queue", "bench", "--redis-url", "{url}"]
# ///
"""Ours, as its users run it: the worker of the command line, the client with one stream of replies.

It acknowledges after execution; nothing is set.
"""

from commands import TIMEOUT_S, URL, main, timed

from scaletest.broker import Client, Queues, connect
from scaletest.model import Outcome, Request


def fill(count: int) -> None:
    """Submit without closing the client: requests of a closed client would be dropped."""
    client = _client()
    assert client.submit([_request(client) for _ in range(count)]) == count


def trips(count: int) -> list[float]:
    """One request, then wait for its reply."""
    with _client() as client:

        def call() -> int:
            client.submit_one(_request(client))
            replies = client.replies(TIMEOUT_S)
            return sum(reply.outcome is Outcome.SUCCEEDED for reply in replies)

        return timed(call, count)


def _client() -> Client:
    redis = connect(URL)
    Queues(redis).add("bench")
    return Client(redis)


def _request(client: Client) -> Request:
    return Request(client.new_id(), "bench", ("0",))


if __name__ == "__main__":
    main(fill, trips)
