"""Prompts of an OpenAI-compatible service, no two alike unless that is asked for.

A prefix cache compares prompts from their beginning, so a beginning that was never sent before
keeps the rest out of it, too.
"""

import itertools
import os
from dataclasses import dataclass

import msgspec

from scaletest.model.errors import InvalidValue
from scaletest.model.http_options import CHAT

# One token each for common tokenisers; four bits of chance each.
WORDS = (
    *("the", "of", "and", "to", "in", "that", "is", "was"),
    *("for", "on", "are", "as", "with", "they", "at", "this"),
)
UNIQUE_WORDS = 16


@dataclass(frozen=True, slots=True)
class Prompts:
    """Bodies of requests for a stream with usage and an answer of fixed length."""

    kind: str  # chat or completions
    model: str
    prompt_tokens: int
    output_tokens: int
    shared_prefix: int = 0  # tokens with which all prompts begin

    def __post_init__(self) -> None:
        if not 0 <= self.shared_prefix < self.prompt_tokens:
            raise InvalidValue(
                f"<shared_prefix> is {self.shared_prefix} of {self.prompt_tokens} tokens",
                hint="give fewer tokens than a prompt has; 0 shares none",
            )

    def get(self, number: int) -> bytes:
        """Return the body of a request; each call makes another prompt."""
        words = list(itertools.islice(itertools.cycle(WORDS), self.prompt_tokens))
        chance = os.urandom(UNIQUE_WORDS // 2)
        unique = [WORDS[bits] for byte in chance for bits in (byte >> 4, byte & 15)]
        begin = self.shared_prefix
        words[begin : begin + UNIQUE_WORDS] = unique[: self.prompt_tokens - begin]
        text = " ".join(words)
        wanted = {"prompt": text}
        if self.kind == CHAT:
            wanted = {"messages": [{"role": "user", "content": text}]}  # type: ignore[dict-item]
        return msgspec.json.encode(
            {
                "model": self.model,
                **wanted,
                "max_tokens": self.output_tokens,
                # vLLM and SGLang continue to the last token then: all answers are equally long
                "ignore_eos": True,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        )
