# /// script
# dependencies = []
# [tool.peer]
# title = "floor: redis-py, one Lua call"
# rate = 8000
# acknowledges = false
# note = "no queue at all, only the shortest way through redis-py"
# trips = false
# left = ["LLEN", "floor:queue"]
# work = ["{bin}/python", "with_floor.py", "work"]
# ///
"""The floor: a queue that only finishes a job and takes the next, through redis-py.

One EVALSHA a job on bare lists, without leases, counters, decoding or time limits. Not a peer; it
says how much of our time a job takes because Redis, loopback and redis-py take it.
"""

import redis
from commands import URL, main

FINISH_AND_TAKE = (
    "if ARGV[1] ~= '' then redis.call('RPUSH', KEYS[2], ARGV[1]) end return redis.call('LPOP',"
    " KEYS[1])"
)
JOB = b'{"id":"0123456789abcdef-12345678","queue":"bench","arguments":["0"],"time_limit_s":0}'
REPLY = (
    b'{"id":"0123456789abcdef-12345678","outcome":"succeeded","exit_code":0,"run_s":0.0,"node":"n"}'
)
BATCH = 1000


def fill(count: int) -> None:
    """Payloads about as long as ours."""
    client = redis.Redis.from_url(URL)
    for start in range(0, count, BATCH):
        client.rpush("floor:queue", *[JOB] * min(BATCH, count - start))


def work() -> None:
    """Until the queue is empty."""
    client = redis.Redis.from_url(URL)
    sha = client.script_load(FINISH_AND_TAKE)
    reply = b""
    while client.evalsha(sha, 2, "floor:queue", "floor:replies", reply):
        reply = REPLY


if __name__ == "__main__":
    main(fill, work=work)
