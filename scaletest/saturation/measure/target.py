"""A target that was found: how it is loaded, and what is held meanwhile."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from scaletest.load.http_call import CAUSES
from scaletest.load.level_load import LevelLoad, LoadOrder
from scaletest.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """A URL, a Service or a queue that can be loaded; nothing is changed before `set_up`."""

    lines: tuple[str, ...]  # what was found about it
    start: Callable[[ExitStack], LevelLoad]  # starts its load, which the caller closes
    # does what must be done before, and has the stack undo it
    hold: Callable[[ExitStack], None] = lambda stack: None
    replicas: int = 0  # pods that serve it, 0 when that is unknown
    # the first processes of the service, when they are on this machine and may be seen
    servers: Callable[[], Sequence[int]] = lambda: ()
    port: int = 0  # where they serve
    is_here: bool = False  # whether the service is on this machine

    def set_up(self, stack: ExitStack) -> LevelLoad:
        """Start the load; it is taken down with the stack."""
        self.hold(stack)
        return stack.enter_context(closing(self.start(stack)))

    def probe(self, load: LevelLoad) -> None:
        """Make one call. UsageError with the likely cause when it fails: endpoint, schema or
        credentials are wrong then.
        """
        result = load.measure(
            LoadOrder(60.0, parallel=1, count=1), lambda: False, lambda ended, failed: None
        )
        if not result.samples or result.samples[0].ok:
            return
        outcome = result.samples[0].outcome
        cause, hint = CAUSES.get(
            outcome, ("the service does not serve this request", "read its log")
        )
        outcome = f"HTTP {outcome}" if outcome.isdigit() else outcome
        raise UsageError(f"the first call failed ({outcome}): {cause}", hint=hint)


def in_flight_of_agent(max_in_flight: int, agents: int) -> int:
    """Return how many requests an agent may have in flight, so that all may have the maximum."""
    return -(-max_in_flight // agents)
