"""The Lua scripts, loaded from lua/*.lua; the head comment of each lists KEYS and ARGV."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import redis.exceptions

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.model.queue_counts import LONGEST_ROW, OUTCOME_NUMBERS
from scaletest.model.record import Outcome

# Failures that a queue keeps, and bytes of a text of one of them.
MOST_FAILURES = 100
LONGEST_FAILURE = 500

# Keys, beginnings of keys, and limits by the names that scripts have for them. What keys begin with
# is of characters that need no quoting, which RQ checks.
CONSTANTS: dict[str, str | int] = {
    "CLIENT": keys.client(""),
    "CLIENTS": keys.CLIENTS,
    "DEVICES": keys.DEVICES,
    "ENDED_FAILED": OUTCOME_NUMBERS[Outcome.FAILED],
    "ENDED_TIMED_OUT": OUTCOME_NUMBERS[Outcome.TIMED_OUT],
    "EXECUTION": f"{keys.RQ}execution:",
    "EXECUTIONS": f"{keys.RQ}executions:",
    "FAILED": keys.rq_failed(""),
    "FAILURES": keys.failures(""),
    "INTERVALS": f"{keys.OWN}intervals",
    "JOB": keys.rq_job(""),
    "LEASES": keys.leases(""),
    "LONGEST_FAILURE": LONGEST_FAILURE,
    "LONGEST_ROW": LONGEST_ROW,
    "MOST_FAILURES": MOST_FAILURES,
    "OWN_QUEUE": keys.OWN_QUEUE,
    "PULSE": keys.PULSE,
    "QUEUE_WORKERS": keys.workers(""),
    "REPLIES": keys.replies(""),
    "RESULTS": keys.rq_results(""),
    "RQ_QUEUE": keys.rq_queue(""),
    "SCHEDULED": keys.rq_scheduled(""),
    "SETTLED": f"{keys.OWN}settled:",
    "STANDSTILL": keys.STANDSTILL,
    "SUSPECTS": keys.suspects(""),
    "WORKER": keys.rq_worker(""),
    "WORKERS": keys.RQ_WORKERS,
}


@dataclass(frozen=True, slots=True)
class Script:
    """A script with the digest that the server knows it by."""

    name: str
    text: str
    digest: str

    def __call__(self, redis_client: Redis, keys: list[str], arguments: list[Any]) -> Any:
        """Run it in one round trip; load it first when the server does not know it."""
        try:
            return redis_client.evalsha(self.digest, len(keys), *keys, *arguments)
        except redis.exceptions.NoScriptError:
            return redis_client.eval(self.text, len(keys), *keys, *arguments)


@cache
def script(name: str) -> Script:
    """Return the script lua/<name>.lua, after the CONSTANTS that it uses.

    Its lines `--@include part` are replaced with lua/<part>.lua.
    """
    folder = resources.files("scaletest.broker") / "lua"
    text = (folder / f"{name}.lua").read_text("utf-8")
    for line in re.findall(r"^--@include .*$", text, re.MULTILINE):
        text = text.replace(line, (folder / f"{line.split()[1]}.lua").read_text("utf-8"))
    used = set(re.findall(r"\b[A-Z_]+\b", text))
    constants = [f"local {name} = {CONSTANTS[name]!r}\n" for name in CONSTANTS if name in used]
    text = "".join([*constants, text])
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
