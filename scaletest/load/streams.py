"""The stream of one answer of an OpenAI-compatible service, read as it comes.

An event has one token or several, so tokens are those of the server's `usage`; without it chunks
are counted. An answer is whole when [DONE] has come: a connection that ends earlier is none.
"""

import time
from collections.abc import Callable
from typing import Any

import msgspec

DONE = b"[DONE]"
# Where an event has text: completions, chat, and the thoughts of models that reason.
TEXTS = ("text", "content", "reasoning_content", "reasoning")


class StreamReader:
    """Reads the events of one answer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rest = b""
        self._chunks = 0
        self._usage: dict[str, Any] = {}
        self.first_at: float | None = None  # when the first token came, by the clock
        self.is_complete = False
        self.is_failed = False  # whether the service reported an error, or sent no JSON

    def feed(self, block: bytes) -> None:
        """Take what came next."""
        *lines, self._rest = (self._rest + block).split(b"\n")
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            event = line[5:].strip()
            if event == DONE:
                self.is_complete = True
            elif self.first_at is None or b'"usage"' in event or b'"error"' in event:
                self._read(event)
            else:
                self._chunks += 1  # further tokens are only counted, which takes little time

    def _read(self, event: bytes) -> None:
        try:
            fields = msgspec.json.decode(event)
            choices = fields.get("choices") or ()
            pieces = [choice.get("delta", choice) for choice in choices]
            texts = [value for piece in pieces for name, value in piece.items() if name in TEXTS]
        except (msgspec.DecodeError, AttributeError, TypeError):
            self.is_failed = True
            return
        self.is_failed = self.is_failed or bool(fields.get("error"))
        self._usage = fields.get("usage") or self._usage
        if any(texts):
            self._chunks += 1
            if self.first_at is None:
                self.first_at = self._clock()

    @property
    def is_success(self) -> bool:
        """Whether it is whole. An error may come in a stream that began well."""
        return self.first_at is not None and self.is_complete and not self.is_failed

    def tokens(self, name: str) -> int | None:
        """Return the server's count of completion_tokens or prompt_tokens; None without one."""
        count = self._usage.get(name) if isinstance(self._usage, dict) else None
        return count if isinstance(count, int) and 0 <= count < 2**53 else None

    @property
    def output_tokens(self) -> int:
        """The tokens of the answer; chunks where the server does not count."""
        known = self.tokens("completion_tokens")
        return self._chunks if known is None else known
