"""The Lua scripts, loaded from lua/*.lua. A script's text is its contract; its head comment lists
KEYS and ARGV.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import redis.exceptions

from scaletest.broker import keys
from scaletest.broker.connection import Redis


@dataclass(frozen=True, slots=True)
class Script:
    """A script with the digest that the server knows it by."""

    name: str
    text: str
    digest: str

    def __call__(self, redis_client: Redis, keys: list[str], arguments: list[Any]) -> Any:
        """Run it in one round trip; load it first when the server does not know it (after a
        restart).
        """
        try:
            return redis_client.evalsha(self.digest, len(keys), *keys, *arguments)
        except redis.exceptions.NoScriptError:
            return redis_client.eval(self.text, len(keys), *keys, *arguments)


@cache
def script(name: str) -> Script:
    """The script lua/<name>.lua; `--@include part` lines are replaced with lua/<part>.lua.

    It knows what keys begin with as RQ and OWN: both are of characters that need no quoting, which
    RQ checks.
    """
    folder = resources.files("scaletest.broker") / "lua"
    lines = [f"local RQ, OWN = '{keys.RQ}', '{keys.OWN}'"]
    for line in (folder / f"{name}.lua").read_text("utf-8").splitlines():
        if line.startswith("--@include "):
            lines.append((folder / f"{line.split()[1]}.lua").read_text("utf-8"))
        else:
            lines.append(line)
    text = "\n".join(lines) + "\n"
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
