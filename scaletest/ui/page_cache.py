"""Pages that take long to make, kept for everybody who asks for them."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar, cast

from scaletest.runs.run_index import Signature

T = TypeVar("T")


class PageCache:
    """The last pages that were made. Only one is made at a time, whoever asks."""

    def __init__(self) -> None:
        # stamps, page, and until when it is not made again
        self._pages: OrderedDict[object, tuple[Signature, Any, float]] = OrderedDict()
        self._lock = threading.Lock()

    def page(
        self, key: object, stamps: Signature, make: Callable[[], T], *, rest: float = 0.0
    ) -> T:
        """Return the page that was made of files with these stamps, else a new one.

        rest: an old page stands in for a new one until so many times the processor time that it
        took have passed.
        """
        with self._lock:
            kept = self._pages.pop(key, None)
            if kept is None or (kept[0] != stamps and time.monotonic() >= kept[2]):
                began_s = time.thread_time()
                made = make()
                # a process of low priority waits for a processor much longer than it uses it
                kept = stamps, made, time.monotonic() + rest * (time.thread_time() - began_s)
            self._pages[key] = kept
            while len(self._pages) > 16:
                self._pages.popitem(last=False)
            return cast(T, kept[1])
