"""An event loop whose timers fire within some 0.1 ms; otherwise it equals asyncio's own.

epoll counts time-outs in whole milliseconds and asyncio rounds them up, so a timer would fire up to
1 ms late, 0.5 ms on average. Open load counts a request from its intended start, so that each
latency would include this error of the tester. An epoll descriptor can itself be waited for, and
select counts in microseconds.
"""

import asyncio
import select
import selectors

# select takes no descriptor from here on
FD_SETSIZE = 1024


def new_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop; without epoll asyncio's own, since kqueue counts in nanoseconds."""
    if not hasattr(selectors, "EpollSelector"):
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(ExactSelector())


class ExactSelector(getattr(selectors, "EpollSelector", selectors.DefaultSelector)):  # type: ignore[misc]
    """epoll, waited for with select."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events; see BaseSelector."""
        number: int = self.fileno()
        if timeout is not None and timeout > 0 and number < FD_SETSIZE:
            select.select((number,), (), (), timeout)
            timeout = 0
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(timeout)
        return ready
