"""A Redis in this process whose clock a test sets: fakeredis, and what our scripts need of Redis
beside it.

Our own Lua runs here, on Lua 5.1 as in Redis. What stays with the tests on a real server, since
fakeredis shows it wrongly or not at all: what a call costs (INFO, commandstats, encodings, memory),
blocking moves, broken connections, DUMP and restarts, and lists, hashes or texts of a size that
only matters there.
"""

import math
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import fakeredis
import pytest

# What Redis's Lua has and fakeredis's lacks. A script may read no other global variable than
# Redis's own, as there.
LUA_OF_REDIS = """
local python = python
local unpack_from = python.eval("__import__('struct').unpack_from")
local missing = {struct = {pack = python.eval("__import__('struct').pack"), unpack = unpack_from}}
setmetatable(_G, {__index = function(_, name)
  return missing[name] or error('Script attempted to access nonexistent global variable ' .. name)
end})
redis.sha1hex = python.eval("lambda text: __import__('hashlib').sha1(text).hexdigest().encode()")
"""


class Clock:
    """Redis's clock, which stands still until a test moves it."""

    def __init__(self) -> None:
        self._seconds = 1_800_000_000.0

    def seconds(self) -> float:
        """Seconds since 1970."""
        return self._seconds

    def step(self, seconds: float) -> None:
        """Let time pass, or set the clock, back where negative: to Redis both look the same."""
        self._seconds += seconds


def beats_for(
    clock: Clock, seconds: float, beat: Callable[[], object], every_s: float = 4.0
) -> None:
    """Let time pass in which somebody beats. Only then deadlines run: see lua/pulse.lua."""
    for _ in range(math.ceil(seconds / every_s)):
        clock.step(every_s)
        beat()


class VirtualRedis(fakeredis.FakeRedis):
    """A client of such a Redis. It answers INFO, which fakeredis does not know."""

    run_id = "first start"

    def info(self, *_: Any, **__: Any) -> dict[str, Any]:
        """What our clients ask for. `run_id` is another one after a restart."""
        return {"run_id": self.run_id}


def virtual_redis(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> VirtualRedis:
    """A client of an empty Redis with this clock."""
    stand_in = SimpleNamespace(**{**vars(time), "time": clock.seconds})
    for name, module in list(sys.modules.items()):
        if name.startswith("fakeredis") and getattr(module, "time", None) is time:
            monkeypatch.setattr(module, "time", stand_in)
    redis = VirtualRedis(server=fakeredis.FakeServer(version=(7,)), protocol=2)
    redis.eval(LUA_OF_REDIS, 0)
    return redis
