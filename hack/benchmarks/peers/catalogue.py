"""Peers as their adapters describe them, in the block of inline script metadata at their top.

An adapter is a script for another environment, so it is read here and never imported.
`dependencies` are pinned; `[tool.peer]` says how to run one worker and how to see in Redis how far
it is.
"""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ADAPTERS = Path(__file__).parent / "adapters"
OURS, STOCK, FLOOR = "scaletest", "rq_simple", "floor"
# Ours first, then what it is held against: the order of the table.
NAMES = (OURS, STOCK, "rq_fork", "celery", "dramatiq", "huey", "arq", "saq", "taskiq", FLOOR)
_BLOCK = re.compile(r"^# /// script\n((?:#.*\n)+?)# ///\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Peer:
    """One library at one setting.

    work: the worker's command; {bin} is the environment's folder of programs, {url} the Redis.
    left, done: a command that answers how many jobs still wait, or a number that grows by one a
    job.
    ahead: jobs that a worker may hold before it runs them; that many are left out at the start of a
    drain.
    rate: jobs a second to expect, which sizes the first drain.
    queue, registered: the queue's list and a count of living workers, for drains with several
    workers.
    """

    name: str
    title: str
    dependencies: tuple[str, ...]
    work: tuple[str, ...]
    rate: float
    acknowledges: bool
    note: str
    left: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    ahead: int = 0
    trips: bool = True
    queue: str = ""
    registered: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def adapter(self) -> Path:
        """The script that runs in the peer's environment."""
        return ADAPTERS / f"with_{self.name}.py"


def load(name: str) -> Peer:
    """Return the peer of that name."""
    text = (ADAPTERS / f"with_{name}.py").read_text("utf-8")
    block = _BLOCK.search(text)
    assert block, f"the adapter of {name} has no block of script metadata"
    metadata = tomllib.loads("\n".join(line[2:] for line in block[1].splitlines()))
    fields: dict[str, Any] = metadata["tool"]["peer"]
    for key, setting in fields.items():
        if isinstance(setting, list):
            fields[key] = tuple(setting)
    return Peer(name=name, dependencies=tuple(metadata["dependencies"]), **fields)
