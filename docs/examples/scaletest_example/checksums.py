"""Checksums of a block of memory, as a workload."""

from __future__ import annotations

import hashlib
import time
from typing import Literal


class Checksums:
    """Keeps a block of memory, and reads it as often as a request wants."""

    def __init__(self, mebibytes: int = 4) -> None:
        """Make the block: once in each worker's process, by the words behind --workload NAME --."""
        self.block = bytes(mebibytes * 2**20)

    def run(
        self, rounds: int = 1, *, algorithm: Literal["sha256", "blake2b"] = "sha256"
    ) -> dict[str, float]:
        """Run one request with its arguments, and return its figures."""
        began = time.perf_counter()
        for _ in range(rounds):
            hashlib.new(algorithm, self.block).digest()
        seconds = time.perf_counter() - began
        size = rounds * len(self.block)
        return {"bytes": size, "bytes_per_s": size / seconds}
