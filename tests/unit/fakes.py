"""A clock that only the test moves, and a client of no Redis: what is submitted is answered by the
test, or by itself.
"""

import itertools
import queue
from collections.abc import Callable, Mapping, Sequence

from scaletest.model import Outcome, Reply, Request


class Clock:
    """A monotonic clock that the test moves, or sleeping."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class FakeClient:
    """Speaks like a Client. `answer` makes the reply of a request at once; without it nothing is
    answered.
    """

    shaken = False

    def __init__(
        self, answer: Callable[[Request], Reply] | None = None, *, room: int = 1_000_000
    ) -> None:
        self._answer = answer
        self._numbers = itertools.count(1)
        self._replies: queue.SimpleQueue[Reply | None] = queue.SimpleQueue()
        self.submitted: list[Request] = []
        self.cancelled: list[str] = []
        self.waits: list[float] = []
        self.room = room
        self.closed = False

    def new_id(self) -> str:
        return f"c-{next(self._numbers)}"

    def submit(self, requests: Sequence[Request]) -> int:
        accepted = list(requests[: self.room])
        self.room -= len(accepted)
        self.submitted += accepted
        if self._answer is not None:
            for request in accepted:
                self.reply(self._answer(request))
        return len(accepted)

    def reply(self, reply: Reply) -> None:
        self._replies.put(reply)

    def replies(self, timeout_s: float) -> list[Reply]:
        self.waits.append(timeout_s)
        replies = []
        try:
            replies.append(self._replies.get(timeout=min(timeout_s, 0.05)))
            while True:
                replies.append(self._replies.get_nowait())
        except queue.Empty:
            pass
        return [item for item in replies if item is not None]

    def recover(self, pending: Mapping[str, Request], *, force: bool = False) -> int:
        return 0

    def cancel(self, name: str, ids: Sequence[str], *, stop: bool = False) -> int:
        self.cancelled += ids
        return len(ids)

    def wake(self) -> None:
        self._replies.put(None)

    def leave(self) -> None:
        """There is nothing that it would wait for."""

    def close(self) -> None:
        self.closed = True


def replied(name: str = "c-1", outcome: Outcome = Outcome.SUCCEEDED, **fields: object) -> Reply:
    """A reply with something in every field that a page shows."""
    row: dict[str, object] = {
        "wait_s": 0.01,
        "run_s": 0.5,
        "node": "node-a",
        "pod": "pod-1",
        "ended_s": 1_700_000_000.0,
    }
    return Reply(id=name, outcome=outcome, **{**row, **fields})  # type: ignore[arg-type]
