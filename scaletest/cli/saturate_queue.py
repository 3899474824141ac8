"""scaletest saturate --queue: a queue as what is loaded."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from scaletest.cli.saturate_target import Target
from scaletest.model import checks
from scaletest.model.errors import UsageError

if TYPE_CHECKING:
    from scaletest.load.level_load import LevelLoad
    from scaletest.model.saturation import SaturationPlan


def target(given: dict[str, Any], plan: SaturationPlan) -> Target:
    """The queue, which must be declared and have workers. Unreachable when Redis does not
    answer.
    """
    from scaletest.broker import Queues, connect
    from scaletest.render.numbers import plural

    for name in ("payload", "payload_provider", "headers", "token_file", "http2", "retries"):
        if given[name]:
            raise UsageError(
                f"--{name.replace('_', '-').rstrip('s')} is for HTTP, not for a queue",
                hint="leave it out",
            )
    checks.arguments(given["arguments"])
    redis = connect(given["redis_url"])
    try:
        Queues(redis).require(given["queue"])
        state = Queues(redis).state(given["queue"])
    finally:
        redis.close()
    if not state.workers:
        raise UsageError(
            f"queue {given['queue']} has no worker",
            hint=f"start one: scaletest worker --queue {given['queue']}",
        )
    waiting = f", {plural(state.waiting, 'request')} in it already" if state.waiting else ""
    shown = f"queue {state.name}: {plural(state.workers, 'worker')}{waiting}"
    return Target((shown,), lambda stack: _load(given, plan, stack))


def _load(given: dict[str, Any], plan: SaturationPlan, stack: ExitStack) -> LevelLoad:
    from scaletest.cli.saturate_agent import queue_load, together

    wanted = {
        "queue": given["queue"],
        "arguments": list(given["arguments"]),
        "time_limit_s": plan.timeout_s,
        "maximum": -(-plan.max_in_flight // plan.agents),
    }
    if plan.agents > 1 or given["agent_jobs"]:
        return together(given, plan, wanted, stack)
    return queue_load(given["redis_url"], wanted)
