"""A pytest plugin for RQ's own tests: scaletest's worker class, JSON, and a Redis of its own.

It changes what the tests import, never the worker. The functions of the tests are admitted as any
operator would admit them, by prefix.
"""

import os
from typing import Any

import redis
import rq
import rq.serializers
import rq.worker
import rq.worker.worker_classes

from scaletest_workers.rq_jobs import ALLOWED_VARIABLE
from scaletest_workers.worker import Worker

# RQ's tests flush the Redis on the default port, so they are sent to another port.
_PORT = int(os.environ["RQ_TESTS_PORT"])
_redis_init = redis.Redis.__init__


def _init(self: Any, *args: Any, **options: Any) -> None:
    if not args and not {"port", "connection_pool", "unix_socket_path"} & options.keys():
        options["port"] = _PORT
    _redis_init(self, *args, **options)


redis.Redis.__init__ = _init  # type: ignore[method-assign]
os.environ[ALLOWED_VARIABLE] = "tests rq time os builtins operator"
rq.serializers.DefaultSerializer = rq.serializers.JSONSerializer  # type: ignore[misc,assignment]
rq.serializers.PickleSerializer = rq.serializers.JSONSerializer  # type: ignore[misc,assignment]
if not os.environ.get("RQ_TESTS_STOCK"):
    for module in (rq, rq.worker, rq.worker.worker_classes):
        module.SimpleWorker = Worker  # type: ignore[attr-defined]
