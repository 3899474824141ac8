"""Queues on Redis: the only room that speaks Redis.

What is in Redis: RQ's own keys (`rq:*`) as RQ would leave them, and ours (`scaletest:*`, see
keys.py). Whatever changes state is one Lua script, atomic and safe to repeat. Data from Redis is
JSON or bytes, never unpickled.
"""

from scaletest.broker.client import Client
from scaletest.broker.connection import Redis, connect
from scaletest.broker.embedded import EmbeddedServer, find_server
from scaletest.broker.queue_state import QueueState
from scaletest.broker.queues import Queues

__all__ = [
    "Client",
    "EmbeddedServer",
    "Queues",
    "QueueState",
    "Redis",
    "connect",
    "find_server",
]
