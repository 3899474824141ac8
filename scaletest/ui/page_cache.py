"""Pages that take long to make, kept for everybody who asks for them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from scaletest.runs.listing import Signature

MOST_KEPT = 16


class PageCache:
    """The last pages that were made. Only one is made at a time, whoever asks."""

    def __init__(self) -> None:
        self._pages: OrderedDict[object, tuple[Signature, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def page(self, key: object, stamps: Signature, make: Callable[[], bytes]) -> bytes:
        """The page that was made of files with these stamps, else a new one."""
        with self._lock:
            before, content = self._pages.pop(key, (None, b""))
            if before != stamps:
                content = make()
            self._pages[key] = stamps, content
            while len(self._pages) > MOST_KEPT:
                self._pages.popitem(last=False)
            return content
