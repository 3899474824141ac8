"""A thread that calls the same function again and again."""

import threading
from collections.abc import Callable


class Periodic:
    """Calls `act` in a thread of its own from `start` to `close`, each time after a pause."""

    def __init__(
        self, name: str, act: Callable[[], object], pause_s: float | Callable[[], float]
    ) -> None:
        """Prepare the thread. act: must not raise. pause_s: before each call, or what gives it."""
        self._act, self._pause_s = act, pause_s
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name=f"scaletest-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End the thread after the call that is under way, if it was started."""
        self._closing.set()
        if self.alive:
            self._thread.join()

    def _repeat(self) -> None:
        while not self._closing.wait(self._pause_s() if callable(self._pause_s) else self._pause_s):
            self._act()
