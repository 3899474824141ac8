"""Serving one queue from the command line: a worker of a Redis that may still have to come up."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.broker import Queues, connect
from scaletest.broker.retry import Retrying
from scaletest.model.errors import InvalidValue
from workers.runtime import Settings
from workers.worker import Worker


def serve(
    queue: str,
    redis_url: str,
    name: str,
    settings: Settings,
    *,
    allow_functions: Sequence[str],
    interval_s: float,
    max_attempts: int,
    grace_s: float,
    device_wait_s: float | None,
    log_messages: bool,
    rq_commands: bool,
    burst: bool,
    logging_level: str,
) -> None:
    """Work until a signal ends it; with `burst` until the queue is empty.

    UndeclaredQueue, or InvalidValue when a worker of that name lives.
    """
    redis = connect(redis_url)

    def make() -> Worker:
        Queues(redis).require(queue)
        return Worker(
            [queue],
            name=name,
            connection=redis,
            settings=settings,
            allow_functions=allow_functions,
            interval_s=interval_s,
            max_attempts=max_attempts,
            grace_s=grace_s,
            log_messages=log_messages,
            rq_commands=rq_commands,
            device_wait_s=device_wait_s,
        )

    worker = Retrying(f"worker {name}").run(make)
    try:
        worker.work(burst=burst, logging_level=logging_level)
    except ValueError as error:
        if "active worker named" not in str(error):
            raise
        raise InvalidValue(
            f"a worker named {name} lives already", hint="give another --name"
        ) from error
